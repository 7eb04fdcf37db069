"""Search for the highest rate (operations per second) that keeps a latency promise.

A window is a measurement at one rate. Its margin is at most 0 if it kept the promise, and grows with the
latency. The limit is the highest rate at which at least half of the windows keep the promise. The dividing
rate is a first estimate of the limit (see `_dividing_rate`). The functions depend only on the windows so far,
so that tests can simulate machines.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, linear_regression
from typing import NamedTuple

from sqlstress.statistics.compare import quantile


class Line(NamedTuple):
    """Straight line fitted to points (x, y): y = height + slope * (x - x_mean), with standard errors."""

    x_mean: float
    height: float
    """Value of y at `x_mean`."""
    slope: float
    height_error: float
    """Standard error of `height`, independent of that of `slope`, because x is relative to its mean."""
    slope_error: float
    degrees: int
    """Degrees of freedom: the number of points minus 2."""


def fit_line(points: Sequence[tuple[float, float]]) -> Line:
    """Return the least-squares line of three or more points. Raise ValueError if all x are equal."""
    xs, ys = zip(*points, strict=True)
    x_mean, degrees = fmean(xs), len(points) - 2
    slope, height = linear_regression([x - x_mean for x in xs], ys)
    residuals = [y - height - slope * (x - x_mean) for x, y in points]
    variance = math.fsum(residual**2 for residual in residuals) / degrees
    width = math.fsum((x - x_mean) ** 2 for x in xs)
    return Line(
        x_mean, height, slope, math.sqrt(variance / len(points)), math.sqrt(variance / width), degrees
    )


# The search with noisy windows.
#
# The margin of a window is the logarithm of its latency divided by the promised latency. Margins rise with
# the rate, and near the limit their sign is a matter of chance. So the limit is the rate at which a straight
# line through the margins of nearby windows crosses 0. A margin counts as 1 (a factor of e) at most, which
# limits the effect of a stall of the machine on the line. Rates are steps of a fixed ladder. After a window
# that kept the promise, the next rate is a step up; after a window that broke the promise, a step down. So
# most windows are near the limit, where many are needed because of noise.
#
# Source: Dixon and Mood, "A Method for Obtaining and Analyzing Sensitivity Data", Journal of the American
# Statistical Association 43, 1948.


MAX_MARGIN = 1.0
"""Maximum absolute value of a margin in the fit of the line. Larger margins count as this value."""
STEPS = (10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91)
"""Rates from 10 to 91, at intervals of about 10%: the preferred numbers E24 of IEC 60063."""
LADDER: tuple[int, ...] = tuple(
    sorted({*range(1, 10), *(step * 10**tens for tens in range(5) for step in STEPS), 10**6})
)
"""Rates that a search may try, ascending, from 1 to 1,000,000 per second."""
HOLDS, BREAKS, OPEN = "holds", "breaks", "open"
"""Verdicts on a rate: most windows keep the promise; most windows break it; unknown."""
HALF, UP = 7, 3
"""Numbers of steps on LADDER: HALF steps down halve a rate, and UP steps up increase it by a third."""
MIN_AGREEING_WINDOWS = 6
"""Minimum number of windows with equal results at a rate, to believe a surprising result.

A result is surprising if a rate above the limit keeps the promise, or a rate below the limit breaks it. If no
rate breaks the promise, the result at the highest rate is surprising; if none keeps it, that at the lowest.
"""
NEARBY_FACTOR = 1.5
"""Maximum factor between a rate and the dividing rate, to fit the line to windows of this rate."""
LEAST, MOST = 16, 100
"""Minimum number of windows to fit a line, and maximum number of windows in a search."""
INTERVAL_ERROR = 0.002
"""Approximate probability that the limit lies outside its interval."""
MIN_HALF_WIDTH = 0.1
"""Minimum relative half-width of the limit's interval: a machine's speed changes by 10% an hour."""
NARROW_RATIO = 1.25
"""Ratio of the upper to the lower end of the limit's interval at which the search stops."""
MIN_SLOPE_ERRORS = 2.0
"""Minimum slope of the line, in standard errors of the slope. A flatter line could cross 0 anywhere."""

Seen = Sequence[tuple[int, float]]
"""(Rate, margin) of each window, in the order of measurement. A margin above 0 means a broken promise."""

Windows = Mapping[int, Sequence[float]]
"""Margins of the windows, grouped by rate. A margin above 0 means a broken promise."""


class SearchAnswer(NamedTuple):
    """Answer of a search: the limit, with a lower rate that keeps the promise and a higher that breaks it."""

    holds: int | None
    """Rate up to which most windows keep the promise; None if unknown."""
    breaks: int | None
    """Rate from which most windows break the promise; None if unknown."""
    about: int | None = None
    """Estimated limit, at which half of the windows keep the promise; None if unknown."""

    def verdict(self, rate: int) -> str:
        """Return the verdict on a rate: HOLDS, BREAKS, or OPEN for a rate between `holds` and `breaks`."""
        if self.holds is not None and rate <= self.holds:
            return HOLDS
        return BREAKS if self.breaks is not None and rate >= self.breaks else OPEN


def by_rate(seen: Seen) -> dict[int, list[float]]:
    """Return the margins of the windows, grouped by rate."""
    windows: dict[int, list[float]] = {}
    for rate, margin in seen:
        windows.setdefault(rate, []).append(margin)
    return windows


def mostly_kept(margins: Sequence[float]) -> bool:
    """Return whether at least half of the margins are at most 0 (promise kept)."""
    return 2 * sum(margin <= 0 for margin in margins) >= len(margins)


def _agree(margins: Sequence[float]) -> bool:
    """Return whether at least MIN_AGREEING_WINDOWS windows exist, and all kept or all broke the promise."""
    return len(margins) >= MIN_AGREEING_WINDOWS and len({margin > 0 for margin in margins}) == 1


def answer(windows: Windows) -> SearchAnswer:
    """Return the answer of a search. Its interval is widened until no tried rate outside contradicts it."""
    rates = sorted(windows)
    kept = [rate for rate in rates if mostly_kept(windows[rate])]
    broken = [rate for rate in rates if rate not in kept]
    if not broken:
        return SearchAnswer(kept[-1] if kept and _agree(windows[kept[-1]]) else None, None)
    if not kept:
        return SearchAnswer(None, broken[0] if _agree(windows[broken[0]]) else None)
    limit = crossing(windows)
    if limit is None:
        return SearchAnswer(None, None)
    low, about, high = limit
    if broken[0] <= low:
        low = max((rate for rate in kept if rate < broken[0]), default=0)
    if kept[-1] >= high:
        high = min((rate for rate in broken if rate > kept[-1]), default=math.inf)
    breaks = None if math.isinf(high) else _shortened(high, math.ceil)
    return SearchAnswer(_shortened(low, math.floor), breaks, _shortened(about, round))


def _shortened(rate: float, towards: Callable[[float], int]) -> int | None:
    """Return a rate rounded to three digits with `towards` (floor, ceil or round); None for 0."""
    unit = 10 ** max(0, math.floor(math.log10(rate)) - 2) if rate >= 1 else 1
    return towards(rate / unit) * unit or None


def crossing(windows: Windows) -> tuple[float, float, float] | None:
    """Return the limit and its interval, as rates: (lower end of the interval, limit, upper end).

    None if too few windows are near the limit, or if their margins do not clearly rise with the rate.
    """
    middle = _dividing_rate(windows)
    points = [
        (math.log(rate / middle), max(-MAX_MARGIN, min(margin, MAX_MARGIN)))
        for rate, margins in windows.items()
        for margin in margins
        if 1 / NEARBY_FACTOR <= rate / middle <= NEARBY_FACTOR
    ]
    if len(points) < LEAST or len({x for x, _ in points}) < 2:
        return None
    line = fit_line(points)
    if line.slope <= 0 or line.slope < MIN_SLOPE_ERRORS * line.slope_error:
        return None
    x = line.x_mean - line.height / line.slope
    error = math.hypot(line.height_error, (x - line.x_mean) * line.slope_error) / line.slope
    reach = max(quantile(1 - INTERVAL_ERROR / 2, line.degrees) * error, math.log1p(MIN_HALF_WIDTH))
    return middle * math.exp(x - reach), middle * math.exp(x), middle * math.exp(x + reach)


def _dividing_rate(windows: Windows) -> float:
    """Return a first estimate of the limit: the geometric mean of two successive tried rates.

    The two rates are chosen so that the fewest windows are on the wrong side. These are windows at lower
    rates that broke the promise, and windows at higher rates that kept it.
    """
    rates = sorted(windows)

    def misplaced(place: int) -> int:
        below = sum(margin > 0 for rate in rates[:place] for margin in windows[rate])
        return below + sum(margin <= 0 for rate in rates[place:] for margin in windows[rate])

    errors = {place: misplaced(place) for place in range(1, len(rates))}
    best = [place for place, count in errors.items() if count == min(errors.values())]
    place = best[len(best) // 2]
    return math.sqrt(rates[place - 1] * rates[place])


def next_rate(seen: Seen, start: int, lowest: int = 1) -> int | None:
    """Return the rate of the next window; None if the search is complete.

    `seen` has (rate, margin) of each window, in order. A margin above 0 means that the window broke the
    promise. The search begins with `start`, and tries no rate below `lowest`.
    """
    bottom = bisect_left(LADDER, lowest)
    if not seen:
        return LADDER[max(bottom, bisect_right(LADDER, start) - 1)]
    if len(seen) >= MOST:
        return None
    windows = by_rate(seen)
    kept = [rate for rate, margins in windows.items() if mostly_kept(margins)]
    broken = [rate for rate in windows if rate not in kept]
    if not kept or not broken:
        end = max(kept) if kept else min(broken)
        place = bisect_left(LADDER, end) + (UP if kept else -HALF)
        next_step = LADDER[max(bottom, min(place, len(LADDER) - 1))]
        return next_step if next_step != end or len(windows[end]) < MIN_AGREEING_WINDOWS else None
    limit = crossing(windows)
    if limit:
        low, _, high = limit
        contrary = [
            rate for rate in windows if (rate <= low and rate in broken) or (rate >= high and rate in kept)
        ]
        if contrary := [rate for rate in contrary if len(windows[rate]) < MIN_AGREEING_WINDOWS]:
            return min(contrary, key=lambda rate: len(windows[rate]))
        if high / low <= NARROW_RATIO:
            return None
    return _rate_near_limit(seen, windows, bottom)


def _rate_near_limit(seen: Seen, windows: Windows, bottom: int) -> int:
    """Return the rate of the next window. `bottom` is the index in LADDER of the lowest allowed rate."""
    rates, middle = sorted(windows), _dividing_rate(windows)
    above = bisect_left(rates, middle)
    places = [bisect_left(LADDER, rate) for rate in (rates[above - 1], rates[above])]
    if places[1] - places[0] > 2:
        return LADDER[sum(places) // 2]  # Halve a wide gap between tried rates first.
    rate, margin = seen[-1]
    if not 1 / NEARBY_FACTOR <= rate / middle <= NEARBY_FACTOR:
        return rates[above - 1]  # The last window was far away, so start again near the dividing rate.
    # A step up after a kept promise, a step down after a broken promise.
    return LADDER[max(bottom, min(bisect_left(LADDER, rate) + (1 if margin <= 0 else -1), len(LADDER) - 1))]
