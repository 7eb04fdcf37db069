"""The proof: a history that it must accept, and each of those that it must reject."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.engine.protocols import Outcome
from sqlstress.experiments.classics.keys_worker import picked_by
from sqlstress.experiments.classics.proof import (
    Acknowledged,
    check_ids,
    check_list,
    check_rows,
    preparation,
)
from sqlstress.experiments.classics.spec import Picks
from sqlstress.experiments.classics.work import KeysPlan, nearest, pick_name
from sqlstress.report import Check
from sqlstress.report.case import Case
from tests.example_report import assert_golden_texts
from tests.pulses import nothing


def rows(*places: int | None) -> list[tuple[object, int | None]]:
    return [(f"row at {place}", place) for place in places]


def verdict(told: list[Acknowledged], *places: int | None) -> tuple[str, str]:
    check = check_rows("rows", rows(*places), told, "the row at {}".format)
    assert (check.problems > 0) == (check.status == "failed")
    return check.status, "; ".join(check.counterexamples)


ALL = Acknowledged("worker 1", range(4), 4)
HALF = Acknowledged("worker 1", range(4), 2)
NONE = Acknowledged("worker 1", range(4), 0)
DEAD = Acknowledged("worker 1", range(4), 2, step=1)
DEAD_AT_ONCE = Acknowledged("worker 1", range(4), 0, step=4)


@pytest.mark.parametrize(
    ("told", "places"),
    [
        ([ALL], (0, 1, 2, 3)),
        ([ALL], (3, 1, 0, 2)),
        ([HALF], (0, 1)),
        ([DEAD], (0, 1)),
        ([DEAD], (0, 1, 2)),
        ([DEAD_AT_ONCE], ()),
        ([DEAD_AT_ONCE], (0, 1, 2, 3)),
        ([Acknowledged("worker 1", range(2), 2), Acknowledged("worker 2", range(2, 5), 1)], (0, 2, 1)),
        ([], ()),
    ],
)
def test_acknowledged_rows_are_accepted(told: list[Acknowledged], places: tuple[int, ...]) -> None:
    assert verdict(told, *places) == ("ok" if places else "skipped", "")


TWO = [Acknowledged("worker 1", range(2), 2), Acknowledged("worker 2", range(2, 5), 2)]
Places = tuple[int | None, ...]
REJECTED: dict[str, tuple[list[Acknowledged], list[Places]]] = {
    "4 acknowledged": ([ALL], [(0, 1, 2), (1, 2, 3), (0, 1, 2, 3, 3), (0, 1, 2, 3, None), (0, 1, 2, 3, 4)]),
    "2 of 4 acknowledged": ([HALF], [(0, 1, 2), (0, 2), (1, 2), (0, 1, 3)]),
    "2 of 4 acknowledged, and 1 under way": ([DEAD], [(0, 1, 2, 3), (0, 1, 3), (0,)]),
    "none acknowledged": ([NONE], [(2,)]),
    "4 under way at once": ([DEAD_AT_ONCE], [(0, 1)]),
    "nobody wrote": ([], [(0,)]),
    "2 and 2 of 3 acknowledged": (TWO, [(0, 1, 2)]),
}


def test_anything_else_is_rejected_with_the_reason() -> None:
    found = {}
    for name, (told, tables) in REJECTED.items():
        for places in tables:
            status, because = verdict(told, *places)
            assert status == "failed"
            found[f"{name}, there: {places}"] = because
    assert_golden_texts("methods-rejected.txt", found)


def test_every_row_is_counted() -> None:
    check = check_rows("rows", rows(0, 1), [HALF], str)
    assert (check.name, check.status, check.checked) == ("rows", "ok", 2)


@given(st.integers(1, 30), st.data())
def test_missing_or_additional_row_is_rejected_at_any_position(count: int, data: st.DataObject) -> None:
    acknowledged = data.draw(st.integers(1, count))
    told = [Acknowledged("worker 1", range(count), acknowledged)]
    right = list(range(acknowledged))
    assert verdict(told, *right)[0] == "ok"
    lost = data.draw(st.sampled_from(right))
    assert verdict(told, *(place for place in right if place != lost))[0] == "failed"
    if acknowledged < count:
        assert verdict(told, *right, data.draw(st.integers(acknowledged, count - 1)))[0] == "failed"


def wrong(check: Check) -> str:
    assert check.status == "failed"
    return "; ".join(check.counterexamples)


LISTED = [("users", b"1", "a"), ("users", b"2", "b"), ("items", 5, "book", 3)]


def test_list_may_be_read_in_any_order() -> None:
    assert check_list("lists", reversed(LISTED), LISTED, [preparation(3)]) == Check("lists", "ok", 3)


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (LISTED[1:], "('users', b'1', 'a'), acknowledged to the preparation, is gone"),
        ([*LISTED, ("users", b"9", "q")], "('users', b'9', 'q') should not be there"),
        ([("users", b"1", "z"), *LISTED[1:]], "('users', b'1', 'z') should not be there"),
        ([*LISTED, LISTED[0]], "('users', b'1', 'a') is there twice"),
    ],
    ids=["gone", "new", "changed", "twice"],
)
def test_damaged_list_is_rejected(there: list[Any], said: str) -> None:
    assert said in wrong(check_list("lists", there, LISTED, [preparation(3)]))


# Picks: transactions of users by workers.


KEYS = Case(workload="keys", concurrency=2, spec=Picks("no-key", "int", users=5, picks=3, items=9))
Pick = tuple[int, int]


def picks(*users: int) -> list[Pick]:
    """Return the picks of some users: numbers of users and items."""
    return [(user, item) for user in users for item in picked_by(KEYS, user)]


def check_picks(rows: Sequence[Pick], died: bool = False) -> Check:
    """Check picks. Worker 2 perhaps died during the transaction of user 3."""
    plan = KeysPlan(KEYS)
    plan.add(Outcome(1, False, None), 3, nothing)
    plan.add(Outcome(2, died, None), 1 if died else 2, nothing)
    placed = [(pick_name(pick), plan.places.get(pick)) for pick in rows]
    return check_rows("picks", placed, plan.writers, lambda place: pick_name(plan.picks[place]), str)


EVERY = picks(0, 2, 4, 1, 3)
TOLD_BY_DEAD = picks(0, 2, 4, 1)
LAST = picks(3)
NOT_PICKED = next((4, item) for item in range(9) if (4, item) not in EVERY)


def test_picks_are_accepted_and_those_of_a_dead_worker_wholly_or_not_at_all() -> None:
    assert check_picks(EVERY) == Check("picks", "ok", len(EVERY))
    assert check_picks(EVERY, died=True).status == check_picks(TOLD_BY_DEAD, died=True).status == "ok"


@pytest.mark.parametrize(
    ("rows", "died", "said"),
    [
        (TOLD_BY_DEAD, False, "acknowledged to worker 2, is gone"),
        (EVERY[:-1], True, "was not acknowledged"),
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


MADE = [[[blob(5), blob(6), blob(7)], [blob(9), blob(11)]], [[blob(1), blob(8)]]]
"""Ids by worker and transaction."""


@pytest.mark.parametrize("id_type", ["uuid4", "ulid", "ulid-monotonic", "uuid7"])
def test_ids_that_ascend_within_each_worker_are_accepted(id_type: str) -> None:
    assert check_ids(MADE, id_type) == Check("identifiers", "ok", 7)


@pytest.mark.parametrize(
    "by_worker",
    [[[[blob(5), blob(4)]]], [[[blob(5)], [blob(4)]]], [[[blob(5)], [], [blob(4)]]]],
    ids=["within a transaction", "from one to the next", "over an empty one"],
)
def test_id_that_is_smaller_than_the_one_before_is_named_where_order_is_promised(by_worker: Any) -> None:
    said = f"{blob(4).hex()} was made after {blob(5).hex()}, and is less"
    assert wrong(check_ids(by_worker, "uuid7")) == said
    assert check_ids(by_worker, "ulid").status == "ok"


@pytest.mark.parametrize("id_type", ["uuid7", "uuid4"])
def test_id_that_is_there_twice_is_named(id_type: str) -> None:
    # The same one again is not out of order.
    assert wrong(check_ids([[[blob(1), blob(1)]]], id_type)) == f"{blob(1).hex()} is there twice"
    assert wrong(check_ids([*MADE, [[blob(7)]]], id_type)) == f"{blob(7).hex()} is there twice"


@pytest.mark.parametrize(
    ("one", "id_type"),
    [(b"short", "uuid4"), ("0" * 16, "ulid"), (None, "uuid7"), (7, "uuid4"), (blob(2), "int"), (None, "int")],
)
def test_id_of_another_type_is_named(one: Any, id_type: str) -> None:
    first = [5, 6] if id_type == "int" else [blob(5), blob(6)]
    assert f"is not of the type {id_type}" in wrong(check_ids([[[*first, one]]], id_type))


@pytest.mark.parametrize(
    ("one", "id_type", "said"), [(b"c" * 30, "uuid7", "63" * 20), ("x" * 50, "int", f"'{'x' * 39}")]
)
def test_long_id_of_another_type_is_shortened(one: Any, id_type: str, said: str) -> None:
    assert wrong(check_ids([[[one]]], id_type)) == f"{said} is not of the type {id_type}"


def test_between_two_transactions_integers_may_be_left_out() -> None:
    assert check_ids([[[1, 2], [9, 10], [], [30]]], "int").status == "ok"
    assert check_ids([[[7], [8, 9]]], "int").status == "ok"


@pytest.mark.parametrize(
    ("transactions", "said"),
    [
        ([[1, 2, 4]], "4 was made after 2, and does not follow on it"),
        ([[5, 6], [3]], "3 was made after 6, and is less"),
        ([[5, 6], [], [3]], "3 was made after 6, and is less"),
        ([[1, 2, 2]], "2 is there twice; 2 was made after 2, and is less"),
    ],
)
def test_integers_that_do_not_follow_on_each_other_are_named(
    transactions: list[list[Any]], said: str
) -> None:
    assert wrong(check_ids([transactions], "int")) == said


# Tables of cycles.


COMMITTED = [("t1", 1, "a"), ("t1", 2, "b")]
ONE_MORE = [*COMMITTED, ("t1", 3, "c")]
OTHER = [("t1", 1, "x"), ("t1", 2, "y"), ("t1", 3, "z")]


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        (COMMITTED, COMMITTED),
        (ONE_MORE, ONE_MORE),
        ([], COMMITTED),
        ([*ONE_MORE, ("t1", 4, "d")], ONE_MORE),
        (OTHER[:2], OTHER),
    ],
)
def test_table_is_compared_with_its_nearest_state(rows: list[Any], state: list[Any]) -> None:
    for states in permutations((COMMITTED, ONE_MORE, OTHER)):
        assert nearest(rows, iter(states)) == state


def test_rows_under_another_id_are_rejected() -> None:
    writers = [Acknowledged("worker 1", range(2), 2)]
    assert check_list("last commit", COMMITTED, COMMITTED, writers) == Check("last commit", "ok", 2)
    swapped = [("t1", 1, "b"), ("t1", 2, "a")]
    assert wrong(check_list("last commit", swapped, COMMITTED, writers)) == (
        "('t1', 1, 'b') should not be there; ('t1', 2, 'a') should not be there; "
        "('t1', 1, 'a'), acknowledged to worker 1, is gone; "
        "('t1', 2, 'b'), acknowledged to worker 1, is gone"
    )
