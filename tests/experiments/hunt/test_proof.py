"""What a hunt's checks accept and reject: histories written by hand, with a single thing wrong in each."""

from __future__ import annotations

from typing import Any

import pytest

from sqlstress.experiments.hunt.proof import STALE, TORN, TOTAL, Snapshot, Writer, contradictions, losses

SOUND = Snapshot(
    acknowledged=[4, 9],
    seen=[4, 7],
    counts={0: 4, 1: 10},
    sums=(TOTAL, TOTAL),
    parts={0: 4, 1: 10},
    log=[(0, 1, 4, 4), (1, 3, 10, 8)],
    again={0: 4, 1: 10},
    begun=[5, 10],
)


def test_one_state_that_is_new_enough_is_accepted() -> None:
    assert [*contradictions(SOUND)] == []
    unused = SOUND._replace(
        acknowledged=[0, 0], seen=[0, 0], counts={}, parts={}, log=[], again={}, begun=[0, 0]
    )
    assert [*contradictions(unused)] == []


@pytest.mark.parametrize(
    ("wrong", "check", "words"),
    [
        ({"acknowledged": [4, 11]}, STALE, "10 transactions of writer 2, and 11 had been acknowledged"),
        ({"seen": [5, 7]}, STALE, "4 transactions of writer 1, and an earlier read 5"),
        ({"counts": {1: 10}, "again": {1: 10}, "parts": {1: 10}}, STALE, "0 transactions of writer 1"),
        ({"begun": [3, 10]}, TORN, "4 transactions of writer 1, which had begun 3"),
        ({"parts": {0: 4, 1: 9}}, TORN, "10 transactions of writer 2, and rows of transaction 9"),
        ({"parts": {0: 4, 1: 11}}, TORN, "rows of transaction 11"),
        ({"sums": (TOTAL - 1, TOTAL)}, TORN, f"{TOTAL - 1} by table"),
        ({"sums": (TOTAL, None)}, TORN, "None by index"),
        ({"log": [(0, 1, 4, 3), (1, 3, 10, 8)]}, TORN, "3 rows, from transaction 1 to 4"),
        ({"log": [(0, 1, 4, 4), (1, 3, 9, 7)]}, TORN, "7 rows, from transaction 3 to 9"),
        ({"again": {0: 4, 1: 11}}, TORN, "saw two states"),
        ({"counts": {0: -1, 1: 10}}, STALE, "-1 transactions of writer 1"),
    ],
)
def test_what_can_not_be_is_rejected(wrong: dict[str, Any], check: str, words: str) -> None:
    found = [*contradictions(SOUND._replace(**wrong))]
    assert (check, True) in [(doubt.check, words in doubt.text) for doubt in found], found


WRITER = Writer(1, acknowledged=9, begun=10, last={16: 9, 17: 3})


@pytest.mark.parametrize("count", [9, 10])
def test_a_commit_whose_end_nobody_was_told_of_may_be_there_or_not(count: int) -> None:
    assert [*losses(WRITER, {1: count}, {16: 9, 17: count})] == []


@pytest.mark.parametrize(
    ("counts", "parts", "words"),
    [
        (
            {1: 8},
            {16: 9, 17: 3},
            "9 transactions of writer 2 were acknowledged, and the database has 8",
        ),
        ({1: 11}, {16: 9, 17: 3}, "the database has 11"),
        ({}, {16: 9, 17: 3}, "the database has None"),
        (
            {1: 9},
            {16: 8, 17: 3},
            "transaction 9 of writer 2, and the row is of transaction 8",
        ),
        (
            {1: 9},
            {16: 9},
            "row 17: the last acknowledged write is transaction 3 of writer 2",
        ),
        ({1: "x"}, {16: 9, 17: b""}, "the database has x"),
    ],
)
def test_what_was_acknowledged_and_is_gone_is_rejected(
    counts: dict[int, Any], parts: dict[int, Any], words: str
) -> None:
    assert words in "; ".join(losses(WRITER, counts, parts))
