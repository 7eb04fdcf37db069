"""Sequential test: the gate of an A/B test, with its schedule of looks and the conclusion at each look.

A verdict needs bounds of the difference between the arms: B passes if the whole interval is allowed, and
fails if no part of it is allowed. Repeated looks increase the chance of an error, so each look gets a part of
the error rate (Bonferroni). The rate then holds for all looks together, however they depend on each other.
The direction (whether B is faster) is reported once, at the look that ends the test. It has an error rate of
its own, divided among the looks; the first looks get most of it, because a test of two equal arms ends there.
Differences are natural logarithms of ratios, and negative if B is worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from sqlstress.statistics.compare import signed_rank_bounds

FAIL, PASS, INCONCLUSIVE, UNDECIDED = VERDICTS = ("fail", "pass", "inconclusive", "undecided")
"""Verdicts of a test or a look; undecided means that more pairs are needed."""
FASTER, SLOWER, UNCLEAR = "faster", "slower", "unclear"
"""Direction of B relative to A, whatever drop is allowed."""
METRICS = ("tps", "p99")
ALPHA = 0.01
"""Maximum probability that a forbidden drop passes, and maximum probability that an allowed drop fails."""
DIRECTION_ALPHA = 0.014
"""Maximum probability that the direction is wrong, in addition to ALPHA."""
FEWEST, MOST = 10, 500
"""Number of pairs at the first look, and largest number of pairs that can be requested."""
LOOK_GROWTH = 1.4
"""Growth factor of the number of pairs between looks. More frequent looks add little."""
_MIN_LAST_GROWTH = 1.2
"""Minimum growth factor of the number of pairs before the last look."""
_STEPS = 20
"""Number of computed looks; more than there are below MOST."""


class InterimLook(NamedTuple):
    """A planned look at the pairs of a test."""

    pairs: int
    """Number of pairs."""
    alpha: float
    """Part of ALPHA for this look, for each of the two errors."""


def looks(most: int) -> tuple[InterimLook, ...]:
    """Return the looks of a test of at most `most` pairs, with equal parts of ALPHA. `most` >= FEWEST."""
    rising = (round(FEWEST * LOOK_GROWTH**step) for step in range(_STEPS))
    pairs = [*(number for number in rising if number * _MIN_LAST_GROWTH < most), most]
    # A look with too few pairs to decide anything would only reduce the parts of the other looks.
    while 0.5 ** pairs[0] * len(pairs) > ALPHA:
        del pairs[0]
    return tuple(InterimLook(number, ALPHA / len(pairs)) for number in pairs)


def tolerance(metric: str, max_drop: float) -> float:
    """Return the allowed change for the worse, as a difference: TPS may fall, or p99 rise, by `max_drop`.

    `max_drop` may have any value, because it is read from a report. -inf if TPS may fall to 0.
    """
    max_drop = max(0.0, max_drop)
    if metric == "p99":
        return -math.log1p(max_drop)
    return -math.inf if max_drop >= 1 else math.log1p(-max_drop)


def geometric_means(cells: Sequence[Sequence[float]]) -> list[float]:
    """Return the difference of each pair: the mean of its logarithms over the cells."""
    return [fmean(pair) for pair in zip(*cells, strict=True)]


Bounds = tuple[float, float] | None
"""Bounds of a difference: the worst and the best possible value; None if there are too few pairs."""


def rules_out_drop(ends: Bounds, allowed: float) -> bool:
    """Return whether the bounds rule out a forbidden drop."""
    return ends is not None and ends[0] > allowed


def shows_drop(ends: Bounds, allowed: float) -> bool:
    """Return whether the bounds leave only forbidden drops."""
    return ends is not None and ends[1] < allowed


def direction_alpha(look: int, alpha: float) -> float:
    """Return the error rate, on each side, of the direction at look number `look` (1, 2, ...).

    Each look gets half of the part of DIRECTION_ALPHA that earlier looks left, but at least `alpha`, the
    error rate of the verdict.
    """
    return max(alpha, DIRECTION_ALPHA * 0.5**look)


def direction(ends: Bounds) -> str:
    """Return FASTER or SLOWER if the bounds of B's difference show it, else UNCLEAR."""
    if rules_out_drop(ends, 0.0):
        return FASTER
    return SLOWER if shows_drop(ends, 0.0) else UNCLEAR


def verdict_of(passing: Bounds, failing: Iterable[Bounds], allowed: float) -> str:
    """Return the verdict: FAIL, PASS or UNDECIDED.

    FAIL if any of the `failing` bounds leave only forbidden drops. PASS if the `passing` bounds leave none.
    """
    if any(shows_drop(ends, allowed) for ends in failing):
        return FAIL
    return PASS if rules_out_drop(passing, allowed) else UNDECIDED


def cell_alpha(cells: int, alpha: float) -> float:
    """Return the error rate of the failure test of each cell, and of the mean of the cells.

    `alpha` is the total error rate, which these tests share equally (Bonferroni).
    """
    return alpha if cells == 1 else alpha / (cells + 1)


def conclude(cells: Sequence[Sequence[float]], allowed: float, alpha: float) -> str:
    """Return FAIL, PASS or UNDECIDED. `cells` has the differences of each cell, pair by pair.

    The geometric mean of the cells can pass or fail; a cell alone can only fail the test.
    """
    means, share = geometric_means(cells), cell_alpha(len(cells), alpha)
    ends = signed_rank_bounds(means, alpha)
    failing = (
        [ends]
        if len(cells) == 1
        else [signed_rank_bounds(differences, share) for differences in (means, *cells)]
    )
    return verdict_of(ends, failing, allowed)
