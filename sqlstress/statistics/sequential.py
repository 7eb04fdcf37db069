"""Sequential: the gate of an A/B test, after how many pairs one looks, and what is concluded from them.

A verdict needs a bound: B passes where the whole of what its pairs leave possible is allowed, and fails where
none of it is. Who looks often is deceived more often than who looks once, so each look is given its part of
the error rate (Bonferroni): it then holds for all of them together, however they depend on each other.
Whether B is faster is said once, at the look that ends the test. It has its own part of the error for each
look, most of it for the first ones, where a test of two equal arms ends.
Differences are natural logarithms of ratios, below zero where B is worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from sqlstress.statistics.compare import signed_rank_bounds

FAIL, PASS, INCONCLUSIVE, UNDECIDED = VERDICTS = ("fail", "pass", "inconclusive", "undecided")
"""What can be concluded; undecided: more pairs are needed."""
FASTER, SLOWER, UNCLEAR = "faster", "slower", "unclear"
"""What can be said of B beside A, whatever is allowed."""
METRICS = ("tps", "p99")
ALPHA = 0.01
"""How often, at most, a drop passes that is not allowed, and how often one that is allowed fails."""
ANSWER = 0.014
"""How often, at most, B is said to be faster, or slower, that is not, beside what ALPHA allows."""
FEWEST, MOST = 10, 500
"""Pairs after which one looks first, and the most that may be asked for."""
BETWEEN = 1.4
"""How many times as many pairs each look has as the one before: less than that adds little that is new."""
_APART = 1.2
"""How many times as many the last look has at least."""
_STEPS = 20
"""More looks than lie below MOST."""


class Look(NamedTuple):
    """A number of pairs after which one looks, and its part of the error rate, of each of both errors."""

    pairs: int
    alpha: float


def looks(most: int) -> tuple[Look, ...]:
    """Return the looks of a test of at most so many pairs, FEWEST or more, with equal parts of ALPHA."""
    rising = (round(FEWEST * BETWEEN**step) for step in range(_STEPS))
    pairs = [*(number for number in rising if number * _APART < most), most]
    # A look that can decide nothing, whatever is found, would only take from the others.
    while 0.5 ** pairs[0] * len(pairs) > ALPHA:
        del pairs[0]
    return tuple(Look(number, ALPHA / len(pairs)) for number in pairs)


def tolerance(metric: str, max_drop: float) -> float:
    """Return how far B may be worse, as a difference: TPS may fall by a share, or p99 rise by it.

    A report may hold any share; -inf where all of TPS may be lost.
    """
    max_drop = max(0.0, max_drop)
    if metric == "p99":
        return -math.log1p(max_drop)
    return -math.inf if max_drop >= 1 else math.log1p(-max_drop)


def geometric_means(cells: Sequence[Sequence[float]]) -> list[float]:
    """Return the difference of each pair: the mean of its logarithms over the cells."""
    return [fmean(pair) for pair in zip(*cells, strict=True)]


Ends = tuple[float, float] | None
"""What pairs leave possible: the worst and the best difference; None where they are too few to say."""


def clears(ends: Ends, allowed: float) -> bool:
    """Say whether a drop of more than is allowed is ruled out."""
    return ends is not None and ends[0] > allowed


def falls(ends: Ends, allowed: float) -> bool:
    """Say whether a drop of more than is allowed is beyond doubt."""
    return ends is not None and ends[1] < allowed


def answer_share(look: int, alpha: float) -> float:
    """Return the error rate, on each side, of what the look of this number (1, 2, ...) says of a faster B.

    It is no less than that of its verdict, and half of what the looks before it left of ANSWER.
    """
    return max(alpha, ANSWER * 0.5**look)


def direction(ends: Ends) -> str:
    """Say whether B is faster or slower beyond doubt, or UNCLEAR."""
    if clears(ends, 0.0):
        return FASTER
    return SLOWER if falls(ends, 0.0) else UNCLEAR


def judged(passing: Ends, failing: Iterable[Ends], allowed: float) -> str:
    """Return FAIL if a drop of more than is allowed is beyond doubt in any of what may fail, PASS if it is
    ruled out in what must pass, else UNDECIDED.
    """
    if any(falls(ends, allowed) for ends in failing):
        return FAIL
    return PASS if clears(passing, allowed) else UNDECIDED


def fail_share(cells: int, alpha: float) -> float:
    """Return the error rate at which each of several cells, and their mean, may fail (Bonferroni)."""
    return alpha if cells == 1 else alpha / (cells + 1)


def conclude(cells: Sequence[Sequence[float]], allowed: float, alpha: float) -> str:
    """Return FAIL, PASS or UNDECIDED. `cells` holds the differences of each cell, pair by pair.

    The geometric mean of the cells is judged; a single cell can only fail.
    """
    means, share = geometric_means(cells), fail_share(len(cells), alpha)
    ends = signed_rank_bounds(means, alpha)
    failing = [ends] if len(cells) == 1 else [signed_rank_bounds(part, share) for part in (means, *cells)]
    return judged(ends, failing, allowed)
