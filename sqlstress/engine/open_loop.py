"""The open loop: operations are due at a rate, whether or not earlier operations are done.

Latency counts from the due time, so that a pause of the store shows in every operation that became due during
it. In a closed loop, which waits for each operation, the pause shows in only one operation per process.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sqlstress.engine.loop import Totals, Window
from sqlstress.engine.protocols import FAILED, Chunk, Source, Stamps
from sqlstress.statistics.histogram import Recorder
from sqlstress.statistics.units import NS_PER_S

if TYPE_CHECKING:
    from sqlstress.engine.loop import Clock
    from sqlstress.report.case import Case

IDLE_NS = 50_000_000
"""Interval at which an idle worker checks whether to stop, in ns."""
LEAST_NS, MOST_NS = 50_000, 2_000_000
"""Minimum and maximum margin: the time between waking up and the due time, in ns."""


def due_times(case: Case, worker: int, salt: int, starts_ns: int) -> Iterator[int]:
    """Yield the due times of a worker's operations, in ns: endless, ascending.

    With even spacing the due times of all workers together are at equal distances. With Poisson spacing each
    worker has its own Poisson process, because the sum of Poisson processes is a Poisson process.
    """
    assert case.arrivals
    interval_ns = NS_PER_S * case.concurrency / case.arrivals.rate
    if case.arrivals.spacing == "even":
        first = interval_ns * (worker - 1) / case.concurrency
        yield from (starts_ns + int(first + number * interval_ns) for number in count())
    gap, offset_ns = Random(f"{case.seed}:{salt}:{worker}:due").expovariate, 0.0
    while True:
        offset_ns += gap(1.0) * interval_ns
        yield starts_ns + int(offset_ns)


class DueSleeper:
    """Sleeper that wakes up shortly before a given time, then polls the clock.

    It adapts this margin to the delay with which the system wakes it up. The margin must be short, because
    polling takes a processor from other processes.
    """

    def __init__(self, window: Window, pause: Callable[[float], None] = time.sleep) -> None:
        self.window, self.margin_ns, self.polled_ns, self._pause = window, LEAST_NS, 0, pause

    def until(self, then_ns: int, clock: Clock) -> int:
        """Wait until `then_ns`; return the time."""
        up_ns = then_ns - self.margin_ns
        now = clock()
        if now < up_ns:
            self._pause((up_ns - now) / NS_PER_S)
            now = clock()
            # Move the margin an eighth of the way towards 1.5 times the delay.
            target_ns = min(max((now - up_ns) * 3 // 2, LEAST_NS), MOST_NS)
            self.margin_ns += (target_ns - self.margin_ns) // 8
        polled_from = now
        while now < then_ns:
            now = clock()
        if self.window.opens_ns <= polled_from < self.window.closes_ns:
            self.polled_ns += now - polled_from
        return now


class OpenTotals(SimpleNamespace):
    """Counts and latencies of a worker's operations due inside the window, as plain data for the pipe."""

    due: int
    skipped: int
    queued: int
    buckets: dict[str, dict[int, int]]
    """Histogram of latencies from the due time, by kind; the kind "queued" is for unfinished operations."""
    largest_ns: dict[str, int]
    late: dict[int, int]
    """Histogram of the harness's delays, in ns: from the earliest possible begin to the actual begin."""
    latest_ns: int
    polled_ns: int


class OpenLoop:
    """A Run of the timed loop that begins each operation when it is due, or at once if it is overdue."""

    def __init__(
        self,
        dues: Iterator[int],
        limit_ns: int | None,
        window: Window,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`limit_ns`: maximum delay of a begin; later operations are skipped. None means no limit."""
        self._dues, self._limit_ns, self._window = dues, limit_ns, window
        self._due = next(dues)
        self._waiting = DueSleeper(window, pause)
        self._free_ns = 0
        self._counts = {"due": 0, "skipped": 0, "queued": 0}
        self._latencies: dict[str, Recorder] = {}
        self._late = Recorder()

    def __call__(
        self, source: Source, chunk: Chunk, begin: int, closes_ns: int, clock: Clock
    ) -> tuple[list[Any], Stamps]:
        """Run operations of a chunk until the window closes, or the next operation is due much later.

        Operations that were prepared but not run are dropped: a due time is not tied to an operation.
        """
        results: list[Any] = []
        dues: list[int] = []
        begins: list[int] = []
        ends: list[int] = []
        shared = source.stamps if source.acknowledges else None
        now = begin
        for index, call, params in zip(count(), chunk.calls, chunk.params, strict=False):
            self._skip(now)
            if self._due > now:
                if results and self._due > now + IDLE_NS:
                    break
                now = self._waiting.until(min(self._due, closes_ns, now + IDLE_NS), clock)
            if now < self._due or now >= closes_ns:
                break
            if shared:
                shared.begins[index] = now
            dues.append(self._due)
            begins.append(now)
            try:
                results.append(call(params))
            except Exception as error:
                source.give_up(chunk, len(results), error)
                results.append(None)
            now = clock()
            if shared:
                shared.ends[index] = now
            ends.append(now)
            self._due = next(self._dues)
            if now >= closes_ns:
                break
        if ends:
            self._count(source.kinds, chunk.kinds, dues, begins, ends)
        return results, Stamps(begins, ends)

    def _skip(self, now: int) -> None:
        """Skip and count the operations that are too late already."""
        if self._limit_ns is None:
            return
        while self._due + self._limit_ns < now and self._due < self._window.closes_ns:
            self._count_next("skipped")
            self._due = next(self._dues)

    def _count_next(self, fate: str) -> None:
        """Count the next operation under `fate`, if it was due inside the window."""
        if self._due >= self._window.opens_ns:
            self._counts["due"] += 1
            self._counts[fate] += 1

    def _count(
        self, names: Any, kinds: bytearray, dues: list[int], begins: list[int], ends: list[int]
    ) -> None:
        low, high = (bisect_left(dues, time_ns) for time_ns in self._window[1:])
        self._counts["due"] += high - low
        free = [self._free_ns, *ends]
        # At least 1 ns: a logarithmic scale has no place for 0.
        self._late.record(max(1, begins[index] - max(dues[index], free[index])) for index in range(low, high))
        by_kind: dict[str, list[int]] = {}
        for index in range(low, high):
            if ends[index] >= self._window.closes_ns:
                self._counts["queued"] += 1
                by_kind.setdefault("queued", []).append(self._window.closes_ns - dues[index])
            elif kinds[index] != FAILED:
                by_kind.setdefault(names[kinds[index]], []).append(ends[index] - dues[index])
        for name, latencies in by_kind.items():
            self._latencies.setdefault(name, Recorder()).record(latencies)
        self._free_ns = ends[-1]

    def finish(self, totals: Totals, now: int) -> None:
        """Count the operations still queued after the window, and add all counts to the totals.

        The longest wait in the totals also covers waits that began at a due time.
        """
        until_ns = min(self._window.closes_ns, now)
        while self._due < until_ns:
            self._skip(until_ns)
            if self._due < until_ns:
                self._count_next("queued")
                if self._due >= self._window.opens_ns:
                    self._latencies.setdefault("queued", Recorder()).record([until_ns - self._due])
                self._due = next(self._dues)
        totals.arrived = OpenTotals(
            **self._counts,
            largest_ns={name: recorder.largest() for name, recorder in self._latencies.items()},
            buckets={name: recorder.buckets() for name, recorder in self._latencies.items()},
            latest_ns=self._late.largest(),
            late=self._late.buckets(),
            polled_ns=self._waiting.polled_ns,
        )
        totals.longest_wait_ns = max(totals.longest_wait_ns, *totals.arrived.largest_ns.values(), 0)


def open_loop(case: Case, worker: int, salt: int, window: Window) -> OpenLoop:
    """Return the open loop of a worker; the case must have arrivals."""
    assert case.arrivals
    limit_s = case.arrivals.latency_limit_s
    limit_ns = None if limit_s is None else int(limit_s * NS_PER_S)
    return OpenLoop(due_times(case, worker, salt, window.starts_ns), limit_ns, window)
