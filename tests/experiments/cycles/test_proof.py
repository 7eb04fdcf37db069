"""A table's rows are accepted when they are those of a state that it may be in, and of nothing else."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sqlstress.experiments.cycles.work import check_table
from sqlstress.report import Check
from sqlstress.report.results import Tally

TOLD, ONE_MORE = ["a", "b"], ["a", "b", "c"]


def judged(found: list[str], *allowed: list[str]) -> Check:
    return judged_rows(list(enumerate(found, 1)), *allowed)


def judged_rows(found: list[tuple[int, str]], *allowed: list[str]) -> Check:
    tally = Tally("last commit")
    check_table(tally, "t1", found, allowed)
    return tally.check()


def test_the_rows_that_the_worker_was_told_of_are_accepted() -> None:
    assert judged(TOLD, TOLD) == Check("last commit", "ok", 1)


def test_rows_that_swapped_their_ids_are_both_named() -> None:
    assert judged(["b", "a"], TOLD).counterexamples == (
        "row 1 of t1 is 'b' with id 1; it must be 'a' with id 1",
        "row 2 of t1 is 'a' with id 2; it must be 'b' with id 2",
    )


def test_a_row_under_another_id_is_named() -> None:
    assert judged_rows([(1, "a"), (7, "b")], TOLD).counterexamples == (
        "row 2 of t1 is 'b' with id 7; it must be 'b' with id 2",
    )


def test_of_a_dead_worker_one_step_more_is_accepted() -> None:
    assert judged(ONE_MORE, TOLD, ONE_MORE).status == "ok"
    assert judged(TOLD, TOLD, ONE_MORE).status == "ok"
    assert judged(ONE_MORE, TOLD).status == "failed"


def test_an_empty_table_is_accepted_where_nothing_was_committed() -> None:
    assert judged([], []).status == "ok"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (["a"], ("t1 lacks the row 'b'",)),
        (["a", "b", "z"], ("t1 holds the row 'z', which",)),
        (["a", "b", "b"], ("t1 holds the row 'b', which",)),
        (["a", "z"], ("t1 lacks the row 'b'", "t1 holds the row 'z', which")),
        ([], ("t1 lacks the row 'a'", "t1 lacks the row 'b'")),
    ],
)
def test_what_is_wrong_is_named(found: list[str], words: tuple[str, ...]) -> None:
    check = judged(found, TOLD)
    assert (check.status, check.problems) == ("failed", len(words))
    for told, word in zip(check.counterexamples, words, strict=True):
        assert told.startswith(word)


def test_rows_of_no_state_are_held_against_the_nearest_one() -> None:
    check = judged([*ONE_MORE, "z"], TOLD, ONE_MORE)
    assert check.counterexamples == ("t1 holds the row 'z', which it must not hold",)


@pytest.mark.parametrize(
    ("found", "states", "said"),
    [
        (["a", "z"], (["a", "b", "c"], ["a"]), "t1 holds the row 'z', which it must not hold"),
        (["a", "b", "c", "d"], (["a"], ["a", "b", "c", "d", "e"]), "t1 lacks the row 'e'"),
    ],
)
def test_the_nearest_state_is_that_with_fewest_rows_gone_and_foreign_together(
    found: list[str], states: tuple[list[str], ...], said: str
) -> None:
    assert judged(found, *states).counterexamples == (said,)


def test_every_table_counts_as_one_that_was_checked() -> None:
    tally = Tally("last commit")
    for name in ("t1", "t2"):
        check_table(tally, name, [(1, "a")], [["a"]])
    assert tally.check() == Check("last commit", "ok", 2)


rows = st.lists(st.sampled_from("abc"), max_size=5)


@given(rows, rows, rows)
def test_nothing_between_two_states_is_accepted(found: list[str], one: list[str], other: list[str]) -> None:
    assume(found not in (one, other))
    assert judged(found, one, other).status == "failed"
