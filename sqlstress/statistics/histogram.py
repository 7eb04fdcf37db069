"""Log-linear histogram of latencies, whose bucket index is a truncated float.

The index is the upper 16 bits of the latency in ns as an IEEE 754 single: the sign, 8 bits of exponent and 7
of mantissa. So there are 128 buckets for each power of two, each at most 0.79% wide.

A `Recorder` first counts whole nanoseconds in a dict, which runs in C. A large dict is moved ("folded") into
buckets, so memory is bounded for any number of operations.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping

MAX_KINDS = 20
"""Maximum number of kinds of operations in a trial, each with a histogram. Workloads have far fewer."""
_FOLD_AT = 20_000
"""Number of distinct latencies after which their counts are folded into buckets."""
_INFINITE = 0x7F7F
"""Index of the last bucket with finite numbers, which is not used, because its upper end is infinite."""

_to_float = struct.Struct("<f")
_to_bits = struct.Struct("<I")


def bucket_of(ns: int) -> int:
    """Return the index of the bucket that counts a latency of `ns` nanoseconds (0 or more)."""
    bits: int = _to_bits.unpack(_to_float.pack(ns))[0]
    return bits >> 16


def is_bucket(index: int) -> bool:
    """Return whether `index` is that of a bucket of finite latencies of 0 ns or more."""
    return 0 <= index < _INFINITE


def bucket_floor(index: int) -> float:
    """Return the lower end of a bucket, in ns. It may exceed a latency in the bucket by rounding (2**-24)."""
    floor: float = _to_float.unpack(_to_bits.pack(index << 16))[0]
    return floor


class Recorder:
    """Counter of latencies. Its method `buckets` returns the histogram."""

    def __init__(self) -> None:
        self._exact: Counter[int] = Counter()
        self._folded: Counter[int] = Counter()
        self._largest = 0

    def record(self, latencies_ns: Iterable[int]) -> None:
        """Count some latencies, given in whole ns, 0 or more."""
        self._exact.update(latencies_ns)
        if len(self._exact) > _FOLD_AT:
            self._fold()

    def _fold(self) -> None:
        """Move the counts of exact latencies into buckets, and keep the largest latency."""
        self._largest = max(self._largest, max(self._exact, default=0))
        for ns, count in self._exact.items():
            self._folded[bucket_of(ns)] += count
        self._exact.clear()

    def buckets(self) -> dict[int, int]:
        """Return the histogram: the number of latencies in each bucket that is not empty, by bucket index."""
        self._fold()
        return dict(self._folded)

    def largest(self) -> int:
        """Return the largest recorded latency, in ns; 0 if no latency was recorded."""
        return max(self._largest, max(self._exact, default=0))


def merge(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the sum of histograms: the added counts, by bucket index."""
    total: Counter[int] = Counter()
    for histogram in histograms:
        total.update(histogram)
    return dict(total)


def percentile(buckets: Mapping[int, int], share: float) -> float | None:
    """Return a percentile in ns, as the middle of its bucket; None if the histogram is empty."""
    count = sum(buckets.values())
    if not count:
        return None
    rank = max(1, -int(-share * count // 1))
    seen = 0
    for index in sorted(buckets):
        seen += buckets[index]
        if seen >= rank:
            return (bucket_floor(index) + bucket_floor(index + 1)) / 2
    raise AssertionError("a rank lies within its count")
