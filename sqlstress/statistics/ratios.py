"""Ratios of cases that were measured in turns: what the passes say of one case over another.

A pass measures every case once, so what drifts (heat, a neighbour, the disk) meets both figures of a pass
alike. Their ratios are taken as logarithms, and Student's t gives the interval: of a handful of passes a
signed-rank test could show nothing at all.

Source: Student, "The Probable Error of a Mean", Biometrika 6, 1908; the distribution in closed form:
Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean, stdev
from typing import NamedTuple

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


def ratio(base: Mapping[int, float], other: Mapping[int, float], alpha: float) -> Ratio | None:
    """Return `other` over `base` from their figures by pass; None where too few passes have both.

    The interval misses the truth with probability `alpha`, if the logarithms' noise is about normal.
    """
    common = sorted(base.keys() & other.keys())
    if len(common) < FEWEST:
        return None
    logs = [math.log(other[one] / base[one]) for one in common]
    return Ratio(*_around(logs, alpha), len(common))


def spread(figures: Sequence[float], alpha: float = 0.05) -> float | None:
    """Return how far the mean of figures may be off, as a share of it: ±0.08; None for too few."""
    if len(figures) < FEWEST or min(figures) <= 0:
        return None
    middle, _, high = _around([math.log(one) for one in figures], alpha)
    return high / middle - 1


def _around(logs: Sequence[float], alpha: float) -> tuple[float, float, float]:
    """Return e to the mean of logarithms, and to the ends of its interval."""
    middle, noise = fmean(logs), stdev(logs)
    reach = quantile(1 - alpha / 2, len(logs) - 1) * noise / math.sqrt(len(logs))
    return math.exp(middle), _exp(middle - reach), _exp(middle + reach)


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
