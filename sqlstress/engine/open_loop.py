"""The open loop: operations are due at a fixed rate, even if earlier operations are not done.

Latency counts from the due time, so that a pause of the database shows in every operation due during the
pause. In a closed loop the pause shows in one operation per process.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from sqlstress.engine.loop import Totals, Window
from sqlstress.engine.protocols import FAILED, Chunk, Source, Stamps
from sqlstress.statistics.histogram import Recorder
from sqlstress.statistics.units import NS_PER_S

if TYPE_CHECKING:
    from sqlstress.engine.loop import Clock
    from sqlstress.report.case import Case

IDLE_NS = 50_000_000
"""Maximum time between two checks of the window's end and the stop flag, in ns."""
LEAST_NS, MOST_NS = 50_000, 2_000_000
"""Minimum and maximum margin of DueSleeper, in ns. The margin is the time from waking up to the due time."""


def due_times(case: Case, worker: int, salt: int, starts_ns: int) -> Iterator[int]:
    """Yield the due times of one worker's operations, in ns: endless, ascending.

    `worker` counts from 1. With even spacing, the due times of all workers together are equidistant. With
    Poisson spacing, each worker has its own Poisson process; `salt` makes it different in each trial.
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
    """Sleeper that wakes up shortly before a given time, and polls the clock until this time.

    The margin, the time that it polls, follows the delays with which the system wakes the process: a short
    margin saves processor time, but wakes too late on a busy machine.
    """

    def __init__(self, window: Window, pause: Callable[[float], None] = time.sleep) -> None:
        self.window, self.margin_ns, self.polled_ns, self._pause = window, LEAST_NS, 0, pause

    def until(self, then_ns: int, clock: Clock) -> int:
        """Wait until `then_ns`; return the time of `clock` afterwards, in ns."""
        up_ns = then_ns - self.margin_ns
        now = clock()
        if now < up_ns:
            self._pause((up_ns - now) / NS_PER_S)
            now = clock()
            # Move the margin an eighth of the way towards 1.5 times the measured delay.
            target_ns = min(max((now - up_ns) * 3 // 2, LEAST_NS), MOST_NS)
            self.margin_ns += (target_ns - self.margin_ns) // 8
        polled_from = now
        while now < then_ns:
            now = clock()
        if self.window.opens_ns <= polled_from < self.window.closes_ns:
            self.polled_ns += now - polled_from
        return now


class OpenTotals(SimpleNamespace):
    """Counts and latencies of one worker's operations that were due inside the window."""

    due: int
    skipped: int
    queued: int
    buckets: dict[str, dict[int, int]]
    """Latency histogram by kind of operation; latencies count from the due time.

    The kind "queued" has the operations that were due, but not done when the window closed.
    """
    largest_ns: dict[str, int]
    late: dict[int, int]
    """Histogram of the delays that sqlstress itself caused, in ns.

    A delay counts from the due time, or from the end of the previous operation if this end is later.
    """
    latest_ns: int
    polled_ns: int


class OpenLoop:
    """Runner of chunks for `timed_loop`, in an open loop: no operation begins before its due time."""

    def __init__(
        self,
        dues: Iterator[int],
        limit_ns: int | None,
        window: Window,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`dues` yields due times. If an operation is overdue by more than `limit_ns`, it is skipped."""
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
        """Run a chunk's operations until the window closes, or until no further operation is due soon."""
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
        if self._limit_ns is None:
            return
        while self._due + self._limit_ns < now and self._due < self._window.closes_ns:
            self._count_next("skipped")
            self._due = next(self._dues)

    def _count_next(self, fate: Literal["skipped", "queued"]) -> None:
        if self._due >= self._window.opens_ns:
            self._counts["due"] += 1
            self._counts[fate] += 1

    def _count(
        self, names: Any, kinds: bytearray, dues: list[int], begins: list[int], ends: list[int]
    ) -> None:
        low, high = (bisect_left(dues, time_ns) for time_ns in self._window[1:])
        self._counts["due"] += high - low
        free = [self._free_ns, *ends]
        # Record at least 1 ns, because a logarithmic scale has no 0.
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
        """Add all counts to `totals`, including operations due but not begun at the window's end.

        `now` is the end of the loop, in ns. If an operation's time since it was due is longer than
        `totals.longest_wait_ns`, it becomes the longest wait.
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
    """Return the open loop of a worker, for a case with `arrivals` (the options of an open loop)."""
    assert case.arrivals
    limit_s = case.arrivals.latency_limit_s
    limit_ns = None if limit_s is None else int(limit_s * NS_PER_S)
    return OpenLoop(due_times(case, worker, salt, window.starts_ns), limit_ns, window)
