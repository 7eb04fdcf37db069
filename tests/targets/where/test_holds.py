"""Overlaps of waits and holds, compared with sums by hand, tick by tick."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sqlstress.report.results import (
    BINDING,
    CHECKPOINT,
    COMMIT,
    FREE,
    HELD,
    OWN,
    PROCESSOR,
    SQLITE,
    SYNC,
    WorkerResult,
)
from sqlstress.targets.sqlite import shim as rec
from sqlstress.targets.sqlite.where import MIN_OPERATIONS, WAIT, TrialSpans, account, held_share, split

CLOSES = 100_000

Written = Sequence[tuple[int, int, int]]
"""Kind, begin and end of each span of a file."""


def words_of(accounts: Sequence[Written], opens: int, closes: int, file: int = 7) -> Any:
    """Return the shared memory with the spans of each process."""
    words = array("q", bytes(8 * rec.size(len(accounts))))
    for area, spans in zip(rec.areas(words, len(accounts)), accounts, strict=True):
        fill(area, {rec.OPENS: opens, rec.CLOSES: closes, rec.PROCESSOR: -1, rec.ROOM: area.room})
        for kind, begin, end in sorted(spans, key=lambda span: span[2]):
            write(area, begin, end, kind | file << 8)
    return words


def fill(area: rec.SpanArea, values: Mapping[int, int]) -> None:
    for place, value in values.items():
        area.words[place] = value


def write(area: rec.SpanArea, begin: int, end: int, tag: int) -> None:
    """Write a span like the C code."""
    place = rec.RING + rec.SPAN * (area[rec.SPANS] % area.room)
    for offset, value in enumerate((begin, end, tag)):
        area.words[place + offset] = value
    area.words[rec.SPANS] += 1


def spans_in(words: Any, processes: int) -> TrialSpans:
    return TrialSpans(rec.areas(words, processes))


def worker(number: int, **fields: Any) -> WorkerResult:
    return WorkerResult(number, 10, 10, CLOSES / 1e9, **fields)


edges = st.lists(st.integers(0, 400), min_size=2, max_size=24, unique=True).map(sorted)


@given(edges, edges, st.lists(st.integers(1, 3), min_size=12, max_size=12))
def test_held_share_of_a_wait_equals_the_sum_by_ticks(
    holding: list[int], waiting: list[int], holders: list[int]
) -> None:
    holds = list(zip(holding[::2], holding[1::2], strict=False))
    waits = list(zip(waiting[::2], waiting[1::2], strict=False))
    accounts: list[list[tuple[int, int, int]]] = [[(rec.WAIT_WRITE, *wait) for wait in waits], [], [], []]
    for holder, hold in zip(holders, holds, strict=False):
        accounts[holder].append((rec.HOLD_WRITE, *hold))
    spans = spans_in(words_of(accounts, 0, CLOSES), 4)
    ticks = {tick for low, high in holds for tick in range(low, high)}
    waited = [tick for low, high in waits for tick in range(low, high)]
    truth = sum(tick in ticks for tick in waited) / len(waited) if waited else 0.0
    assert held_share(spans, 1) == pytest.approx(truth)
    assert sum(b.end - b.begin for wait in spans.waits for b in spans.blocked(wait)) == round(
        truth * len(waited)
    )
    assert not spans.contradiction()


@given(edges, st.integers(0, 399))
def test_overlapping_holds_of_a_lock_are_a_contradiction(holding: list[int], at: int) -> None:
    holds = list(zip(holding[::2], holding[1::2], strict=False))
    mine = [(rec.HOLD_WRITE, *hold) for hold in holds]
    assert spans_in(words_of([mine, []], 0, CLOSES), 2).contradiction() is False
    at_once = any(low < at + 1 and high > at for low, high in holds)
    words = words_of([mine, [(rec.HOLD_WRITE, at, at + 1)]], 0, CLOSES)
    assert spans_in(words, 2).contradiction() is at_once
    assert (account(words, 2, [worker(1), worker(2)]) is None) is at_once


def test_readers_may_hold_at_once() -> None:
    both = [[(rec.HOLD_READ, 0, 50)], [(rec.HOLD_READ, 20, 70)], [(rec.WAIT_ALONE, 10, 100)]]
    spans = spans_in(words_of(both, 0, CLOSES), 3)
    assert not spans.contradiction()
    assert held_share(spans, 3) == pytest.approx(60 / 90)


def test_holds_are_split_into_checkpoint_sync_and_commit() -> None:
    holder = [
        (rec.HOLD_WRITE, 0, 100),
        (rec.SYNC, 30, 60),
        (rec.HOLD_WRITE, 200, 300),
        (rec.CHECKPOINT, 190, 310),
        (rec.SYNC, 210, 290),
    ]
    waiter = [(rec.WAIT_WRITE, 10, 110), (rec.WAIT_WRITE, 220, 350)]
    spans = spans_in(words_of([waiter, holder], 0, CLOSES), 2)
    blocked = [(b.what, b.begin, b.end) for wait in spans.waits for b in spans.blocked(wait)]
    assert blocked == [(COMMIT, 10, 30), (SYNC, 30, 60), (COMMIT, 60, 100), (CHECKPOINT, 220, 300)]
    # A wait that begins during a checkpoint's sync is a wait for the checkpoint.
    holder = [(rec.HOLD_WRITE, 0, 300), (rec.CHECKPOINT, 0, 310), (rec.SYNC, 100, 200)]
    spans = spans_in(words_of([[(rec.WAIT_WRITE, 150, 400)], holder], 0, CLOSES), 2)
    blocked = [(b.what, b.begin, b.end) for wait in spans.waits for b in spans.blocked(wait)]
    assert blocked == [(CHECKPOINT, 150, 300)]


def test_process_does_not_wait_for_its_own_lock() -> None:
    spans = [(rec.HOLD_READ, 0, 200), (rec.WAIT_ALONE, 10, 100)]
    assert held_share(spans_in(words_of([spans, []], 0, CLOSES), 2), 1) == 0


def test_overrun_ring_counts_only_its_complete_end() -> None:
    words = words_of([[], []], 0, 10**9)
    holder, waiter = rec.areas(words, 2)
    for number in range(holder.room + 10):
        write(holder, 10 * number, 10 * number + 5, rec.HOLD_WRITE | 7 << 8)
    write(waiter, 0, 50, rec.WAIT_WRITE | 7 << 8)  # its holder is no longer recorded
    write(waiter, 1000, 1010, rec.WAIT_WRITE | 7 << 8)
    spans = spans_in(words, 2)
    assert spans.complete_from == 105
    assert held_share(spans, 2) == pytest.approx(0.5)


@given(
    st.integers(0, 40_000), st.integers(0, 40_000), st.integers(0, 40_000), st.integers(0, 9_000),
    st.integers(-1, 120_000), st.floats(0, 1), st.integers(0, 30_000),
)  # fmt: skip
@example(waiting=0, syncing=0, writing=0, statements=100, processor=120_000, share=0.5, harness=100)
def test_parts_add_up_to_the_window_and_are_not_negative(
    waiting: int, syncing: int, writing: int, statements: int, processor: int, share: float, harness: int
) -> None:
    words = words_of([[]], 0, CLOSES)
    (area,) = rec.areas(words, 1)
    sums = {rec.WAITING: waiting, rec.SYNCING_WAL: syncing, rec.WRITING: writing}
    fill(area, {**sums, rec.STATEMENTS_NS: statements, rec.PROCESSOR: processor})
    fill(area, {rec.FROM: 1, rec.TO: CLOSES + 1, rec.SYNCS_SEEN: 100, rec.SYNCS_PROCESSOR: 60})
    if waiting + syncing + writing > CLOSES:
        return
    parts = split(area, harness, share)
    assert sum(parts.values()) == CLOSES
    assert min(parts.values()) >= 0
    assert (PROCESSOR in parts) is (processor >= 0)
    if processor < 0:
        assert parts[HELD] + parts[FREE] == waiting
        assert parts[SQLITE] <= 17 * statements
        assert parts[BINDING] <= CLOSES - waiting - syncing - writing


def test_slowest_percent_has_its_causes_and_holders() -> None:
    quick = [(rec.TRANSACTION, 50_000 + 10 * n, 50_005 + 10 * n) for n in range(2 * MIN_OPERATIONS - 1)]
    waiter = [(rec.TRANSACTION, 0, 1000), (rec.WAIT_WRITE, 0, 900), (rec.SYNC, 920, 990), *quick]
    holder = [(rec.HOLD_WRITE, 100, 700), (rec.CHECKPOINT, 100, 700)]
    words = words_of([waiter, holder], 0, CLOSES)
    recorded = account(words, 2, [worker(1)])
    assert recorded and recorded.slowest and recorded.moment
    assert (recorded.slowest.operations, recorded.slowest.of, recorded.slowest.total_ns) == (
        2,
        2 * MIN_OPERATIONS,
        1005,
    )
    parts = {HELD: 600, FREE: 300, CHECKPOINT: 0, SYNC: 70, OWN: 35}
    assert recorded.slowest.parts == parts
    assert [(hold.process, hold.what, hold.ns) for hold in recorded.slowest.held_by] == [(2, CHECKPOINT, 600)]
    assert (recorded.moment.process, recorded.moment.at_ns, recorded.moment.length_ns) == (1, 0, 1000)
    assert (1, WAIT, 0, 900) in recorded.moment.spans
    assert (2, CHECKPOINT, 100, 700) in recorded.moment.spans


def test_wait_pending_at_the_end_of_the_window_is_counted() -> None:
    words = words_of([[(rec.WAIT_WRITE, CLOSES - 400, CLOSES + 50)], []], 0, CLOSES)
    recorded = account(words, 2, [worker(1), worker(2)])
    assert recorded and recorded.pending_ns == 400
    fill(rec.areas(words, 2)[1], {rec.PENDING: 30_000})  # the worker was killed while it waited
    recorded = account(words, 2, [worker(1), worker(2, error="was killed")])
    assert recorded and (recorded.pending_ns, recorded.time_ns) == (CLOSES - 30_000, CLOSES)


def test_account_is_missing_if_all_workers_died() -> None:
    words = words_of([[]], 0, CLOSES)
    assert account(words, 1, [worker(1, error="was killed by SIGKILL")]) is None
