"""The open loop: operations that are due at a rate, whether or not those before them are done.

Their latency counts from the moment they were due, so that a time in which nothing was done is seen by all
who came meanwhile: a closed loop, which asks again when it has been answered, sees it once for each process.
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
"""A worker that has nothing to do for so long looks meanwhile whether it is to stop."""
LEAST_NS, MOST_NS = 50_000, 2_000_000
"""How long before an operation is due a worker is up at least, and at most."""


def due_times(case: Case, worker: int, salt: int, starts_ns: int) -> Iterator[int]:
    """Yield when the operations of a worker are due, in ns: without an end, ascending.

    Even ones of all workers together are at equal distances. The sum of Poisson processes is one.
    """
    assert case.arrivals
    each_ns = NS_PER_S * case.concurrency / case.arrivals.rate
    if case.arrivals.spacing == "even":
        first = each_ns * (worker - 1) / case.concurrency
        yield from (starts_ns + int(first + number * each_ns) for number in count())
    gap, after = Random(f"{case.seed}:{salt}:{worker}:due").expovariate, 0.0
    while True:
        after += gap(1.0) * each_ns
        yield starts_ns + int(after)


class Waiting:
    """Sleeps until shortly before a time, then polls the clock.

    How shortly, it learns from how late the system woke it up: polling takes a processor from the others.
    """

    def __init__(self, window: Window, pause: Callable[[float], None] = time.sleep) -> None:
        self.window, self.margin_ns, self.polled_ns, self._pause = window, LEAST_NS, 0, pause

    def until(self, then_ns: int, clock: Clock) -> int:
        """Return the time when it has come."""
        up_ns = then_ns - self.margin_ns
        now = clock()
        if now < up_ns:
            self._pause((up_ns - now) / NS_PER_S)
            now = clock()
            # Come nearer to half as much again as the system was late.
            wanted_ns = min(max((now - up_ns) * 3 // 2, LEAST_NS), MOST_NS)
            self.margin_ns += (wanted_ns - self.margin_ns) // 8
        polled_from = now
        while now < then_ns:
            now = clock()
        if self.window.opens_ns <= polled_from < self.window.closes_ns:
            self.polled_ns += now - polled_from
        return now


class OpenTotals(SimpleNamespace):
    """What became of a worker's operations that were due inside the window: plain data for the pipe."""

    due: int
    skipped: int
    queued: int
    buckets: dict[str, dict[int, int]]
    """Histogram of the latencies from the moment each was due, by kind; "queued" as what was not done."""
    largest_ns: dict[str, int]
    late: dict[int, int]
    """Histogram of how much later than possible the harness began them."""
    latest_ns: int
    polled_ns: int


class OpenLoop:
    """Runs each operation when it is due, or at once when it is overdue. It is a Run of the timed loop."""

    def __init__(
        self,
        dues: Iterator[int],
        limit_ns: int | None,
        window: Window,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`limit_ns`: what is later than this when its turn comes is skipped; None: nothing is."""
        self._dues, self._limit_ns, self._window = dues, limit_ns, window
        self._due = next(dues)
        self._waiting = Waiting(window, pause)
        self._free_ns = 0
        self._counts = {"due": 0, "skipped": 0, "queued": 0}
        self._latencies: dict[str, Recorder] = {}
        self._late = Recorder()

    def __call__(
        self, source: Source, chunk: Chunk, begin: int, closes_ns: int, clock: Clock
    ) -> tuple[list[Any], Stamps]:
        """Run operations of a chunk until the window closes, or the next one is not due for long.

        What was prepared and is not run is dropped: which operation it is that is due was never said.
        """
        results: list[Any] = []
        dues: list[int] = []
        begins: list[int] = []
        ends: list[int] = []
        told = source.stamps if source.acknowledges else None
        now = begin
        for place, call, params in zip(count(), chunk.calls, chunk.params, strict=False):
            self._skip(now)
            if self._due > now:
                if results and self._due > now + IDLE_NS:
                    break
                now = self._waiting.until(min(self._due, closes_ns, now + IDLE_NS), clock)
            if now < self._due or now >= closes_ns:
                break
            if told:
                told.begins[place] = now
            dues.append(self._due)
            begins.append(now)
            try:
                results.append(call(params))
            except Exception as error:
                source.give_up(chunk, len(results), error)
                results.append(None)
            now = clock()
            if told:
                told.ends[place] = now
            ends.append(now)
            self._due = next(self._dues)
            if now >= closes_ns:
                break
        if ends:
            self._count(source.kinds, chunk.kinds, dues, begins, ends)
        return results, Stamps(begins, ends)

    def _skip(self, now: int) -> None:
        """Leave out what is too late already."""
        if self._limit_ns is None:
            return
        while self._due + self._limit_ns < now and self._due < self._window.closes_ns:
            self._enter("skipped")
            self._due = next(self._dues)

    def _enter(self, fate: str) -> None:
        """Count the operation that is next, if it was due inside the window."""
        if self._due >= self._window.opens_ns:
            self._counts["due"] += 1
            self._counts[fate] += 1

    def _count(
        self, names: Any, kinds: bytearray, dues: list[int], begins: list[int], ends: list[int]
    ) -> None:
        low, high = (bisect_left(dues, time_ns) for time_ns in self._window[1:])
        self._counts["due"] += high - low
        free = [self._free_ns, *ends]
        # A histogram of floats has no place for nothing at all.
        self._late.record(max(1, begins[at] - max(dues[at], free[at])) for at in range(low, high))
        done: dict[str, list[int]] = {}
        for at in range(low, high):
            if ends[at] >= self._window.closes_ns:
                self._counts["queued"] += 1
                done.setdefault("queued", []).append(self._window.closes_ns - dues[at])
            elif kinds[at] != FAILED:
                done.setdefault(names[kinds[at]], []).append(ends[at] - dues[at])
        for name, latencies in done.items():
            self._latencies.setdefault(name, Recorder()).record(latencies)
        self._free_ns = ends[-1]

    def finish(self, totals: Totals, now: int) -> None:
        """Count what is still queued when the window has closed, and add everything to the totals.

        The longest wait is then one that began when an operation was due.
        """
        until_ns = min(self._window.closes_ns, now)
        while self._due < until_ns:
            self._skip(until_ns)
            if self._due < until_ns:
                self._enter("queued")
                if self._due >= self._window.opens_ns:
                    self._latencies.setdefault("queued", Recorder()).record([until_ns - self._due])
                self._due = next(self._dues)
        totals.arrived = OpenTotals(
            **self._counts,
            largest_ns={name: one.largest() for name, one in self._latencies.items()},
            buckets={name: one.buckets() for name, one in self._latencies.items()},
            latest_ns=self._late.largest(),
            late=self._late.buckets(),
            polled_ns=self._waiting.polled_ns,
        )
        totals.longest_wait_ns = max(totals.longest_wait_ns, *totals.arrived.largest_ns.values(), 0)


def open_loop(case: Case, worker: int, salt: int, window: Window) -> OpenLoop:
    """Return the loop of a worker of a case that has arrivals."""
    assert case.arrivals
    limit_s = case.arrivals.latency_limit_s
    limit_ns = None if limit_s is None else int(limit_s * NS_PER_S)
    return OpenLoop(due_times(case, worker, salt, window.starts_ns), limit_ns, window)
