"""Statistics of paired differences: exact, of any number of pairs from a few to some hundreds.

Everything here counts Walsh averages, the means of every two differences (each with itself too): their
median is the Hodges-Lehmann estimate, and the number of those that are not negative is Wilcoxon's
signed-rank statistic. A difference of zero, and two that cancel each other, make averages of exactly
zero, which count as not negative: so a p-value is never too small, whatever the ties, and it is at most
alpha exactly when the upper bound at alpha lies below zero.

Source: Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", chapter 3.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, combinations_with_replacement
from statistics import median


def walsh_averages(differences: Sequence[float]) -> list[float]:
    """Return the mean of every two differences, each with itself too, in ascending order."""
    return sorted((a + b) / 2 for a, b in combinations_with_replacement(differences, 2))


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


def probability(statistic: int, pairs: int) -> float:
    """Return the probability of a signed-rank statistic this small or smaller, if there is no difference."""
    return 0.0 if statistic < 0 else _cumulative(pairs)[statistic] / 2**pairs


def critical(pairs: int, alpha: float) -> int:
    """Return the largest statistic whose probability is at most alpha; -1 when there are too few pairs."""
    return bisect_right(_cumulative(pairs), alpha * 2**pairs) - 1


def drop_p_value(differences: Sequence[float]) -> float:
    """Return the one-sided p-value of the differences' centre lying below zero."""
    averages = walsh_averages(differences)
    return probability(len(averages) - bisect_left(averages, 0.0), len(differences))


def upper_bound(differences: Sequence[float], alpha: float) -> float | None:
    """Return what the centre lies below, at a one-sided error rate of alpha; None for too few pairs."""
    averages, statistic = walsh_averages(differences), critical(len(differences), alpha)
    return None if statistic < 0 else averages[len(averages) - 1 - statistic]


def interval(differences: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Return the exact interval around the centre, at least this confident; None for too few pairs."""
    averages, statistic = walsh_averages(differences), critical(len(differences), (1 - confidence) / 2)
    return None if statistic < 0 else (averages[statistic], averages[len(averages) - 1 - statistic])
