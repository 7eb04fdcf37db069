"""Ratios of cases that were measured in turns: what the passes say of one case over another.

A pass measures every case once, so what drifts (heat, a neighbour, the disk) meets both figures of a pass
alike. Their ratios are taken as logarithms, and Student's t gives the interval: of a handful of passes a
signed-rank test could show nothing at all.

Source: Student, "The Probable Error of a Mean", Biometrika 6, 1908; the distribution in closed form:
Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean, stdev, variance
from typing import Generic, NamedTuple, TypeVar

FEWEST = 3
"""Fewer pairs than this say nothing about their own noise."""


class Ratio(NamedTuple):
    """One case's figure over another's."""

    estimate: float
    """The geometric mean over the passes."""
    low: float
    """Lower end of its interval."""
    high: float
    pairs: int
    """Passes that have both."""

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


K = TypeVar("K", bound=Hashable)


class Passes(Generic[K]):
    """The figures of several cases by pass, and what they say of any two of the cases.

    All of what is said holds together with a probability of 1 - `error` (Bonferroni over all pairs).
    The noise of a pair is taken from all cases, as what is left of their logarithms without the mean of each
    case and of each pass; two thirds of what counts are the pair's own.
    """

    def __init__(self, figures: Mapping[K, Mapping[int, float]], error: float) -> None:
        """`figures` are above 0, and finite."""
        self._logs = {
            key: {number: math.log(value) for number, value in own.items()} for key, own in figures.items()
        }
        pairs = max(1, math.comb(len(self._logs), 2))
        self._alpha = error / pairs
        self._pooled, self._degrees = _left_over([*self._logs.values()])

    @property
    def count(self) -> int:
        """How many passes all cases have in common."""
        return len(_common(self._logs.values()))

    def middle(self, case: K) -> float:
        """Return the geometric mean of a case."""
        return math.exp(fmean(self._logs[case].values()))

    def ratio(self, base: K, other: K) -> Ratio | None:
        """Return `other` over `base`; None where fewer passes than FEWEST have both."""
        logs = self._differences(base, other)
        if len(logs) < FEWEST:
            return None
        reach = self._reach(logs, len(logs))
        middle = fmean(logs)
        return Ratio(math.exp(middle), _exp(middle - reach), _exp(middle + reach), len(logs))

    def needed(self, share: float) -> int:
        """Return about how many passes would tell a difference of a share from the first case."""
        first, *others = self._logs
        worst = max((self._spoken(self._differences(first, other)) for other in others), default=(0.0, 1))
        noise, degrees = worst
        error = quantile(1 - self._alpha / 2, max(degrees, 2)) * math.sqrt(noise)
        return max(FEWEST, math.ceil((error / -math.log1p(-share)) ** 2))

    def _differences(self, base: K, other: K) -> list[float]:
        one, two = self._logs[base], self._logs[other]
        return [two[number] - one[number] for number in sorted(one.keys() & two.keys())]

    def _reach(self, logs: Sequence[float], count: int) -> float:
        noise, degrees = self._spoken(logs)
        return quantile(1 - self._alpha / 2, degrees) * math.sqrt(noise / count)

    def _spoken(self, logs: Sequence[float]) -> tuple[float, int]:
        """Return the variance of a difference in one pass, and its degrees of freedom."""
        own = variance(logs) if len(logs) > 1 else 0.0
        least = max(1, len(logs) - 1)
        if not self._degrees:
            return own, least
        # Cases are not equally noisy. With these weights, and a third of the degrees of freedom, 5 % of error
        # are kept where the noise is even, grows with the processes, has heavy tails, or is that of one case.
        return (2 * self._pooled + 2 * own) / 3, max(least, self._degrees // 3)


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


def spread(figures: Sequence[float], error: float = 0.05) -> float | None:
    """Return how far the typical figure of a case may be off, as a share of it: ±0.08; None for too few.

    Each by itself, so that what drifts over the passes is part of it.
    """
    if len(figures) < FEWEST or min(figures) <= 0:
        return None
    logs = [math.log(one) for one in figures]
    reach = quantile(1 - error / 2, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
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
