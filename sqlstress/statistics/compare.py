"""Comparison of a figure, such as TPS, of two cases: their ratio, with a confidence interval.

Three methods compare logarithms of figures, so a difference of logarithms stands for a ratio.

* `Passes`: cases that were measured in passes (one trial of each case). Drift (heat, other programs, the
disk) affects all figures of a pass equally. Student's t gives the interval, because a signed-rank test of a
handful of passes shows nothing.

* `signed_rank_bounds`: the pairs of an A/B test. A Walsh average is the mean of two of the pairs'
differences. The median of all Walsh averages is the Hodges-Lehmann estimate. The number of Walsh averages
that are not negative is Wilcoxon's signed-rank statistic.

* `unpaired`: trials that were measured at different times. Each value of a sample is subtracted from each
value of the other sample. The median of these differences is the Hodges-Lehmann estimate of the shift. The
number of differences that are not negative is the Mann-Whitney statistic.

The rank tests are exact, except for the Mann-Whitney test of large samples. Ties count as evidence for equal
figures, so the error rate never exceeds alpha.

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

MIN_PASSES = 3
"""Minimum number of passes (repetitions of all cases) to estimate noise."""
NEAR = 0.10
"""Maximum relative difference of two figures that are called about equal: 10%."""
TOO_FEW, UNCLEAR, EQUAL, DIFFERENT = "too few", "unclear", "about equal", "different"
"""Verdicts on two figures: too few to compare; could be equal or different; about equal; different."""


class Ratio(NamedTuple):
    """Ratio of one case's figure to another case's, with an interval."""

    estimate: float
    """Estimated ratio: the geometric mean of the ratios in all passes, or the Hodges-Lehmann estimate."""
    low: float
    """Lower end of the interval; 0 if there are too few figures."""
    high: float
    """Upper end of the interval; infinite if there are too few figures."""
    pairs: int
    """Number of passes, or pairs of trials, that have both figures; 0 if too few for an interval."""

    @property
    def is_above(self) -> bool:
        """Whether the whole interval is above 1."""
        return self.low > 1

    @property
    def is_below(self) -> bool:
        """Whether the whole interval is below 1."""
        return self.high < 1

    def is_within(self, share: float) -> bool:
        """Return whether the whole interval is near 1: from 0.9 to 1/0.9 for a `share` of 0.1."""
        return self.low > 1 - share and self.high < 1 / (1 - share)


def without_interval(estimate: float) -> Ratio:
    """Return a ratio without an interval, for too few figures to estimate their noise."""
    return Ratio(estimate, 0.0, math.inf, 0)


def verdict(ratio: Ratio | None, near: float, slight: str = EQUAL) -> str:
    """Return the verdict on a ratio: DIFFERENT, EQUAL, UNCLEAR or TOO_FEW.

    The figures are DIFFERENT if the interval excludes 1. They are EQUAL if the interval has only ratios
    within `near` of 1, such as 0.1 for 10%. If both conditions are true, the verdict is `slight`.
    """
    if ratio is None or not ratio.pairs:
        return TOO_FEW
    differ, equal = ratio.is_above or ratio.is_below, ratio.is_within(near)
    if differ:
        return slight if equal else DIFFERENT
    return EQUAL if equal else UNCLEAR


# Cases measured in passes: intervals by Student's t, with noise that is pooled from all cases.


K = TypeVar("K", bound=Hashable)


class Passes(Generic[K]):
    """Figures of several cases by pass (repetition), and the ratio of any two cases.

    With a probability of at least 1 - `error`, every interval contains the true ratio (Bonferroni). An
    interval needs an estimate of the variance of the ratio's logarithm. The estimate is a weighted mean: 2/3
    is the variance of this logarithm over the passes, and 1/3 is based on the noise of all cases (the
    residual variance, after the means of cases and passes were subtracted).
    """

    def __init__(
        self, figures: Mapping[K, Mapping[int, float]], error: float, comparisons: int | None = None
    ) -> None:
        """`figures` has the figures of each case by pass, all finite and above 0.

        `error` is the probability that any ratio is wrong. It is divided by `comparisons`, the number of
        compared ratios; None means all pairs of cases.
        """
        self._logs = {
            key: {number: math.log(value) for number, value in by_pass.items()}
            for key, by_pass in figures.items()
        }
        self._alpha = error / (comparisons or max(1, math.comb(len(self._logs), 2)))
        self._pooled, self._degrees = _residual_variance([*self._logs.values()])

    @property
    def count(self) -> int:
        """Number of passes in which all cases have a figure."""
        return len(_shared_passes(self._logs.values()))

    def middle(self, case: K) -> float:
        """Return the geometric mean of a case's figures."""
        return math.exp(fmean(self._logs[case].values()))

    def ratio(self, base: K, other: K, error: float | None = None) -> Ratio | None:
        """Return the figure of `other` divided by that of `base`; None for too few shared passes.

        `error` is the probability that the interval misses the true ratio. None means an equal part of the
        `error` given to the constructor.
        """
        logs = self._differences(base, [other])
        if len(logs) < MIN_PASSES:
            return None
        log, reach = fmean(logs), self._reach(logs, (error or self._alpha) / 2)
        return Ratio(_exp(log), _exp(log - reach), _exp(log + reach), len(logs))

    def at_least(self, base: K, others: Sequence[K], error: float) -> float:
        """Return a lower bound of the geometric mean of `others` divided by `base`.

        `error` is the probability that the true ratio is lower. Return 0 for fewer than MIN_PASSES passes.
        """
        logs = self._differences(base, others)
        if len(logs) < MIN_PASSES:
            return 0.0
        return _exp(fmean(logs) - self._reach(logs, error, 1 + 1 / len(others)))

    def at_most(self, base: K, other: K, error: float) -> float:
        """Return an upper bound of the figure of `other` divided by that of `base`.

        `error` is the probability that the true ratio is higher. Return inf for fewer than MIN_PASSES passes.
        """
        inverse = self.at_least(other, [base], error)
        return 1 / inverse if inverse else math.inf

    def passes_needed(self, share: float, error: float | None = None) -> int:
        """Return the estimated number of passes to show a difference of `share`, such as 0.1 for 10%."""
        first, *others = self._logs
        noises = (self._noise(self._differences(first, [other])) for other in others)
        noise, degrees = max(noises, default=(0.0, 1))
        reach = quantile(1 - (error or self._alpha) / 2, max(degrees, 2)) * math.sqrt(noise)
        return max(MIN_PASSES, math.ceil((reach / -math.log1p(-share)) ** 2))

    def _differences(self, base: K, others: Sequence[K]) -> list[float]:
        """Return, for each shared pass, the mean logarithm of `others` minus the logarithm of `base`."""
        base_logs, rest = self._logs[base], [self._logs[other] for other in others]
        return [
            fmean(logs[number] for logs in rest) - base_logs[number]
            for number in _shared_passes([base_logs, *rest])
        ]

    def _reach(self, logs: Sequence[float], error: float, factor: float = 2.0) -> float:
        """Return the distance from the mean of `logs` to a one-sided bound of the true mean.

        `error` is the probability that the true mean lies beyond the bound. For `factor` see `_noise`.
        """
        noise, degrees = self._noise(logs, factor)
        return quantile(1 - error, degrees) * math.sqrt(noise / len(logs))

    def _noise(self, logs: Sequence[float], factor: float = 2.0) -> tuple[float, int]:
        """Return the variance of the differences `logs`, one for each pass, and its degrees of freedom.

        `factor` is the variance of a difference divided by that of a single case, if all cases have equal
        noise. For the difference of two cases, it is 2.
        """
        pair_variance = variance(logs) if len(logs) > 1 else 0.0
        least = max(1, len(logs) - 1)
        if not self._degrees:
            return pair_variance, least
        # Some cases are noisier than others. With the weights 1/3 and 2/3, and a third of the degrees of
        # freedom, at most 5% of conclusions are wrong, whether the noise is equal in all cases, grows with
        # the number of processes, has heavy tails, or is in a single case.
        return (factor * self._pooled + 2 * pair_variance) / 3, max(least, self._degrees // 3)


def _shared_passes(cases: Iterable[Mapping[int, float]]) -> list[int]:
    passes = [set(by_pass) for by_pass in cases]
    return sorted(set.intersection(*passes)) if passes else []


def _residual_variance(cases: Sequence[Mapping[int, float]]) -> tuple[float, int]:
    """Return the variance after the means of cases and passes are subtracted, and its degrees of freedom.

    `cases` has logarithms by number of the pass. Return (0, 0) for fewer than MIN_PASSES cases or passes.
    """
    passes = _shared_passes(cases)
    if len(cases) < MIN_PASSES or len(passes) < MIN_PASSES:
        return 0.0, 0
    rows = [[by_pass[number] for number in passes] for by_pass in cases]
    pass_means = [fmean(column) for column in zip(*rows, strict=True)]
    total_mean = fmean(pass_means)
    residuals = [
        value - fmean(row) - mean + total_mean
        for row in rows
        for value, mean in zip(row, pass_means, strict=True)
    ]
    degrees = (len(rows) - 1) * (len(passes) - 1)
    return sum(value * value for value in residuals) / degrees, degrees


def spread(figures: Sequence[float]) -> float | None:
    """Return the half-width of the 95% interval of the figures' geometric mean, as a share: 0.08 is ±8%.

    Return None for fewer than MIN_PASSES figures, or if any is not positive. A drift of the figures from pass
    to pass widens the interval.
    """
    if len(figures) < MIN_PASSES or min(figures) <= 0:
        return None
    logs = [math.log(value) for value in figures]
    reach = quantile(0.975, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return _exp(reach) - 1


_MAX_LOG = 700.0
"""Maximum logarithm of a result: e**700 is near the largest float. Larger values count as this value."""


def _exp(value: float) -> float:
    return math.exp(min(value, _MAX_LOG))


@cache
def quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t with `degrees` degrees of freedom, for 0.5 <= `probability` < 1."""
    low, high = 0.0, 1.0
    while probability_within(high, degrees) < 2 * probability - 1:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if probability_within(middle, degrees) < 2 * probability - 1 else (low, middle)
        )
    return high


def probability_within(value: float, degrees: int) -> float:
    """Return the probability that Student's t lies between -value and value."""
    angle = math.atan(value / math.sqrt(degrees))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = degrees % 2
    term = total = (math.cos(angle) if odd else 1.0) if degrees > 1 else 0.0
    for step in range(2 + odd, degrees - 1, 2):
        term *= square * (step - 1) / step
        total += term
    return (angle + sine * total) * 2 / math.pi if odd else sine * total


# Differences of pairs: the exact signed-rank test, which is fast enough for some hundreds of pairs.


def walsh_averages(differences: Sequence[float]) -> list[float]:
    """Return the means of every two differences, in ascending order, including each difference itself."""
    # With sorted differences, the means form long ascending runs, which Python's sort merges quickly.
    return sorted([(a + b) / 2 for a, b in combinations_with_replacement(sorted(differences), 2)])


def hodges_lehmann(differences: Sequence[float]) -> float:
    """Return the median of the differences' Walsh averages. Raise ValueError without differences."""
    if not differences:
        raise ValueError("there is no estimate of no pairs")
    return median(walsh_averages(differences))


@cache
def _signed_ranks(pairs: int) -> tuple[int, ...]:
    """Return the distribution of the signed-rank statistic: item s counts the sign patterns up to s.

    A sign pattern gives each of the ranks 1 to `pairs` a sign. Of the 2**pairs patterns, item s counts those
    with a statistic of at most s. The statistic is the sum of the ranks with a plus sign.
    """
    ways = [1]
    for rank in range(1, pairs + 1):
        without, with_it = [*ways, *[0] * rank], [*[0] * rank, *ways]
        ways = [a + b for a, b in zip(without, with_it, strict=True)]
    return tuple(accumulate(ways))


def signed_rank_critical(pairs: int, alpha: float) -> int:
    """Return the largest value of the signed-rank statistic that is significant at `alpha`.

    If there is no true difference, this value or less has a probability of at most `alpha`. Return -1 for too
    few pairs.
    """
    return bisect_right(_signed_ranks(pairs), alpha * 2**pairs) - 1


def signed_rank_bounds(differences: Sequence[float], alpha: float) -> tuple[float, float] | None:
    """Return a lower and an upper bound of the true centre of `differences`; None if they are too few.

    Each bound is wrong with a probability of at most `alpha`.
    """
    statistic = signed_rank_critical(len(differences), alpha)
    if statistic < 0:
        return None
    averages = walsh_averages(differences)
    return averages[statistic], averages[len(averages) - 1 - statistic]


# Unpaired samples: the Mann-Whitney test.


MAX_EXACT_SIZE = 30
"""Maximum sample size for which the exact distribution is computed. Larger samples would take seconds."""


def all_differences(base: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return every value of `other` minus every value of `base`, in ascending order."""
    return sorted(after - before for before in base for after in other)


@cache
def _orders(m: int, n: int) -> tuple[int, ...]:
    """Return the distribution of the Mann-Whitney statistic: item s counts the orders in which it is s.

    Two samples have m and n values. An order is a sequence of all these values by size.
    """
    if not m or not n:
        return (1,)
    # The largest value is in the first sample, so that it exceeds all n values of the second (`above`), or in
    # the second sample (`below`).
    above, below = (0,) * n + _orders(m - 1, n), _orders(m, n - 1)
    return tuple(a + b for a, b in zip_longest(above, below, fillvalue=0))


def unpaired_critical(m: int, n: int, alpha: float) -> int:
    """Return the largest value of the Mann-Whitney statistic that is significant at `alpha`.

    `m` and `n` are the sizes of the samples. If there is no true difference, this value or less has a
    probability of at most `alpha`. Return -1 for too few values. Samples larger than MAX_EXACT_SIZE use the
    normal approximation.
    """
    if max(m, n) > MAX_EXACT_SIZE and min(m, n) > 1:
        deviation = math.sqrt(m * n * (m + n + 1) / 12)
        return max(-1, math.floor(m * n / 2 - 0.5 + NormalDist().inv_cdf(alpha) * deviation))
    return bisect_right(list(accumulate(_orders(m, n))), alpha * math.comb(m + n, m)) - 1


def unpaired_bounds(
    base: Sequence[float], other: Sequence[float], alpha: float
) -> tuple[float, float] | None:
    """Return a lower and an upper bound of the shift from `base` to `other`; None for too few.

    Each bound is wrong with a probability of at most `alpha`.
    """
    statistic = unpaired_critical(len(base), len(other), alpha)
    if statistic < 0:
        return None
    shifts = all_differences(base, other)
    return shifts[statistic], shifts[len(shifts) - 1 - statistic]


def unpaired(base: Sequence[float], other: Sequence[float], confidence: float = 0.95) -> Ratio | None:
    """Return the ratio of two samples, given as logarithms; None if a sample is empty.

    Return None also for a ratio above e**_MAX_LOG. Too few values for the `confidence` give no interval.
    """
    if not base or not other:
        return None
    log = median(all_differences(base, other))
    if log >= _MAX_LOG:
        return None  # a manipulated report can have such figures
    ends = unpaired_bounds(base, other, (1 - confidence) / 2)
    if ends is None:
        return without_interval(_exp(log))
    low, high = map(_exp, ends)
    return Ratio(_exp(log), low, high, len(base) * len(other))


def min_sample_size(alpha: float) -> int:
    """Return the minimum size of two samples of equal size that can show a difference at `alpha`."""
    return next(size for size in counted(1) if math.comb(2 * size, size) * alpha >= 1)
