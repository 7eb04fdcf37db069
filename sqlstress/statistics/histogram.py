"""A log-linear latency histogram whose bucket index is a truncated float.

The upper 16 bits of an IEEE 754 single (sign, 8 bits of exponent, 7 of mantissa) are a log-linear
index: 128 buckets for every power of two, so a bucket is at most 0.79 % wide. For positive numbers
the index grows with the value. Recording counts whole nanoseconds in a dict, in C; folding turns
that dict into buckets, so memory stays bounded whatever the number of operations.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping

MAX_KINDS = 20
"""Maximum number of kinds of operations in a trial, each with a histogram. Every workload has far fewer."""
_FOLD_AT = 20_000
"""Number of distinct exact latencies after which they are folded into buckets."""
_INFINITE = 0x7F7F
"""Index of the last bucket with finite numbers. It is not used, because its upper end is infinite."""

_to_float = struct.Struct("<f")
_to_bits = struct.Struct("<I")


def bucket_of(ns: int) -> int:
    """Return the index of the bucket that holds a latency in ns."""
    bits: int = _to_bits.unpack(_to_float.pack(ns))[0]
    return bits >> 16


def is_bucket(index: int) -> bool:
    """Return whether an index is that of a finite number, zero or more, as every latency has."""
    return 0 <= index < _INFINITE


def bucket_floor(index: int) -> float:
    """Return the lower end of a bucket, in ns.

    A latency that is less than one part in 2**24 below the end is also rounded up into the bucket.
    """
    floor: float = _to_float.unpack(_to_bits.pack(index << 16))[0]
    return floor


class Recorder:
    """Counter of latencies. `buckets()` returns the histogram."""

    def __init__(self) -> None:
        self._exact: Counter[int] = Counter()
        self._folded: Counter[int] = Counter()
        self._largest = 0

    def record(self, latencies_ns: Iterable[int]) -> None:
        """Count a batch of latencies in whole ns, zero or more. Memory is bounded, except for the batch."""
        self._exact.update(latencies_ns)
        if len(self._exact) > _FOLD_AT:
            self._fold()

    def _fold(self) -> None:
        self._largest = max(self._largest, max(self._exact, default=0))
        for ns, count in self._exact.items():
            self._folded[bucket_of(ns)] += count
        self._exact.clear()

    def buckets(self) -> dict[int, int]:
        """Return {bucket index: count}."""
        self._fold()
        return dict(self._folded)

    def largest(self) -> int:
        """Return the largest latency recorded, in ns; 0 if there is none."""
        return max(self._largest, max(self._exact, default=0))


def merge(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the sum of histograms."""
    total: Counter[int] = Counter()
    for histogram in histograms:
        total.update(histogram)
    return dict(total)


def percentile(buckets: Mapping[int, int], share: float) -> float | None:
    """Return the latency in ns below which `share` (0 to 1) of the operations lie.

    The result is the middle of the bucket that holds the nearest-rank value; None without operations.
    """
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
