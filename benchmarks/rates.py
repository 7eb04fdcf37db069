"""How often something happened, and between which rates that leaves the truth."""

from __future__ import annotations

import math
from collections.abc import Callable


def clopper_pearson(hits: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a rate that was hit so many times; (0, 1) without a run."""
    tail = (1 - confidence) / 2
    low = _solve(lambda rate: 1 - _at_most(hits - 1, runs, rate) < tail) if hits else 0.0
    high = _solve(lambda rate: _at_most(hits, runs, rate) > tail) if hits < runs else 1.0
    return low, high


def _at_most(hits: int, runs: int, rate: float) -> float:
    """Return the probability of so many hits or fewer."""
    if rate in (0.0, 1.0):
        return float(rate == 0.0 or hits >= runs)
    # As logarithms: the binomials of more than a thousand runs are too large for a float.
    every, hit, missed = math.lgamma(runs + 1), math.log(rate), math.log1p(-rate)
    return math.fsum(
        math.exp(every - math.lgamma(k + 1) - math.lgamma(runs - k + 1) + k * hit + (runs - k) * missed)
        for k in range(hits + 1)
    )


def _solve(below: Callable[[float], bool]) -> float:
    """Return the rate up to which `below` holds."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low
