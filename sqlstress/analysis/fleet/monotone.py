"""Whether one figure falls or rises with another over hosts: Kendall's tau, and its test.

Exact up to EXACT hosts, by counting the orders; of more by the normal approximation. A pair that ties in
either figure counts against what is to be shown.

Source: Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", chapter 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from statistics import NormalDist

from sqlstress.analysis.group import ERROR

EXACT = 40


@dataclass(frozen=True, slots=True)
class Trend:
    """How two figures go together."""

    tau: float
    """-1 to 1: the share of pairs of hosts in the same order, less that in the opposite one."""
    chance: float
    """How likely so much is, either way, where the figures have nothing to do with each other."""

    @property
    def falls(self) -> bool:
        """Whether one falls as the other rises."""
        return self.tau < 0

    @property
    def is_shown(self) -> bool:
        """Whether it is more than chance."""
        return self.chance <= ERROR


def trend(points: Sequence[tuple[float, float]]) -> Trend:
    """Return how the second figure goes with the first, over two points or more."""
    signs = [_sign(x - a) * _sign(y - b) for (a, b), (x, y) in combinations(points, 2)]
    pairs, score = len(signs), sum(signs)
    # Ties take away from the score, so that they never help.
    shown = max(0, abs(score) - signs.count(0))
    return Trend(score / pairs, min(1.0, 2 * _tail(len(points), shown)))


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _tail(count: int, score: int) -> float:
    """Return how likely a score of so much or more is, of figures in any order."""
    pairs = count * (count - 1) // 2
    if count > EXACT:
        deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
        return 1 - NormalDist().cdf((score - 1) / deviation)
    discordant = (pairs - score) // 2
    return sum(_orders(count)[: discordant + 1]) / math.factorial(count)


@cache
def _orders(count: int) -> tuple[int, ...]:
    """Return how many orders of so many things have 0, 1, 2, ... pairs in the wrong one."""
    if count < 2:
        return (1,)
    before = _orders(count - 1)
    size = len(before) + count - 1
    return tuple(sum(before[max(0, place - count + 1) : place + 1]) for place in range(size))
