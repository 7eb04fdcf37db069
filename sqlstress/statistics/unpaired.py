"""Statistics of two samples that are not paired, for trials that were measured at other times: exact unless
there are many.

Everything counts the differences of every value of one sample to every value of the other: their median is
the Hodges-Lehmann estimate of the shift, and the number of those that are not negative is the Mann-Whitney
statistic. Ties count against whatever is to be shown, so its error rate is never more than alpha.

Source: Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", chapter 4.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, count, zip_longest
from statistics import NormalDist, median

EXACT = 30
"""Values of a sample up to which all orders are counted: of more, that takes seconds."""


def differences(base: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return every difference of `other` to `base`, in ascending order."""
    return sorted(after - before for before in base for after in other)


def shift(base: Sequence[float], other: Sequence[float]) -> float:
    """Return the estimate of how far `other` lies above `base`. Raises StatisticsError without values."""
    return median(differences(base, other))


@cache
def _ways(m: int, n: int) -> tuple[int, ...]:
    """Return in how many orders of m and n values the statistic is 0, 1, 2, ..."""
    if not m or not n:
        return (1,)
    # The largest of all values is one of the m, which then exceeds all n, or one of the n.
    above, below = (0,) * n + _ways(m - 1, n), _ways(m, n - 1)
    return tuple(a + b for a, b in zip_longest(above, below, fillvalue=0))


def critical(m: int, n: int, alpha: float) -> int:
    """Return the largest statistic whose probability is at most alpha; -1 for too few values.

    Of more values than EXACT it is that of the normal approximation, with its correction for continuity.
    """
    if max(m, n) > EXACT and min(m, n) > 1:
        deviation = math.sqrt(m * n * (m + n + 1) / 12)
        return max(-1, math.floor(m * n / 2 - 0.5 + NormalDist().inv_cdf(alpha) * deviation))
    return bisect_right(list(accumulate(_ways(m, n))), alpha * math.comb(m + n, m)) - 1


def bounds(base: Sequence[float], other: Sequence[float], alpha: float) -> tuple[float, float] | None:
    """Return what the shift lies above, and what it lies below, each at a one-sided error rate of alpha.

    None for too few values.
    """
    statistic = critical(len(base), len(other), alpha)
    if statistic < 0:
        return None
    found = differences(base, other)
    return found[statistic], found[len(found) - 1 - statistic]


def interval(
    base: Sequence[float], other: Sequence[float], confidence: float = 0.95
) -> tuple[float, float] | None:
    """Return the exact interval of the shift, at least this confident; None for too few values."""
    return bounds(base, other, (1 - confidence) / 2)


def needed(alpha: float) -> int:
    """Return how many values each of two equal samples must have, so that anything can be shown."""
    return next(size for size in count(1) if math.comb(2 * size, size) * alpha >= 1)
