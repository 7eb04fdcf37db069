"""The checks of a hunt on histories written by hand, each with a single fault."""

from typing import Any

import pytest

from sqlstress.experiments.hunt.proof import (
    STALE,
    TORN,
    TOTAL,
    SnapshotState,
    Writer,
    contradictions,
    losses,
    mixtures,
)
from sqlstress.experiments.hunt.spec import filler_of

SOUND = SnapshotState(
    acknowledged=[4, 9],
    seen=[4, 7],
    counts={0: 4, 1: 10},
    sums=(TOTAL, TOTAL),
    parts={0: 4, 1: 10},
    log=[(0, 1, 4, 4), (1, 3, 10, 8)],
    again={0: 4, 1: 10},
    begun=[5, 10],
)


def test_consistent_and_current_state_is_accepted() -> None:
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
def test_contradiction_is_rejected(wrong: dict[str, Any], check: str, words: str) -> None:
    found = [*contradictions(SOUND._replace(**wrong))]
    assert (check, True) in [(doubt.check, words in doubt.text) for doubt in found], found


WRITER = Writer(1, acknowledged=9, begun=10, last={16: 9, 17: 3, 18: 0})
FOUND = {16: 9, 17: 3, 18: 0}
"""Last transactions in the writer's rows, by row."""


@pytest.mark.parametrize(("count", "changed"), [(9, {}), (10, {17: 10}), (10, {18: 10})])
def test_unacknowledged_commit_may_be_there_or_not(count: int, changed: dict[int, int]) -> None:
    assert [*losses(WRITER, {1: count}, FOUND | changed)] == []


@pytest.mark.parametrize(
    ("counts", "changed", "words"),
    [
        ({1: 8}, {}, "9 transactions of writer 2 were acknowledged, and the database has 8"),
        ({1: 11}, {}, "the database has 11"),
        ({}, {}, "the database has None"),
        ({1: 9}, {16: 8}, "transaction 9 of writer 2, and the row is of transaction 8"),
        ({1: 9}, {17: None}, "row 17: the last acknowledged write is transaction 3 of writer 2"),
        ({1: 9}, {17: 9}, "transaction 3 of writer 2, and the row is of transaction 9"),
        ({1: 9}, {18: 9}, "row 18: no write of writer 2 was acknowledged, and the row is of transaction 9"),
        ({1: "x"}, {17: b""}, "the database has 'x'"),
    ],
)
def test_missing_acknowledged_commit_is_rejected(
    counts: dict[int, Any], changed: dict[int, Any], words: str
) -> None:
    assert words in "; ".join(losses(WRITER, counts, FOUND | changed))


@pytest.mark.parametrize("size", [0, 3, 100])
def test_row_of_one_transaction_is_accepted(size: int) -> None:
    made = [(0, 0, bytes(size)), *((row, 300 + row, filler_of(300 + row, size)) for row in (1, 2))]
    assert [*mixtures(made, size)] == []


@pytest.mark.parametrize(
    ("transaction", "filler"),
    [
        (7, filler_of(6, 100)),
        (7, filler_of(7, 60) + filler_of(6, 40)),
        (7, filler_of(7, 99)),
        (7, None),
        ("7", filler_of(7, 100)),
        (-1, filler_of(7, 100)),
    ],
    ids=("older", "half of it", "shorter", "none", "text", "negative"),
)
def test_row_of_two_transactions_is_rejected(transaction: Any, filler: bytes | None) -> None:
    assert [text[:6] for text in mixtures([(5, transaction, filler)], 100)] == ["row 5:"]
