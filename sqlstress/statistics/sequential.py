"""Sequential test for an A/B test: the schedule of interim tests, and the conclusion of each.

The arms (variants) A and B are measured in pairs. A look is an interim test of the pairs so far. A cell is a
case that both arms measure. The difference of a pair is the natural logarithm of the ratio of B's figure (TPS
or p99) to A's, with a sign that makes it negative if B is worse. So a rise of p99 is a negative difference.

Each look computes a confidence interval of the difference. B passes if the test allows every difference in
the interval, and fails if it allows none. Each look gets a part of the error rate (Bonferroni), so that the
rate holds for all looks together. The direction (whether B is faster) is reported once, at the look that ends
the test. The direction has its own error rate. The first looks get most of that rate, because the test of two
equal arms usually ends at one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from sqlstress.statistics.compare import signed_rank_bounds

FAIL, PASS, INCONCLUSIVE, UNDECIDED = VERDICTS = ("fail", "pass", "inconclusive", "undecided")
"""Verdicts of a complete test or of a look. Undecided means that more pairs are needed."""
FASTER, SLOWER, UNCLEAR = "faster", "slower", "unclear"
"""Directions of the change from A to B. They do not depend on the allowed drop."""
METRICS = ("tps", "p99")
"""Figures that can be compared: transactions per second, and the 99th percentile of latency."""
ALPHA = 0.01
"""Maximum probability that a forbidden drop passes, and also that an allowed drop fails."""
DIRECTION_ALPHA = 0.014
"""Maximum probability of a wrong direction, in addition to ALPHA; see `direction_alpha`."""
FEWEST, MOST = 10, 500
"""Minimum number of pairs at the first look, and maximum number of pairs of a test."""
LOOK_GROWTH = 1.4
"""Factor by which the number of pairs grows from look to look. More frequent looks would gain little."""
_MIN_LAST_GROWTH = 1.2
"""Minimum factor between the numbers of pairs at the last two looks."""
_STEPS = 20
"""Maximum number of looks before the last look of a test: more than enough for MOST pairs."""


class InterimLook(NamedTuple):
    """Planned look: an interim test after this number of `pairs`."""

    pairs: int
    alpha: float
    """Maximum probability that this look passes wrongly, and that it fails wrongly: a part of ALPHA."""


def looks(most: int) -> tuple[InterimLook, ...]:
    """Return the planned looks of a test with up to `most` pairs. Each look gets an equal part of ALPHA."""
    rising = (round(FEWEST * LOOK_GROWTH**step) for step in range(_STEPS))
    pairs = [*(number for number in rising if number * _MIN_LAST_GROWTH < most), most]
    # Drop a first look with too few pairs for any verdict: it would only reduce the other looks' parts of
    # ALPHA.
    while 0.5 ** pairs[0] * len(pairs) > ALPHA:
        del pairs[0]
    return tuple(InterimLook(number, ALPHA / len(pairs)) for number in pairs)


def tolerance(metric: str, max_drop: float) -> float:
    """Return the worst allowed difference of a pair: the logarithm of a ratio, 0 or negative.

    `max_drop` is the share by which TPS may fall or p99 may rise. A negative value, as in a manipulated
    report, counts as 0. The result is -inf for TPS with a `max_drop` of 1 or more, which allows any fall.
    """
    max_drop = max(0.0, max_drop)
    if metric == "p99":
        return -math.log1p(max_drop)
    return -math.inf if max_drop >= 1 else math.log1p(-max_drop)


def geometric_means(cells: Sequence[Sequence[float]]) -> list[float]:
    """Return, for each pair, the logarithm of the geometric mean of all cases' ratios.

    `cells` has a sequence for each case, with the logarithm of the ratio of each pair.
    """
    return [fmean(pair) for pair in zip(*cells, strict=True)]


Bounds = tuple[float, float] | None
"""Lower and upper end of a difference's confidence interval; None for too few pairs."""


def rules_out_drop(ends: Bounds, allowed: float) -> bool:
    """Return whether the whole interval `ends` is better than `allowed`."""
    return ends is not None and ends[0] > allowed


def shows_drop(ends: Bounds, allowed: float) -> bool:
    """Return whether the whole interval `ends` is worse than `allowed`."""
    return ends is not None and ends[1] < allowed


def direction_alpha(look: int, alpha: float) -> float:
    """Return the one-sided error rate of the direction at look number `look` (1, 2, ...).

    The first look gets half of DIRECTION_ALPHA, and each later look half as much as the look before. `alpha`,
    the error rate of the verdict at this look, is the minimum.
    """
    return max(alpha, DIRECTION_ALPHA * 0.5**look)


def direction(ends: Bounds) -> str:
    """Return FASTER if both ends of the interval are above 0, SLOWER if both are below 0, else UNCLEAR."""
    if rules_out_drop(ends, 0.0):
        return FASTER
    return SLOWER if shows_drop(ends, 0.0) else UNCLEAR


def verdict_of(passing: Bounds, failing: Iterable[Bounds], allowed: float) -> str:
    """Return the verdict that follows from intervals of differences: FAIL, PASS or UNDECIDED.

    FAIL if any interval in `failing` is entirely worse than `allowed`. Else PASS if the interval `passing` is
    entirely better than `allowed`.
    """
    if any(shows_drop(ends, allowed) for ends in failing):
        return FAIL
    return PASS if rules_out_drop(passing, allowed) else UNDECIDED


def cell_alpha(cells: int, alpha: float) -> float:
    """Return the error rate of each confidence interval that can fail an A/B test at a look.

    Each of the `cells` cases has an interval, and so has the mean of all cases. They share the rate `alpha`.
    """
    return alpha if cells == 1 else alpha / (cells + 1)


def conclude(cells: Sequence[Sequence[float]], allowed: float, alpha: float) -> str:
    """Return the verdict of a look: FAIL, PASS or UNDECIDED.

    `cells` has a list for each case, with the difference of each pair. `allowed` is the result of
    `tolerance`, and `alpha` the error rate. The mean of all cases can pass or fail the test. A single case
    can only fail it.
    """
    means, share = geometric_means(cells), cell_alpha(len(cells), alpha)
    ends = signed_rank_bounds(means, alpha)
    failing = (
        [ends]
        if len(cells) == 1
        else [signed_rank_bounds(differences, share) for differences in (means, *cells)]
    )
    return verdict_of(ends, failing, allowed)
