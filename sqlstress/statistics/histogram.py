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

MOST_KINDS = 20
"""Kinds of operations of a trial, with a histogram each: several times as many as any workload has."""
_FOLD_AT = 20_000
_INFINITE = 0x7F7F
"""The last bucket of finite numbers: its end is none."""

_to_float = struct.Struct("<f")
_to_bits = struct.Struct("<I")


def bucket_of(ns: int) -> int:
    """Return the bucket's index of a latency in nanoseconds."""
    bits: int = _to_bits.unpack(_to_float.pack(ns))[0]
    return bits >> 16


def is_bucket(index: int) -> bool:
    """Say whether an index is one that a latency can have: that of a finite number, zero or more."""
    return 0 <= index < _INFINITE


def bucket_floor(index: int) -> float:
    """Return where the bucket begins, in nanoseconds.

    A latency less than one part in 2**24 below it is rounded up into the bucket as well.
    """
    floor: float = _to_float.unpack(_to_bits.pack(index << 16))[0]
    return floor


class Recorder:
    """Counts latencies as they come; `buckets()` gives the histogram."""

    def __init__(self) -> None:
        self._exact: Counter[int] = Counter()
        self._folded: Counter[int] = Counter()
        self._largest = 0

    def record(self, latencies_ns: Iterable[int]) -> None:
        """Count a batch of latencies in whole nanoseconds, zero or more; only the batch takes memory."""
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
        """Return the largest latency recorded, in nanoseconds; 0 when there is none."""
        return max(self._largest, max(self._exact, default=0))


def merge(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Add histograms: merging is addition."""
    total: Counter[int] = Counter()
    for histogram in histograms:
        total.update(histogram)
    return dict(total)


def percentile(buckets: Mapping[int, int], share: float) -> float | None:
    """Return the latency in ns below which `share` (0 to 1) of the operations lie.

    It is the middle of the bucket that holds the nearest-rank value; None without operations.
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
