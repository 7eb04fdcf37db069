"""Waits laid over holds, and what is made of them: against sums by hand, tick by tick."""

from __future__ import annotations

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
from sqlstress.targets.sqlite.where import FEWEST, WAIT, Seen, account, held_share, split

CLOSES = 100_000

Written = Sequence[tuple[int, int, int]]
"""Kind, begin and end of each span, of one file."""


def words_of(accounts: Sequence[Written], opens: int, closes: int, file: int = 7) -> Any:
    """Return the words in which each process wrote its spans."""
    words = array("q", bytes(8 * rec.size(len(accounts))))
    for own, spans in zip(rec.areas(words, len(accounts)), accounts, strict=True):
        fill(own, {rec.OPENS: opens, rec.CLOSES: closes, rec.PROCESSOR: -1, rec.ROOM: own.room})
        for kind, begin, end in sorted(spans, key=lambda one: one[2]):
            write(own, begin, end, kind | file << 8)
    return words


def fill(own: rec.Area, values: Mapping[int, int]) -> None:
    for place, value in values.items():
        own.words[place] = value


def write(own: rec.Area, begin: int, end: int, tag: int) -> None:
    """Write a span as the C code does."""
    place = rec.RING + rec.SPAN * (own[rec.SPANS] % own.room)
    for offset, value in enumerate((begin, end, tag)):
        own.words[place + offset] = value
    own.words[rec.SPANS] += 1


def seen(words: Any, processes: int) -> Seen:
    return Seen(rec.areas(words, processes))


def worker(number: int, **known: Any) -> WorkerResult:
    return WorkerResult(number, 10, 10, CLOSES / 1e9, **known)


edges = st.lists(st.integers(0, 400), min_size=2, max_size=24, unique=True).map(sorted)


@given(edges, edges, st.lists(st.integers(1, 3), min_size=12, max_size=12))
def test_what_was_held_while_one_waited_is_the_sum_tick_by_tick(
    holding: list[int], waiting: list[int], holders: list[int]
) -> None:
    holds = list(zip(holding[::2], holding[1::2], strict=False))
    waits = list(zip(waiting[::2], waiting[1::2], strict=False))
    accounts: list[list[tuple[int, int, int]]] = [[(rec.WAIT_WRITE, *wait) for wait in waits], [], [], []]
    for holder, one in zip(holders, holds, strict=False):
        accounts[holder].append((rec.HOLD_WRITE, *one))
    found = seen(words_of(accounts, 0, CLOSES), 4)
    ticks = {tick for low, high in holds for tick in range(low, high)}
    waited = [tick for low, high in waits for tick in range(low, high)]
    truth = sum(tick in ticks for tick in waited) / len(waited) if waited else 0.0
    assert held_share(found, 1) == pytest.approx(truth)
    assert sum(b.end - b.begin for wait in found.waits for b in found.blocked(wait)) == round(
        truth * len(waited)
    )
    assert not found.contradiction()


@given(edges, st.integers(0, 399))
def test_a_history_in_which_two_held_one_lock_at_once_is_rejected(holding: list[int], at: int) -> None:
    holds = list(zip(holding[::2], holding[1::2], strict=False))
    mine = [(rec.HOLD_WRITE, *one) for one in holds]
    assert seen(words_of([mine, []], 0, CLOSES), 2).contradiction() is False
    at_once = any(low < at + 1 and high > at for low, high in holds)
    words = words_of([mine, [(rec.HOLD_WRITE, at, at + 1)]], 0, CLOSES)
    assert seen(words, 2).contradiction() is at_once
    assert (account(words, 2, [worker(1), worker(2)]) is None) is at_once


def test_readers_may_hold_at_once() -> None:
    both = [[(rec.HOLD_READ, 0, 50)], [(rec.HOLD_READ, 20, 70)], [(rec.WAIT_ALONE, 10, 100)]]
    found = seen(words_of(both, 0, CLOSES), 3)
    assert not found.contradiction()
    assert held_share(found, 3) == pytest.approx(60 / 90)


def test_a_hold_is_a_checkpoint_with_its_syncs_then_a_sync_and_a_commit_otherwise() -> None:
    holder = [
        (rec.HOLD_WRITE, 0, 100),
        (rec.SYNC, 30, 60),
        (rec.HOLD_WRITE, 200, 300),
        (rec.CHECKPOINT, 190, 310),
        (rec.SYNC, 210, 290),
    ]
    waiter = [(rec.WAIT_WRITE, 10, 110), (rec.WAIT_WRITE, 220, 350)]
    found = seen(words_of([waiter, holder], 0, CLOSES), 2)
    blocked = [(b.what, b.begin, b.end) for wait in found.waits for b in found.blocked(wait)]
    assert blocked == [(COMMIT, 10, 30), (SYNC, 30, 60), (COMMIT, 60, 100), (CHECKPOINT, 220, 300)]
    # Who begins to wait in a checkpoint's sync waits for the checkpoint.
    holder = [(rec.HOLD_WRITE, 0, 300), (rec.CHECKPOINT, 0, 310), (rec.SYNC, 100, 200)]
    found = seen(words_of([[(rec.WAIT_WRITE, 150, 400)], holder], 0, CLOSES), 2)
    blocked = [(b.what, b.begin, b.end) for wait in found.waits for b in found.blocked(wait)]
    assert blocked == [(CHECKPOINT, 150, 300)]


def test_nobody_waits_for_himself() -> None:
    own = [(rec.HOLD_READ, 0, 200), (rec.WAIT_ALONE, 10, 100)]
    assert held_share(seen(words_of([own, []], 0, CLOSES), 2), 1) == 0


def test_of_a_ring_that_ran_over_only_the_end_counts() -> None:
    words = words_of([[], []], 0, 10**9)
    one, other = rec.areas(words, 2)
    for number in range(one.room + 10):
        write(one, 10 * number, 10 * number + 5, rec.HOLD_WRITE | 7 << 8)
    write(other, 0, 50, rec.WAIT_WRITE | 7 << 8)  # nobody knows any more who held it
    write(other, 1000, 1010, rec.WAIT_WRITE | 7 << 8)
    found = seen(words, 2)
    assert found.complete_from == 105
    assert held_share(found, 2) == pytest.approx(0.5)


@given(
    st.integers(0, 40_000), st.integers(0, 40_000), st.integers(0, 40_000), st.integers(0, 9_000),
    st.integers(-1, 120_000), st.floats(0, 1), st.integers(0, 30_000),
)  # fmt: skip
@example(waiting=0, syncing=0, writing=0, statements=100, processor=120_000, share=0.5, harness=100)
def test_the_parts_add_up_to_the_window_and_none_is_below_nothing(
    waiting: int, syncing: int, writing: int, statements: int, processor: int, share: float, harness: int
) -> None:
    words = words_of([[]], 0, CLOSES)
    (own,) = rec.areas(words, 1)
    sums = {rec.WAITING: waiting, rec.SYNCING_WAL: syncing, rec.WRITING: writing}
    fill(own, {**sums, rec.STATEMENTS_NS: statements, rec.PROCESSOR: processor})
    fill(own, {rec.FROM: 1, rec.TO: CLOSES + 1, rec.SYNCS_SEEN: 100, rec.SYNCS_PROCESSOR: 60})
    if waiting + syncing + writing > CLOSES:
        return
    parts = split(own, harness, share)
    assert sum(parts.values()) == CLOSES
    assert min(parts.values()) >= 0
    assert (PROCESSOR in parts) is (processor >= 0)
    if processor < 0:
        assert parts[HELD] + parts[FREE] == waiting
        assert parts[SQLITE] <= 17 * statements
        assert parts[BINDING] <= CLOSES - waiting - syncing - writing


def test_the_slowest_percent_says_what_it_waited_for_and_for_whom() -> None:
    quick = [(rec.TRANSACTION, 50_000 + 10 * n, 50_005 + 10 * n) for n in range(2 * FEWEST - 1)]
    waiter = [(rec.TRANSACTION, 0, 1000), (rec.WAIT_WRITE, 0, 900), (rec.SYNC, 920, 990), *quick]
    holder = [(rec.HOLD_WRITE, 100, 700), (rec.CHECKPOINT, 100, 700)]
    words = words_of([waiter, holder], 0, CLOSES)
    told = account(words, 2, [worker(1)])
    assert told and told.slowest and told.moment
    assert (told.slowest.operations, told.slowest.of, told.slowest.total_ns) == (2, 2 * FEWEST, 1005)
    parts = {HELD: 600, FREE: 300, CHECKPOINT: 0, SYNC: 70, OWN: 35}
    assert told.slowest.parts == parts
    assert [(one.process, one.what, one.ns) for one in told.slowest.held_by] == [(2, CHECKPOINT, 600)]
    assert (told.moment.process, told.moment.at_ns, told.moment.length_ns) == (1, 0, 1000)
    assert (1, WAIT, 0, 900) in told.moment.spans
    assert (2, CHECKPOINT, 100, 700) in told.moment.spans


def test_a_wait_that_went_on_when_the_window_closed_is_told() -> None:
    words = words_of([[(rec.WAIT_WRITE, CLOSES - 400, CLOSES + 50)], []], 0, CLOSES)
    told = account(words, 2, [worker(1), worker(2)])
    assert told and told.pending_ns == 400
    fill(rec.areas(words, 2)[1], {rec.PENDING: 30_000})  # it was killed while it waited
    told = account(words, 2, [worker(1), worker(2, error="was killed")])
    assert told and (told.pending_ns, told.time_ns) == (CLOSES - 30_000, CLOSES)


def test_of_workers_that_all_died_nothing_is_told() -> None:
    words = words_of([[]], 0, CLOSES)
    assert account(words, 1, [worker(1, error="was killed by SIGKILL")]) is None
