"""The timed loop: one function of a source, a window and shared words.

Between two stamps there is one call into the store. Everything else (drawing keys, counting,
acknowledging, checking) is done for a whole chunk at once, between the chunks, so it is in no
operation's latency. What it costs is measured and reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

from sqlstress.engine.protocols import FAILED, Chunk, Source
from sqlstress.engine.tally import Tally, Totals, Window

FIRST_CHUNK = 8
SHORT_NS = 8_000_000
LONG_NS = 32_000_000


def timed_loop(
    source: Source,
    window: Window,
    limit: int | None,
    progress: Any,
    stop: Any,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Totals:
    """Work until the window closes, `limit` operations are done, the source is dry, or stop[0] is set.

    progress[0] is raised by the operations done, not by those given up, after every chunk.
    """
    tally = Tally(window, source.kinds, source.row_weights)
    run = run_acknowledged if source.acknowledges else run_unacknowledged
    size, left = FIRST_CHUNK, limit
    busy = source.busy_counts()
    last = clock()
    while last < window.closes_ns and not stop[0] and left != 0:
        chunk = source.next_chunk(size if left is None else min(size, left))
        if chunk is None:
            break
        results, stamps = run(source, chunk, window.closes_ns, clock)
        done = len(results)
        tally.add(chunk.kinds, stamps, chunk.sizes)
        settling = clock()
        source.settle(chunk, done, results, stamps)
        progress[0] += done - chunk.kinds[:done].count(FAILED)
        left = None if left is None else left - done
        size = next_size(size, done, stamps[-1] - stamps[0], source.largest_chunk)
        busy_before, busy = busy, source.busy_counts()
        now = clock()
        if window.opens_ns <= stamps[-1] < window.closes_ns:
            totals = tally.totals
            totals.harness_ns += stamps[0] - last + now - stamps[-1]
            totals.proof_ns += now - settling
            totals.busy += busy[0] - busy_before[0]
            totals.busy_snapshot += busy[1] - busy_before[1]
        last = now
    return tally.finish()


def run_acknowledged(
    source: Source, chunk: Chunk, closes_ns: int, clock: Callable[[], int]
) -> tuple[list[Any], list[int]]:
    """Run a chunk's operations until the window closes; return their results, and one stamp more than those.

    Each stamp goes into the source's shared words at once: it is the acknowledgement.
    """
    results: list[Any] = []
    keep, stamps = results.append, source.stamps
    stamps[0] = clock()
    # strict=False: calls may be an endless repeat(), and places are endless.
    for place, call, params in zip(count(1), chunk.calls, chunk.params, strict=False):
        try:
            keep(call(params))
        except Exception as error:
            source.give_up(chunk, len(results), error)
            keep(None)
        stamps[place] = now = clock()
        if now >= closes_ns:
            break
    return results, stamps[: len(results) + 1].tolist()


def run_unacknowledged(
    source: Source, chunk: Chunk, closes_ns: int, clock: Callable[[], int]
) -> tuple[list[Any], list[int]]:
    """Do the same for a source of whose stamps nothing has to outlive the process: that is cheaper."""
    results: list[Any] = []
    stamps = [clock()]
    keep, stamp = results.append, stamps.append
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
    return results, stamps


def next_size(size: int, done: int, took_ns: int, largest: int) -> int:
    """Return the next chunk's size: long enough to cost little, short enough to be seen and stopped."""
    if done < size:
        return size
    if took_ns < SHORT_NS:
        return min(2 * size, largest)
    return max(size // 2, FIRST_CHUNK) if took_ns > LONG_NS else size
