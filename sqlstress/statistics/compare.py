"""Compare: what the figures of one case say of another's, as a ratio with what their noise leaves possible.

There is one result, `Ratio`, and one `verdict` of it. Figures are taken as logarithms, in one of three ways:

* `Passes`: several cases that were measured in turns. What drifts (heat, a neighbour, the disk) meets both
  figures of a pass alike, and Student's t gives the interval: of a handful of passes a signed-rank test
  could show nothing at all.
* `signed_rank_bounds`: the pairs of an A/B test. The means of every two differences are counted, those of
  each with itself too (Walsh averages): their median is the Hodges-Lehmann estimate, and the number of those
  that are not negative is Wilcoxon's signed-rank statistic.
* `unpaired`: trials that were measured at other times. The differences of every value of one sample to every
  value of the other are counted: their median is the Hodges-Lehmann estimate of the shift, and the number of
  those that are not negative is the Mann-Whitney statistic.

The tests of ranks are exact, but of many trials; ties count against whatever is to be shown, so an error
rate is never more than alpha.

Sources: Student, "The Probable Error of a Mean", Biometrika 6, 1908; the distribution in closed form:
Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4. Hollander, Wolfe and Chicken,
"Nonparametric Statistical Methods", chapters 3, 4 and 8.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate, combinations_with_replacement, zip_longest
from itertools import count as counted
from statistics import NormalDist, fmean, median, stdev, variance
from typing import Generic, NamedTuple, TypeVar

FEWEST = 3
"""Fewer pairs than this say nothing about their own noise."""
NEAR = 0.10
"""Figures that differ by less are called about equal."""
TOO_FEW, UNCLEAR, EQUAL, DIFFERENT = "too few", "unclear", "about equal", "different"
"""What can be said of two cases."""


class Ratio(NamedTuple):
    """One case's figure over another's."""

    estimate: float
    """The geometric mean over the passes, or the Hodges-Lehmann estimate."""
    low: float
    """Lower end of its interval; 0 where the figures are too few for one."""
    high: float
    """Upper end; infinite where they are too few."""
    pairs: int
    """Passes that have both, or pairs of trials; 0 where they are too few."""

    @property
    def is_above(self) -> bool:
        """Whether it is more, beyond its noise."""
        return self.low > 1

    @property
    def is_below(self) -> bool:
        """Whether it is less, beyond its noise."""
        return self.high < 1

    def is_within(self, share: float) -> bool:
        """Say whether the two differ by less than a share, beyond doubt: they are about equal."""
        return self.low > 1 - share and self.high < 1 / (1 - share)


def ratio_of(log: float, reach: float, pairs: int) -> Ratio:
    """Return the ratio whose logarithm lies within `reach` of an estimate, on either side."""
    return Ratio(_exp(log), _exp(log - reach), _exp(log + reach), pairs)


def without_interval(estimate: float) -> Ratio:
    """Return the ratio of figures that are too few to say anything about their noise."""
    return Ratio(estimate, 0.0, math.inf, 0)


def verdict(ratio: Ratio | None, near: float, slight: str = EQUAL) -> str:
    """Return what can be said of a ratio: DIFFERENT, EQUAL, UNCLEAR (it may be 1, and more) or TOO_FEW.

    Two are about equal that differ by less than a share of `near`, beyond doubt. `slight` is what they are
    called if there is such a difference, as small as it is.
    """
    if ratio is None or not ratio.pairs:
        return TOO_FEW
    differ, equal = ratio.is_above or ratio.is_below, ratio.is_within(near)
    if differ:
        return slight if equal else DIFFERENT
    return EQUAL if equal else UNCLEAR


# Cases that were measured in turns: Student's t, with the noise of all of them.


K = TypeVar("K", bound=Hashable)


class Passes(Generic[K]):
    """The figures of several cases by pass, and what they say of any two of the cases.

    All ratios hold together with a probability of 1 - `error` (Bonferroni).
    The noise of a pair is taken from all cases, as what is left of their logarithms without the mean of each
    case and of each pass; two thirds of what counts are the pair's own.
    """

    def __init__(
        self, figures: Mapping[K, Mapping[int, float]], error: float, comparisons: int | None = None
    ) -> None:
        """`figures` are above 0, and finite; `comparisons`: how many ratios are asked for, if not all."""
        self._logs = {
            key: {number: math.log(value) for number, value in own.items()} for key, own in figures.items()
        }
        self._alpha = error / (comparisons or max(1, math.comb(len(self._logs), 2)))
        self._pooled, self._degrees = _left_over([*self._logs.values()])

    @property
    def count(self) -> int:
        """How many passes all cases have in common."""
        return len(_common(self._logs.values()))

    def middle(self, case: K) -> float:
        """Return the geometric mean of a case."""
        return math.exp(fmean(self._logs[case].values()))

    def ratio(self, base: K, other: K, error: float | None = None) -> Ratio | None:
        """Return `other` over `base`; None where fewer passes than FEWEST have both.

        `error`: with which probability it may lie outside, instead of its share of that of all pairs.
        """
        logs = self._differences(base, [other])
        if len(logs) < FEWEST:
            return None
        return ratio_of(fmean(logs), self._reach(logs, (error or self._alpha) / 2), len(logs))

    def at_least(self, base: K, others: Sequence[K], error: float) -> float:
        """Return what the geometric mean of others over `base` exceeds, with this probability of an error.

        0 where fewer passes than FEWEST have them all.
        """
        logs = self._differences(base, others)
        if len(logs) < FEWEST:
            return 0.0
        return _exp(fmean(logs) - self._reach(logs, error, 1 + 1 / len(others)))

    def at_most(self, base: K, other: K, error: float) -> float:
        """Return what `other` over `base` stays below, in the same way; infinite of too few passes."""
        above = self.at_least(other, [base], error)
        return 1 / above if above else math.inf

    def needed(self, share: float, error: float | None = None) -> int:
        """Return about how many passes would tell a difference of a share from the first case."""
        first, *others = self._logs
        spoken = (self._spoken(self._differences(first, [other])) for other in others)
        noise, degrees = max(spoken, default=(0.0, 1))
        reach = quantile(1 - (error or self._alpha) / 2, max(degrees, 2)) * math.sqrt(noise)
        return max(FEWEST, math.ceil((reach / -math.log1p(-share)) ** 2))

    def _differences(self, base: K, others: Sequence[K]) -> list[float]:
        one, rest = self._logs[base], [self._logs[other] for other in others]
        return [fmean(own[number] for own in rest) - one[number] for number in _common([one, *rest])]

    def _reach(self, logs: Sequence[float], error: float, share: float = 2.0) -> float:
        """Return how far the mean of differences may be off on one side, with this chance of an error."""
        noise, degrees = self._spoken(logs, share)
        return quantile(1 - error, degrees) * math.sqrt(noise / len(logs))

    def _spoken(self, logs: Sequence[float], share: float = 2.0) -> tuple[float, int]:
        """Return the variance of a difference in one pass, and its degrees of freedom.

        `share`: how many times a case's variance it has, if all cases have the same.
        """
        own = variance(logs) if len(logs) > 1 else 0.0
        least = max(1, len(logs) - 1)
        if not self._degrees:
            return own, least
        # Cases are not equally noisy. With these weights, and a third of the degrees of freedom, 5 % of error
        # are kept where the noise is even, grows with the processes, has heavy tails, or is that of one case.
        return (share * self._pooled + 2 * own) / 3, max(least, self._degrees // 3)


def _common(cases: Iterable[Mapping[int, float]]) -> list[int]:
    found = [set(own) for own in cases]
    return sorted(set.intersection(*found)) if found else []


def _left_over(cases: Sequence[Mapping[int, float]]) -> tuple[float, int]:
    """Return the variance of what neither case nor pass explains, and its degrees of freedom; 0 of few."""
    passes = _common(cases)
    if len(cases) < FEWEST or len(passes) < FEWEST:
        return 0.0, 0
    rows = [[own[number] for number in passes] for own in cases]
    of_pass = [fmean(column) for column in zip(*rows, strict=True)]
    whole = fmean(of_pass)
    left = [
        value - fmean(row) - mean + whole for row in rows for value, mean in zip(row, of_pass, strict=True)
    ]
    degrees = (len(rows) - 1) * (len(passes) - 1)
    return sum(value * value for value in left) / degrees, degrees


def spread(figures: Sequence[float]) -> float | None:
    """Return how far the typical figure of a case may be off, as a share of it: ±0.08; None for too few.

    The 95% interval. Each by itself, so that what drifts over the passes is part of it.
    """
    if len(figures) < FEWEST or min(figures) <= 0:
        return None
    logs = [math.log(value) for value in figures]
    reach = quantile(0.975, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return _exp(reach) - 1


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))


@cache
def quantile(probability: float, degrees: int) -> float:
    """Return what Student's t with so many degrees of freedom stays below with a probability of ½ or more."""
    low, high = 0.0, 1.0
    while within(high, degrees) < 2 * probability - 1:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, degrees) < 2 * probability - 1 else (low, middle)
    return high


def within(value: float, degrees: int) -> float:
    """Return the probability that Student's t lies between -value and value."""
    angle = math.atan(value / math.sqrt(degrees))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = degrees % 2
    term = total = (math.cos(angle) if odd else 1.0) if degrees > 1 else 0.0
    for step in range(2 + odd, degrees - 1, 2):
        term *= square * (step - 1) / step
        total += term
    return (angle + sine * total) * 2 / math.pi if odd else sine * total


# Pairs: the signed-rank test, exact of any number from a few to some hundreds.


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
def _signed_ranks(pairs: int) -> tuple[int, ...]:
    """Return, for 0, 1, 2, ..., how many of the 2**pairs ways to sign the ranks have no larger a sum."""
    ways = [1]
    for rank in range(1, pairs + 1):
        without, with_it = [*ways, *[0] * rank], [*[0] * rank, *ways]
        ways = [a + b for a, b in zip(without, with_it, strict=True)]
    return tuple(accumulate(ways))


def signed_rank_critical(pairs: int, alpha: float) -> int:
    """Return the largest statistic whose probability is at most alpha; -1 when there are too few pairs."""
    return bisect_right(_signed_ranks(pairs), alpha * 2**pairs) - 1


def signed_rank_bounds(differences: Sequence[float], alpha: float) -> tuple[float, float] | None:
    """Return what the centre lies above, and what it lies below, each at a one-sided error rate of alpha.

    None for too few pairs.
    """
    statistic = signed_rank_critical(len(differences), alpha)
    if statistic < 0:
        return None
    averages = walsh_averages(differences)
    return averages[statistic], averages[len(averages) - 1 - statistic]


# Samples that are not paired: the Mann-Whitney test.


EXACT = 30
"""Values of a sample up to which all orders are counted: of more, that takes seconds."""


def all_differences(base: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return every difference of `other` to `base`, in ascending order."""
    return sorted(after - before for before in base for after in other)


@cache
def _orders(m: int, n: int) -> tuple[int, ...]:
    """Return in how many orders of m and n values the statistic is 0, 1, 2, ..."""
    if not m or not n:
        return (1,)
    # The largest of all values is one of the m, which then exceeds all n, or one of the n.
    above, below = (0,) * n + _orders(m - 1, n), _orders(m, n - 1)
    return tuple(a + b for a, b in zip_longest(above, below, fillvalue=0))


def unpaired_critical(m: int, n: int, alpha: float) -> int:
    """Return the largest statistic whose probability is at most alpha; -1 for too few values.

    Of more values than EXACT it is that of the normal approximation, with its correction for continuity.
    """
    if max(m, n) > EXACT and min(m, n) > 1:
        deviation = math.sqrt(m * n * (m + n + 1) / 12)
        return max(-1, math.floor(m * n / 2 - 0.5 + NormalDist().inv_cdf(alpha) * deviation))
    return bisect_right(list(accumulate(_orders(m, n))), alpha * math.comb(m + n, m)) - 1


def unpaired_bounds(
    base: Sequence[float], other: Sequence[float], alpha: float
) -> tuple[float, float] | None:
    """Return what the shift lies above, and what it lies below, each at a one-sided error rate of alpha.

    None for too few values.
    """
    statistic = unpaired_critical(len(base), len(other), alpha)
    if statistic < 0:
        return None
    found = all_differences(base, other)
    return found[statistic], found[len(found) - 1 - statistic]


def unpaired(base: Sequence[float], other: Sequence[float], confidence: float = 0.95) -> Ratio | None:
    """Return the ratio of two samples by their logarithms; None without any, or without a finite one."""
    if not base or not other:
        return None
    estimate = _exponential(median(all_differences(base, other)))
    if math.isinf(estimate):
        return None
    ends = unpaired_bounds(base, other, (1 - confidence) / 2)
    if ends is None:
        return without_interval(estimate)
    low, high = map(_exponential, ends)
    return Ratio(estimate, low, high, len(base) * len(other))


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:  # of a report that somebody made up
        return math.inf


def needed(alpha: float) -> int:
    """Return how many values each of two equal samples must have, so that anything can be shown."""
    return next(size for size in counted(1) if math.comb(2 * size, size) * alpha >= 1)
