"""Log-linear histogram of latencies, whose bin index is a truncated float.

The index is the upper 16 bits of the latency in ns as an IEEE 754 single: the sign, 8 bits of exponent and 7
of mantissa. So each power of two has 128 bins, at most 0.79% wide. Reports call the bins "buckets".

A `Recorder` first counts whole nanoseconds in a dict, which runs in C. A large dict is moved ("folded") into
bins, to limit memory.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping

MAX_KINDS = 20
"""Maximum number of kinds of operations in a trial. Each has a histogram."""
_FOLD_AT = 20_000
"""Number of distinct latencies after which their counts are moved ("folded") into bins."""
_INFINITE = 0x7F7F
"""Index of the last bin of finite numbers. No latency may use this bin, because its upper end is infinite."""

_to_float = struct.Struct("<f")
_to_bits = struct.Struct("<I")


def bin_of(ns: int) -> int:
    """Return the index of the bin that counts a latency of `ns`, 0 or more."""
    bits: int = _to_bits.unpack(_to_float.pack(ns))[0]
    return bits >> 16


def is_bin(index: int) -> bool:
    """Return whether a bin has this index. Reports may have wrong indices."""
    return 0 <= index < _INFINITE


def bin_floor(index: int) -> float:
    """Return the lower end of a bin, in ns.

    `bin_of` may round a latency up into the next bin. So a bin can have latencies that are below its lower
    end by at most 1 part in 2**24.
    """
    floor: float = _to_float.unpack(_to_bits.pack(index << 16))[0]
    return floor


class Recorder:
    """Counter of latencies. The method `buckets` returns their histogram."""

    def __init__(self) -> None:
        self._exact: Counter[int] = Counter()
        self._folded: Counter[int] = Counter()
        self._largest = 0

    def record(self, latencies_ns: Iterable[int]) -> None:
        """Count latencies. They are whole numbers of ns, 0 or more."""
        self._exact.update(latencies_ns)
        if len(self._exact) > _FOLD_AT:
            self._fold()

    def _fold(self) -> None:
        self._largest = max(self._largest, max(self._exact, default=0))
        for ns, count in self._exact.items():
            self._folded[bin_of(ns)] += count
        self._exact.clear()

    def buckets(self) -> dict[int, int]:
        """Return the number of latencies in each bin that is not empty, by bin index."""
        self._fold()
        return dict(self._folded)

    def largest(self) -> int:
        """Return the largest recorded latency, in ns; 0 if no latency was recorded."""
        return max(self._largest, max(self._exact, default=0))


def merge(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the sum of histograms: the sum of their counts for each bin, by bin index."""
    total: Counter[int] = Counter()
    for histogram in histograms:
        total.update(histogram)
    return dict(total)


def percentile(bins: Mapping[int, int], share: float) -> float | None:
    """Return a percentile in ns: the middle of its bin. `share` is 0.99 for p99. None without latencies."""
    count = sum(bins.values())
    if not count:
        return None
    rank = max(1, -int(-share * count // 1))
    seen = 0
    for index in sorted(bins):
        seen += bins[index]
        if seen >= rank:
            return (bin_floor(index) + bin_floor(index + 1)) / 2
    raise AssertionError("a rank lies within its count")
