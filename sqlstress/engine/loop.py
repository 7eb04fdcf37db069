"""The timed loop: one function of a source, a window and shared words.

Between an operation's begin and its end there is one call into the store. Everything else (drawing
keys, counting, acknowledging, checking) is done for a whole chunk at once, between the chunks, so it
is in no operation's latency. What it costs is measured and reported.

When an operation begins is the business of a Run. In a closed loop it begins when the one before it has
ended, so one look at the clock is both; nobody who reads stamps may take that for granted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

from sqlstress.engine.protocols import FAILED, Chunk, SelfDriven, Source, Stamps
from sqlstress.engine.tally import Tally, Totals, Window

FIRST_CHUNK = 8
SHORT_NS = 8_000_000
LONG_NS = 32_000_000

Clock = Callable[[], int]
Run = Callable[[Source, Chunk, int, int, Clock], tuple[list[Any], Stamps]]
"""Runs a chunk's operations: from when on, until the window closes at which time, by which clock.

Returns the results and the stamps of those that it ran: none where it was idle.
"""


def work_through(
    source: Source | SelfDriven, window: Window, limit: int | None, progress: Any, stop: Any
) -> Totals:
    """Work one operation directly after the other, in the source's own loop if it has one."""
    if isinstance(source, SelfDriven):
        return source.run(window, limit, progress, stop)
    return timed_loop(source, window, limit, progress, stop, closed_loop(source))


def timed_loop(
    source: Source,
    window: Window,
    limit: int | None,
    progress: Any,
    stop: Any,
    run: Run,
    clock: Clock = time.perf_counter_ns,
) -> Totals:
    """Work until the window closes, `limit` operations are done, the source is dry, or stop[0] is set.

    progress[0] is raised by the operations done, not by those given up, after every chunk.
    """
    tally = Tally(window, source.kinds, source.row_weights)
    size, left = FIRST_CHUNK, limit
    busy = source.busy_counts()
    last = clock()
    while last < window.closes_ns and not stop[0] and left != 0:
        chunk = source.next_chunk(size if left is None else min(size, left))
        if chunk is None:
            break
        ready = clock()
        results, stamps = run(source, chunk, ready, window.closes_ns, clock)
        done = len(results)
        ended = stamps.ends[-1] if done else window.closes_ns
        tally.add(chunk.kinds, stamps, chunk.sizes)
        settling = clock()
        source.settle(chunk, done, results, stamps)
        progress[0] += done - chunk.kinds[:done].count(FAILED)
        left = None if left is None else left - done
        size = next_size(size, done, ended - ready, source.largest_chunk)
        busy_before, busy = busy, source.busy_counts()
        now = clock()
        if window.opens_ns <= ended < window.closes_ns:
            totals = tally.totals
            totals.harness_ns += ready - last + now - ended
            totals.proof_ns += now - settling
            totals.busy += busy[0] - busy_before[0]
            totals.busy_snapshot += busy[1] - busy_before[1]
        last = now
    return tally.finish()


def closed_loop(source: Source) -> Run:
    """Return what runs a chunk's operations one directly after the other."""
    return run_acknowledged if source.acknowledges else run_unacknowledged


def run_acknowledged(
    source: Source, chunk: Chunk, begin: int, closes_ns: int, clock: Clock
) -> tuple[list[Any], Stamps]:
    """Run a chunk's operations until the window closes.

    Each end goes into the source's shared words at once: it is the acknowledgement. Whoever needs the
    begins there too lays the two rows one over the other, so that one store is an end and the next begin.
    """
    results: list[Any] = []
    keep, (begins, ends) = results.append, source.stamps
    begins[0] = begin
    # strict=False: calls may be an endless repeat(), and places are endless.
    for place, call, params in zip(count(), chunk.calls, chunk.params, strict=False):
        try:
            keep(call(params))
        except Exception as error:
            source.give_up(chunk, len(results), error)
            keep(None)
        ends[place] = now = clock()
        if now >= closes_ns:
            break
    return results, back_to_back(begin, ends[: len(results)].tolist())


def run_unacknowledged(
    source: Source, chunk: Chunk, begin: int, closes_ns: int, clock: Clock
) -> tuple[list[Any], Stamps]:
    """Do the same for a source of whose stamps nothing has to outlive the process: that is cheaper."""
    results: list[Any] = []
    ends: list[int] = []
    keep, stamp = results.append, ends.append
    for call, params in zip(chunk.calls, chunk.params, strict=False):
        try:
            keep(call(params))
        except Exception as error:
            source.give_up(chunk, len(results), error)
            keep(None)
        now = clock()
        stamp(now)
        if now >= closes_ns:
            break
    return results, back_to_back(begin, ends)


def back_to_back(begin: int, ends: list[int]) -> Stamps:
    """Return the stamps of operations each of which, after the first, began when the one before it ended."""
    begins = [begin, *ends]
    begins.pop()
    return Stamps(begins, ends)


def next_size(size: int, done: int, took_ns: int, largest: int) -> int:
    """Return the next chunk's size: long enough to cost little, short enough to be seen and stopped."""
    if done < size:
        return size
    if took_ns < SHORT_NS:
        return min(2 * size, largest)
    return max(size // 2, FIRST_CHUNK) if took_ns > LONG_NS else size
