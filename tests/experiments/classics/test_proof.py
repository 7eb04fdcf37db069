"""The proof: tables that it must accept, and tables that it must reject."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.classics.proof import check_ids, check_rows
from sqlstress.experiments.classics.spec import Picks
from sqlstress.experiments.classics.work import numbered, pick_name
from sqlstress.experiments.classics.worker import (
    BEGIN,
    COMMIT,
    DELETE,
    QUERY,
    KeysSource,
    Step,
    committed,
    picked_by,
    possible_tables,
)
from sqlstress.report import Check
from sqlstress.report.case import Case
from tests.example_report import assert_golden_texts
from tests.experiments.measured import SALT

# The rows that steps leave, compared with SQLite itself.


INSERT = "insert"
step_lists = st.lists(
    st.builds(Step, st.just(INSERT), st.lists(st.integers(0, 99), max_size=3))
    | st.sampled_from((Step(DELETE), Step(QUERY, [1]))),
    max_size=12,
)
transactions = st.tuples(step_lists, step_lists, step_lists).map(
    lambda parts: [*parts[0], Step(BEGIN), *parts[1], Step(COMMIT), *parts[2]]
)


def kept_by_sqlite(steps: Sequence[Step]) -> list[int]:
    """Return the values in a table after these steps and the close of the connection."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, value)")
        for kind, rows, _ in steps:
            if kind == INSERT:
                for row in rows:
                    connection.execute("INSERT INTO t (value) VALUES (?)", (row,))
            else:
                connection.execute({DELETE: "DELETE FROM t", QUERY: "SELECT 1"}.get(kind, kind))
        if connection.in_transaction:
            connection.rollback()
        return [row[0] for row in connection.execute("SELECT value FROM t ORDER BY id")]


@given(step_lists | transactions, st.integers(0, 30))
def test_committed_rows_are_those_that_sqlite_keeps(steps: list[Step], done: int) -> None:
    assert committed(steps[:done]) == kept_by_sqlite(steps[:done])


ONE, TWO_ROWS = Step(INSERT, [1]), Step(INSERT, [2, 3])


@pytest.mark.parametrize(
    ("steps", "rows"),
    [
        ([ONE, Step(BEGIN), TWO_ROWS], [1]),
        ([ONE, Step(BEGIN), Step(DELETE), TWO_ROWS], [1]),
        ([ONE, Step(BEGIN), TWO_ROWS, Step(COMMIT)], [1, 2, 3]),
        ([ONE, Step(BEGIN), Step(DELETE), TWO_ROWS, Step(COMMIT), ONE], [2, 3, 1]),
    ],
    ids=["open", "open after a DELETE", "committed", "followed by a row"],
)
def test_open_transaction_leaves_no_rows(steps: list[Step], rows: list[int]) -> None:
    assert committed(steps) == kept_by_sqlite(steps) == rows


@given(step_lists | transactions, st.integers(0, 30))
def test_dead_worker_may_have_done_one_more_step(steps: list[Step], done: int) -> None:
    assert possible_tables(steps, done, died=False) == [committed(steps[:done])]
    assert possible_tables(steps, done, died=True) == [committed(steps[:done]), committed(steps[: done + 1])]


# A table with the rows of one or two workers.


def verdict(workers: Sequence[Sequence[Sequence[object]]], *rows: object) -> tuple[str, str]:
    check = check_rows("rows", rows, workers, "row {}".format)
    assert (check.problems > 0) == (check.status == "failed")
    return check.status, "; ".join(check.counterexamples)


HALF = [[0, 1]]
DEAD = [[0, 1], [0, 1, 2]]
DEAD_AT_ONCE: list[list[int]] = [[], [0, 1, 2, 3]]
DEAD_IN_DELETE = [[0, 1], []]


@pytest.mark.parametrize(
    ("workers", "rows"),
    [
        ([[[0, 1, 2, 3]]], (3, 1, 0, 2)),
        ([HALF], (0, 1)),
        ([DEAD], (0, 1)),
        ([DEAD], (0, 1, 2)),
        ([DEAD_AT_ONCE], ()),
        ([DEAD_AT_ONCE], (0, 1, 2, 3)),
        ([DEAD_IN_DELETE], ()),
        ([HALF, [[2], [2, 3]]], (0, 2, 1)),
        ([], ()),
    ],
)
def test_acknowledged_rows_are_accepted(workers: list[Any], rows: tuple[int, ...]) -> None:
    assert verdict(workers, *rows) == ("ok" if rows else "skipped", "")


TWO = [HALF, [[2, 3]]]
REJECTED: dict[str, tuple[list[Any], list[tuple[int, ...]]]] = {
    "0 and 1 acknowledged": ([HALF], [(0,), (1,), (0, 1, 1), (0, 1, 2), (1, 2)]),
    "0 and 1 acknowledged, 2 under way": ([DEAD], [(0, 1, 2, 3), (0, 1, 3), (0,), (1, 2)]),
    "none acknowledged": ([[[]]], [(2,)]),
    "4 under way at once": ([DEAD_AT_ONCE], [(0, 1), (0, 2, 3)]),
    "a DELETE under way": ([DEAD_IN_DELETE], [(0,)]),
    "no worker": ([], [(0,)]),
    "2 and 2 acknowledged": (TWO, [(0, 1, 2), (1, 2, 3)]),
}


def test_wrong_table_is_rejected_with_the_reason() -> None:
    found = {}
    for name, (workers, tables) in REJECTED.items():
        for rows in tables:
            status, because = verdict(workers, *rows)
            assert status == "failed"
            found[f"{name}, stored: {rows}"] = because
    assert_golden_texts("methods-rejected.txt", found)


def test_rows_of_two_possible_tables_together_are_rejected() -> None:
    assert verdict([[[0], [1]]], 0, 1)[0] == "failed"


def test_every_row_is_counted() -> None:
    check = check_rows("rows", (0, 1), [HALF], str)
    assert (check.name, check.status, check.checked) == ("rows", "ok", 2)


@given(st.integers(1, 30), st.data())
def test_missing_or_additional_row_is_rejected_at_any_position(count: int, data: st.DataObject) -> None:
    right = list(range(count))
    lost = data.draw(st.sampled_from(right))
    assert verdict([[right]], *right)[0] == "ok"
    assert verdict([[right]], *(row for row in right if row != lost))[0] == "failed"
    assert verdict([[right]], *right, data.draw(st.integers(-5, count + 5)))[0] == "failed"


def wrong(check: Check) -> str:
    assert check.status == "failed"
    return "; ".join(check.counterexamples)


def test_rows_under_another_id_are_rejected() -> None:
    (stored,) = numbered([[("a",), ("b",)]])
    assert stored == [(1, "a"), (2, "b")]
    assert check_rows("last commit", stored, [[stored]]) == Check("last commit", "ok", 2)
    assert wrong(check_rows("last commit", [(1, "b"), (2, "a")], [[stored]])) == (
        "(1, 'b') should not be there; (2, 'a') should not be there; "
        "(1, 'a'), which was acknowledged, is gone; (2, 'b'), which was acknowledged, is gone"
    )


# Picks: transactions of users by workers.


KEYS = Case(workload="keys", concurrency=2, spec=Picks("no-key", "int", users=5, picks=3, items=9))
Pick = tuple[int, int]


def picks(*users: int) -> list[Pick]:
    """Return the picks of some users: numbers of users and items."""
    return [(user, item) for user in users for item in picked_by(KEYS, user)]


def check_picks(rows: Sequence[Pick], died: bool = False) -> Check:
    """Check picks. Worker 2 perhaps died during the transaction of user 3."""
    first = possible_tables(KeysSource.steps_of(KEYS, 1, SALT), 3, died=False)
    second = possible_tables(KeysSource.steps_of(KEYS, 2, SALT), 1 if died else 2, died)
    return check_rows("picks", rows, [first, second], pick_name)


EVERY = picks(0, 2, 4, 1, 3)
TOLD_BY_DEAD = picks(0, 2, 4, 1)
LAST = picks(3)
NOT_PICKED = next((4, item) for item in range(9) if (4, item) not in EVERY)


def test_picks_of_a_dead_worker_are_accepted_wholly_or_not_at_all() -> None:
    assert check_picks(EVERY) == Check("picks", "ok", len(EVERY))
    assert check_picks(EVERY, died=True).status == check_picks(TOLD_BY_DEAD, died=True).status == "ok"


@pytest.mark.parametrize(
    ("rows", "died", "said"),
    [
        (TOLD_BY_DEAD, False, "which was acknowledged, is gone"),
        (EVERY[:-1], True, "which was acknowledged, is gone"),
        ([*TOLD_BY_DEAD, LAST[-1]], True, "was not acknowledged"),
        (EVERY[1:], False, "user 0's pick of item"),
        ([*EVERY[len(picks(0)) :]], True, "is gone"),
        ([*EVERY, EVERY[0]], False, "is there twice"),
        ([*EVERY, NOT_PICKED], False, f"user 4's pick of item {NOT_PICKED[1]} should not be there"),
        ([*EVERY[1:], NOT_PICKED], False, "should not be there"),
    ],
    ids=[
        "a living worker's last transaction gone",
        "a part of a dead worker's",
        "another part of it",
        "one gone",
        "all of a user's gone",
        "twice",
        "nobody's",
        "one for another",
    ],
)
def test_damaged_picks_are_rejected(rows: list[Pick], died: bool, said: str) -> None:
    assert said in wrong(check_picks(rows, died))


@given(st.data())
def test_whatever_else_is_there_or_not_is_rejected(data: st.DataObject) -> None:
    known = data.draw(st.lists(st.sampled_from([*EVERY, NOT_PICKED]), max_size=len(EVERY) + 2))
    right = [sorted(EVERY), sorted(TOLD_BY_DEAD)]
    assert (check_picks(known, died=True).status == "ok") == (sorted(known) in right)


# Ids of picks.


def blob(number: int) -> bytes:
    return number.to_bytes(16)


MADE = [[blob(5), blob(6), blob(7), blob(9), blob(11)], [blob(1), blob(8)]]
"""Ids by worker."""


def ids_check(by_worker: Sequence[Sequence[Any]], id_type: str, first: int = 1) -> Check:
    """Check ids; integers must be `first`, `first` + 1 and so on."""
    return check_ids((enumerate(ids, first) for ids in by_worker), id_type)


@pytest.mark.parametrize("id_type", ["uuid4", "ulid", "uuid7"])
def test_ids_that_ascend_within_each_worker_are_accepted(id_type: str) -> None:
    assert ids_check(MADE, id_type) == Check("identifiers", "ok", 7)
    assert ids_check([[blob(0), blob(1)]], id_type) == Check("identifiers", "ok", 2)


def test_id_smaller_than_its_predecessor_is_named_if_ids_ascend() -> None:
    by_worker = [[blob(5), blob(4)]]
    said = f"{blob(4).hex()} was made after {blob(5).hex()}, and is less"
    assert wrong(ids_check(by_worker, "uuid7")) == said
    assert ids_check(by_worker, "ulid").status == "ok"
    assert wrong(ids_check([[blob(5), None, blob(4)]], "uuid7")).endswith(said)


@pytest.mark.parametrize("id_type", ["uuid7", "uuid4"])
def test_id_that_is_there_twice_is_named(id_type: str) -> None:
    # The same one again is not out of order.
    assert wrong(ids_check([[blob(1), blob(1)]], id_type)) == f"{blob(1).hex()} is there twice"
    assert wrong(ids_check([*MADE, [blob(7)]], id_type)) == f"{blob(7).hex()} is there twice"


@pytest.mark.parametrize(
    ("one", "id_type"), [(b"short", "uuid4"), ("0" * 16, "ulid"), (None, "uuid7"), (7, "uuid4")]
)
def test_id_of_another_type_is_named(one: Any, id_type: str) -> None:
    assert f"is not of the type {id_type}" in wrong(ids_check([[blob(5), blob(6), one]], id_type))


@pytest.mark.parametrize(
    ("one", "id_type", "said"),
    [
        (b"c" * 30, "uuid7", f"{'63' * 20} is not of the type uuid7"),
        ("x" * 50, "int", f"'{'x' * 39} is there instead of 1"),
    ],
)
def test_long_id_of_another_type_is_shortened(one: Any, id_type: str, said: str) -> None:
    assert wrong(ids_check([[one]], id_type)) == said


@pytest.mark.parametrize("one", [5, 7, None, 6.0, "6", blob(6)])
def test_integer_other_than_the_computed_one_is_named(one: Any) -> None:
    assert ids_check([[4, 5, 6]], "int", 4) == Check("identifiers", "ok", 3)
    assert wrong(ids_check([[4, 5, one]], "int", 4)).endswith(" is there instead of 6")
