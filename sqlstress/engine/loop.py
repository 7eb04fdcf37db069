"""The timed loop of a worker: it runs operations until the measured window closes.

A source prepares operations in chunks: lists that the loop runs without other work in between. Drawing keys,
counting and checking happen between chunks, so that no latency includes them. Their cost is reported.

The stamps of a chunk are the begin and end of each operation. In a closed loop each operation follows the
last at once, so one reading of the clock is both an end and the next begin. In an open loop operations are
due at given times, with pauses between them.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import compress, count
from operator import sub
from types import SimpleNamespace
from typing import Any, NamedTuple

from sqlstress.engine.protocols import FAILED, Chunk, SelfDriven, Source, Stamps
from sqlstress.statistics.histogram import Recorder

FOREVER_NS = 1 << 62
BIN_NS = 100_000_000
MAX_BINS = 600


class Window(NamedTuple):
    """Time in which completed operations count, in ns of `perf_counter_ns`, for all processes."""

    starts_ns: int
    """Time at which all workers begin; before `opens_ns` if there is a warm-up."""
    opens_ns: int
    closes_ns: int
    """End of the window; FOREVER_NS if the number of operations is fixed."""

    @property
    def bin_ns(self) -> int:
        """Length of a bin, the period for which `Totals.bins` has a count, in ns.

        0.1 s, or 1/MAX_BINS of a window longer than 60 s.
        """
        if self.closes_ns == FOREVER_NS:
            return BIN_NS
        return max(BIN_NS, -(-(self.closes_ns - self.opens_ns) // MAX_BINS))


class Totals(SimpleNamespace):
    """Results of one worker's timed loop: a namespace of plain data, which the worker sends to the parent."""

    first_ns: int
    """Begin of the worker's first operation, in ns; 0 without operations."""
    last_ns: int
    """End of the worker's last operation, in ns; 0 without operations."""
    operations: dict[str, int]
    rows: int
    buckets: dict[str, dict[int, int]]
    """Latency histogram by kind of operation, such as "get". A histogram maps a bucket's index to a count."""
    largest_ns: dict[str, int]
    longest_wait_ns: int
    bins: list[int]
    """Number of successful operations that ended in each bin, a period of `Window.bin_ns`."""
    busy: int
    busy_snapshot: int
    failed: int
    failed_buckets: dict[int, int]
    """Latency histogram of failed operations: index of the bucket → count."""
    largest_failed_ns: int
    """Latency of the slowest failed operation, in ns; 0 if none failed."""
    harness_ns: int
    proof_ns: int
    peak_memory_bytes: int | None
    arrived: Any
    """OpenTotals of an open loop; None in a closed loop."""

    def __init__(self, **values: Any) -> None:
        zeros = ("first_ns", "last_ns", "rows", "longest_wait_ns", "busy", "busy_snapshot", "failed")
        super().__init__(**dict.fromkeys((*zeros, "largest_failed_ns", "harness_ns", "proof_ns"), 0))
        self.failed_buckets = {}
        self.operations, self.buckets, self.largest_ns, self.bins = {}, {}, {}, []
        self.peak_memory_bytes = self.arrived = None
        vars(self).update(values)


class LoopTally:
    """Counter of a worker's operations that end in the window. `timed_loop` adds each chunk to it."""

    def __init__(self, window: Window, kinds: Sequence[str], row_weights: Sequence[int]) -> None:
        """`row_weights` has, for each of `kinds`, the number of rows that an operation reads or writes."""
        self.window = window
        self.totals = Totals()
        self._kinds = kinds
        self._select = [bytes(value == kind for value in range(256)) for kind in range(len(kinds))]
        self._weights = row_weights
        self._recorders = [Recorder() for _ in kinds]
        self._failures = Recorder()

    def add(self, kinds: bytearray, stamps: Stamps, sizes: Sequence[int] | None = None) -> None:
        """Count the operations of a chunk that ended inside the window.

        `kinds` may be longer than `stamps`: operations without stamps did not run. `sizes` has the
        number of rows of each operation; None means the numbers in `row_weights`.
        """
        window, totals = self.window, self.totals
        begins, ends = stamps
        if not ends:
            return
        totals.first_ns = totals.first_ns or begins[0]
        totals.last_ns = ends[-1]
        low = bisect_left(ends, window.opens_ns)
        high = bisect_left(ends, window.closes_ns)
        began = bisect_left(begins, window.closes_ns)
        durations = list(map(sub, ends, begins))
        if high < began:  # an operation was running when the window closed
            totals.longest_wait_ns = max(totals.longest_wait_ns, durations[high])
        if low < high:
            counted = kinds[low:high]
            self._count(counted, durations[low:high])
            if sizes is not None:
                rows = zip(sizes[low:high], counted, strict=True)
                totals.rows += sum(size for size, kind in rows if kind != FAILED)
            if FAILED in counted:
                ends = [end for end, kind in zip(ends[low:high], counted, strict=True) if kind != FAILED]
                low, high = 0, len(ends)
            if low < high:
                self._fill_bins(ends, low, high)

    def _count(self, kinds: bytearray, durations: list[int]) -> None:
        for kind, select in enumerate(self._select):
            chosen = kinds.translate(select)
            count = chosen.count(1)
            if not count:
                continue
            latencies = durations if count == len(durations) else list(compress(durations, chosen))
            self._recorders[kind].record(latencies)
            name = self._kinds[kind]
            self.totals.operations[name] = self.totals.operations.get(name, 0) + count
            self.totals.rows += count * self._weights[kind]
        failed = kinds.count(FAILED)
        if failed:
            self.totals.failed += failed
            self._failures.record([ns for kind, ns in zip(kinds, durations, strict=True) if kind == FAILED])

    def _fill_bins(self, ends: Sequence[int], low: int, high: int) -> None:
        opens, width, bins = self.window.opens_ns, self.window.bin_ns, self.totals.bins
        last = (ends[high - 1] - opens) // width
        if last >= MAX_BINS:
            return
        bins.extend([0] * (last + 1 - len(bins)))
        while low < high:
            number = (ends[low] - opens) // width
            following = bisect_left(ends, opens + (number + 1) * width, low, high)
            bins[number] += following - low
            low = following

    def finish(self) -> Totals:
        """Add the histograms and the longest wait to the totals; return the totals."""
        for kind, name in enumerate(self._kinds):
            if name in self.totals.operations:
                self.totals.buckets[name] = self._recorders[kind].buckets()
                largest = self._recorders[kind].largest()
                self.totals.largest_ns[name] = largest
                self.totals.longest_wait_ns = max(self.totals.longest_wait_ns, largest)
        self.totals.failed_buckets = self._failures.buckets()
        self.totals.largest_failed_ns = self._failures.largest()
        self.totals.longest_wait_ns = max(self.totals.longest_wait_ns, self.totals.largest_failed_ns)
        return self.totals


FIRST_CHUNK = 8
SHORT_NS = 8_000_000
LONG_NS = 32_000_000

Clock = Callable[[], int]
Run = Callable[[Source, Chunk, int, int, Clock], tuple[list[Any], Stamps]]
"""Function that runs a chunk, or its beginning if the window closes or an open loop has to wait.

Arguments: source, chunk, current time and end of the window (both in ns), clock. Returns results and stamps
of the completed operations.
"""


def work_through(
    source: Source | SelfDriven, window: Window, limit: int | None, progress: Any, stop: Any
) -> Totals:
    """Run a worker's operations, in the source's own loop if it has one; return the totals.

    The parameters are those of `timed_loop`.
    """
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
    """Run operations until the window closes; return the totals.

    Stop earlier if `limit` operations are done, if the source has no more operations, or if `stop[0]` is set.
    `run` runs each chunk. Afterwards the chunk's number of successful operations is added to `progress[0]`.
    """
    tally = LoopTally(window, source.kinds, source.row_weights)
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
        size = next_chunk_size(size, done, ended - ready, source.largest_chunk)
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
    """Return the Run function that runs a chunk's operations back to back."""
    return run_acknowledged if source.acknowledges else run_unacknowledged


def run_acknowledged(
    source: Source, chunk: Chunk, begin: int, closes_ns: int, clock: Clock
) -> tuple[list[Any], Stamps]:
    """Run a chunk's operations until the window closes; store each end in shared memory at once.

    A stored end acknowledges the operation: it counts even if the worker is killed later. The arrays of
    begins and ends may overlap, shifted by one word, so that one write sets an end and the next begin.
    """
    results: list[Any] = []
    keep, (begins, ends) = results.append, source.stamps
    begins[0] = begin
    # strict=False, because count() is endless, and `calls` may be an endless repeat().
    for index, call, params in zip(count(), chunk.calls, chunk.params, strict=False):
        try:
            keep(call(params))
        except Exception as error:
            source.give_up(chunk, len(results), error)
            keep(None)
        ends[index] = now = clock()
        if now >= closes_ns:
            break
    return results, back_to_back_stamps(begin, ends[: len(results)].tolist())


def run_unacknowledged(
    source: Source, chunk: Chunk, begin: int, closes_ns: int, clock: Clock
) -> tuple[list[Any], Stamps]:
    """Run a chunk's operations until the window closes; keep the stamps in this process's own memory.

    This is faster than shared memory, but the stamps of a killed worker are lost.
    """
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
    return results, back_to_back_stamps(begin, ends)


def back_to_back_stamps(begin: int, ends: list[int]) -> Stamps:
    """Return the stamps of operations that each began when the previous operation ended."""
    begins = [begin, *ends]
    begins.pop()
    return Stamps(begins, ends)


def next_chunk_size(size: int, done: int, took_ns: int, largest: int) -> int:
    """Return the next chunk's size, so that a chunk takes between SHORT_NS and LONG_NS.

    `size` is doubled if the last chunk was faster, and halved if it was slower. It stays if only a part of
    the last chunk ran (`done` operations).
    """
    if done < size:
        return size
    if took_ns < SHORT_NS:
        return min(2 * size, largest)
    return max(size // 2, FIRST_CHUNK) if took_ns > LONG_NS else size
