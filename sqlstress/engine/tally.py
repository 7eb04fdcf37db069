"""What one worker counts: only what completes inside the window, found by bisection of its stamps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import compress
from operator import sub
from types import SimpleNamespace
from typing import Any, NamedTuple

from sqlstress.engine.protocols import FAILED, Stamps
from sqlstress.statistics.histogram import Recorder

FOREVER_NS = 1 << 62
BIN_NS = 100_000_000
MOST_BINS = 600


class Window(NamedTuple):
    """When what completes is counted, in perf_counter_ns of the machine's common clock."""

    starts_ns: int
    """The common start of the load."""
    opens_ns: int
    closes_ns: int
    """FOREVER_NS when a fixed number of operations is done instead."""

    @property
    def bin_ns(self) -> int:
        """A tenth of a second, or more in a long window, so that no series has over 600 values."""
        if self.closes_ns == FOREVER_NS:
            return BIN_NS
        return max(BIN_NS, -(-(self.closes_ns - self.opens_ns) // MOST_BINS))


class Totals(SimpleNamespace):
    """What a worker reports when it is done: plain data for the pipe."""

    first_ns: int
    """Begin of its first operation."""
    last_ns: int
    """End of its last operation."""
    operations: dict[str, int]
    rows: int
    buckets: dict[str, dict[int, int]]
    """Latency histogram of each kind of operation."""
    largest_ns: dict[str, int]
    longest_wait_ns: int
    bins: list[int]
    busy: int
    busy_snapshot: int
    failed: int
    harness_ns: int
    proof_ns: int
    peak_memory_bytes: int | None
    arrived: Any
    """Of an open loop, what became of what was due."""

    def __init__(self, **known: Any) -> None:
        zeros = ("first_ns", "last_ns", "rows", "longest_wait_ns", "busy", "busy_snapshot", "failed")
        super().__init__(**dict.fromkeys((*zeros, "harness_ns", "proof_ns"), 0))
        self.operations, self.buckets, self.largest_ns, self.bins = {}, {}, {}, []
        self.peak_memory_bytes = self.arrived = None
        vars(self).update(known)


class Tally:
    """Counts chunks of operations."""

    def __init__(self, window: Window, kinds: Sequence[str], row_weights: Sequence[int]) -> None:
        """`row_weights` are the rows of an operation of each of the kinds."""
        self.window = window
        self.totals = Totals()
        self._kinds = kinds
        self._select = [bytes(value == kind for value in range(256)) for kind in range(len(kinds))]
        self._weights = row_weights
        self._recorders = [Recorder() for _ in kinds]

    def add(self, kinds: bytearray, stamps: Stamps, sizes: Sequence[int] | None = None) -> None:
        """Count the operations of a chunk.

        `sizes` are the rows of each operation, where its kind does not say it.
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
        if high < began:  # pending when the window closed
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
            longest = max(ns for kind, ns in zip(kinds, durations, strict=True) if kind == FAILED)
            self.totals.longest_wait_ns = max(self.totals.longest_wait_ns, longest)

    def _fill_bins(self, ends: Sequence[int], low: int, high: int) -> None:
        opens, width, bins = self.window.opens_ns, self.window.bin_ns, self.totals.bins
        last = (ends[high - 1] - opens) // width
        if last >= MOST_BINS:
            return
        bins.extend([0] * (last + 1 - len(bins)))
        while low < high:
            number = (ends[low] - opens) // width
            following = bisect_left(ends, opens + (number + 1) * width, low, high)
            bins[number] += following - low
            low = following

    def finish(self) -> Totals:
        """Return the totals, histograms folded."""
        for kind, name in enumerate(self._kinds):
            if name in self.totals.operations:
                self.totals.buckets[name] = self._recorders[kind].buckets()
                largest = self._recorders[kind].largest()
                self.totals.largest_ns[name] = largest
                self.totals.longest_wait_ns = max(self.totals.longest_wait_ns, largest)
        return self.totals
