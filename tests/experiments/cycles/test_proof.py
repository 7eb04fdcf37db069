"""A table's rows are accepted when they are those of a state that it may be in, and of nothing else."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sqlstress.experiments.classics.cycles_work import check_table
from sqlstress.report import Check
from sqlstress.report.results import Tally

TOLD, ONE_MORE = ["a", "b"], ["a", "b", "c"]


def judged(found: list[str], *allowed: list[str]) -> Check:
    tally = Tally("last commit")
    check_table(tally, "t1", list(enumerate(found, 1)), allowed)
    return tally.check()


def test_the_rows_that_the_worker_was_told_of_are_accepted() -> None:
    assert judged(TOLD, TOLD) == Check("last commit", "ok", 1)
    assert judged([], []).status == "ok"
    # Of a dead worker one step more is accepted.
    assert judged(ONE_MORE, TOLD, ONE_MORE).status == judged(TOLD, TOLD, ONE_MORE).status == "ok"
    assert judged(ONE_MORE, TOLD).status == "failed"


def test_rows_under_another_id_are_named() -> None:
    assert judged(["b", "a"], TOLD).counterexamples == (
        "row 1 of t1 is 'b' with id 1; it must be 'a' with id 1",
        "row 2 of t1 is 'a' with id 2; it must be 'b' with id 2",
    )
    tally = Tally("last commit")
    check_table(tally, "t1", [(1, "a"), (7, "b")], [TOLD])
    check_table(tally, "t2", [(1, "a")], [["a"]])
    assert tally.check().counterexamples == ("row 2 of t1 is 'b' with id 7; it must be 'b' with id 2",)
    assert tally.check().checked == 2


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


@pytest.mark.parametrize(
    ("found", "states", "said"),
    [
        (["a", "z"], (["a", "b", "c"], ["a"]), "t1 holds the row 'z', which it must not hold"),
        (["a", "b", "c", "d"], (["a"], ["a", "b", "c", "d", "e"]), "t1 lacks the row 'e'"),
        ([*ONE_MORE, "z"], (TOLD, ONE_MORE), "t1 holds the row 'z', which it must not hold"),
    ],
)
def test_the_nearest_state_is_that_with_fewest_rows_gone_and_foreign_together(
    found: list[str], states: tuple[list[str], ...], said: str
) -> None:
    assert judged(found, *states).counterexamples == (said,)


rows = st.lists(st.sampled_from("abc"), max_size=5)


@given(rows, rows, rows)
def test_nothing_between_two_states_is_accepted(found: list[str], one: list[str], other: list[str]) -> None:
    assume(found not in (one, other))
    assert judged(found, one, other).status == "failed"
