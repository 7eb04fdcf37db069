"""Statistics of paired differences: exact, of any number of pairs from a few to some hundreds.

Everything here counts Walsh averages, the means of every two differences (each with itself too): their
median is the Hodges-Lehmann estimate, and the number of those that are not negative is Wilcoxon's
signed-rank statistic. A difference of zero, and two that cancel each other, make averages of exactly
zero, which count as not negative, and as not positive: ties count against whatever is to be shown.

Source: Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", chapter 3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, combinations_with_replacement
from statistics import median


def walsh_averages(differences: Sequence[float]) -> list[float]:
    """Return the mean of every two differences, each with itself too, in ascending order."""
    # In order already, what is sorted is made of long runs.
    return sorted([(a + b) / 2 for a, b in combinations_with_replacement(sorted(differences), 2)])


def hodges_lehmann(differences: Sequence[float]) -> float:
    """Return the estimate of the differences' centre: the median of the Walsh averages. Raises ValueError."""
    if not differences:
        raise ValueError("there is no estimate of no pairs")
    return median(walsh_averages(differences))


@cache
def _cumulative(pairs: int) -> tuple[int, ...]:
    """Return, for 0, 1, 2, ..., how many of the 2**pairs ways to sign the ranks have no larger a sum."""
    ways = [1]
    for rank in range(1, pairs + 1):
        without, with_it = [*ways, *[0] * rank], [*[0] * rank, *ways]
        ways = [a + b for a, b in zip(without, with_it, strict=True)]
    return tuple(accumulate(ways))


def critical(pairs: int, alpha: float) -> int:
    """Return the largest statistic whose probability is at most alpha; -1 when there are too few pairs."""
    return bisect_right(_cumulative(pairs), alpha * 2**pairs) - 1


def bounds(differences: Sequence[float], alpha: float) -> tuple[float, float] | None:
    """Return what the centre lies above, and what it lies below, each at a one-sided error rate of alpha.

    None for too few pairs.
    """
    statistic = critical(len(differences), alpha)
    if statistic < 0:
        return None
    averages = walsh_averages(differences)
    return averages[statistic], averages[len(averages) - 1 - statistic]


def interval(differences: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Return the exact interval around the centre, at least this confident; None for too few pairs."""
    return bounds(differences, (1 - confidence) / 2)
