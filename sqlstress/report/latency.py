"""Latencies of many operations: percentiles, and the histogram that they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlstress.statistics import histogram

NO_P999_UNDER = 10_000
"""Fewer samples than this say nothing about the 99.9th percentile."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Service times of one kind of operation, in nanoseconds (closed loop: not corrected for waiting)."""

    count: int
    """Completed operations."""
    p50_ns: float | None
    """Median; None without operations, as the other percentiles."""
    p90_ns: float | None
    """90th percentile."""
    p99_ns: float | None
    """99th percentile."""
    p999_ns: float | None
    """99.9th percentile; None under 10,000 operations."""
    max_ns: int
    """The slowest of them."""
    buckets: tuple[tuple[int, int], ...] = ()
    """Sparse histogram: (index, count), the index being the upper 16 bits of the float32 of the latency."""

    def __post_init__(self) -> None:
        if self.buckets and not _is_histogram(self.buckets):
            raise ValueError("its buckets are not those of a histogram")

    @classmethod
    def from_buckets(cls, buckets: Mapping[int, int], max_ns: int) -> Latency:
        """Summarise a histogram as `histogram.Recorder` makes it, and the slowest latency in it."""
        count = sum(buckets.values())

        def percentile(share: float) -> float | None:
            # The middle of the last bucket can lie above the slowest operation.
            middle = histogram.percentile(buckets, share)
            return None if middle is None else min(middle, float(max_ns))

        p50, p90, p99 = (percentile(share) for share in (0.5, 0.9, 0.99))
        p999 = percentile(0.999) if count >= NO_P999_UNDER else None
        return cls(count, p50, p90, p99, p999, max_ns, tuple(sorted(buckets.items())))


def _is_histogram(buckets: tuple[tuple[int, int], ...]) -> bool:
    """Say whether pairs, one or more, can be a histogram: by the least and the largest, as they are many."""
    indices, counts = zip(*buckets, strict=True)
    return min(counts) >= 0 and histogram.is_bucket(min(indices)) and histogram.is_bucket(max(indices))


def merged(found: Sequence[Latency]) -> Latency | None:
    """Return latencies as those of one lot; the first of them where a histogram is missing, None of none."""
    if len(found) < 2 or not all(own.buckets for own in found):
        return next(iter(found), None)
    buckets = histogram.merge([dict(own.buckets) for own in found])
    return Latency.from_buckets(buckets, max(own.max_ns for own in found))
