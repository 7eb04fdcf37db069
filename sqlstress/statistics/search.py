"""Search for the highest rate: the rate of the next window, and when enough is known.

Everything here is a function of what was seen, so that it can be tried on machines that are made up.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import mul
from statistics import fmean
from typing import NamedTuple

from sqlstress.statistics.compare import quantile

# Least squares: what each of several causes adds, when they act together.
#
# Solved by Gram-Schmidt, modified, so that columns that are nearly alike cost no digits.
#
# Source: Golub and Van Loan, "Matrix Computations", chapter 5.


_NOTHING = 1e-9
"""What is left of a column that follows from those before it, as a share of it."""


class Fit(NamedTuple):
    """What was fitted."""

    coefficients: tuple[float, ...]
    """One for each column."""
    errors: tuple[float, ...]
    """The standard error of each; 0 without degrees of freedom."""
    degrees: int
    """Rows more than columns."""


def fit(rows: Sequence[Sequence[float]], values: Sequence[float]) -> Fit:
    """Return the coefficients of the columns that come nearest to the values.

    Raises ValueError when they are not determined: too few rows, or columns that follow from others.
    """
    width = len(rows[0]) if rows else 0
    degrees = len(rows) - width
    if not width or degrees < 0:
        raise ValueError("there are fewer rows than columns")
    basis, upper = _orthogonal([list(column) for column in zip(*rows, strict=True)])
    left, projected = list(values), []
    for own in basis:
        along = _dot(own, left)
        projected.append(along)
        left = [value - along * part for value, part in zip(left, own, strict=True)]
    inverse = _inverse(upper)
    coefficients = [_dot(line, projected) for line in inverse]
    variance = _dot(left, left) / degrees if degrees else 0.0
    errors = [math.sqrt(variance * _dot(line, line)) for line in inverse]
    return Fit(tuple(coefficients), tuple(errors), degrees)


Matrix = list[list[float]]


def _orthogonal(columns: Matrix) -> tuple[Matrix, Matrix]:
    """Return unit vectors for columns, and the upper triangle that makes the columns of them again."""
    basis: Matrix = []
    upper = [[0.0] * len(columns) for _ in columns]
    for place, column in enumerate(columns):
        whole = math.sqrt(_dot(column, column))
        for number, own in enumerate(basis):
            upper[number][place] = along = _dot(own, column)
            column = [value - along * part for value, part in zip(column, own, strict=True)]
        length = math.sqrt(_dot(column, column))
        if length <= _NOTHING * whole:
            raise ValueError("a column follows from those before it")
        upper[place][place] = length
        basis.append([value / length for value in column])
    return basis, upper


def _inverse(upper: Matrix) -> Matrix:
    """Return the inverse of an upper triangle, row by row."""
    size = len(upper)
    found = [[0.0] * size for _ in range(size)]
    for column in range(size):
        found[column][column] = 1 / upper[column][column]
        for row in range(column - 1, -1, -1):
            rest = sum(upper[row][place] * found[place][column] for place in range(row + 1, column + 1))
            found[row][column] = -rest / upper[row][row]
    return found


def _dot(one: Sequence[float], two: Sequence[float]) -> float:
    return math.fsum(map(mul, one, two))


# The highest rate that keeps a promise, searched for where every window is one look through noise.
#
# A window has a margin: by what factor, as a logarithm, its latency exceeds what is promised, below 0 where
# it kept the promise. Around the limit its sign is chance, and it rises with the rate: so the limit is where
# a straight line through the windows nearby crosses 0, and half of the windows there keep the promise. None
# counts for more than a factor of e, so that a stall of the machine moves the line no further than that.
# Rates are steps of a ladder that is the same for everybody. A window that kept its promise is followed by
# one a step up, one that broke it by one a step down: most are near the limit, as their noise needs.
#
# Source: Dixon and Mood, "A Method for Obtaining and Analyzing Sensitivity Data", Journal of the American
# Statistical Association 43, 1948.


FARTHEST = 1.0
"""The largest margin that counts, on either side."""
STEPS = (10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91)
"""Of a decade, about 10 % apart: the preferred numbers E24 of IEC 60063, the way down to 1."""
LADDER: tuple[int, ...] = tuple(
    sorted({*range(1, 10), *(step * 10**tens for tens in range(5) for step in STEPS), 10**6})
)
HOLDS, BREAKS, OPEN = "holds", "breaks", "open"
"""What the answer says of a rate."""
HALF, UP = 7, 3
"""Steps down to about half of a rate, and up by a third."""
ALL = 6
"""Windows at an end of the ladder, or at a rate that contradicts the others, before that is believed."""
NEARBY = 1.5
"""The line goes through the rates that differ by less than this factor from where the promise breaks."""
LEAST, MOST = 16, 100
"""Windows through which a line goes at least, and after which the search ends whatever they say."""
DOUBT = 0.002
"""The limit lies outside of its interval with about this probability."""
CLOSE = 0.1
"""The limit is known no better than this: a machine is that much faster or slower an hour later."""
NARROW = 1.25
"""An interval whose ends differ by this factor is narrow enough."""
STEEP = 2.0
"""Standard errors by which the margin rises with the rate, at least: a flat line crosses 0 anywhere."""

Seen = Sequence[tuple[int, float]]
"""The rate and the margin of each window, in order."""

Windows = Mapping[int, Sequence[float]]
"""The margins of the windows at each rate."""


class Answer(NamedTuple):
    """What is known by now."""

    holds: int | None
    """The rate up to which most windows keep the promise; None: none is known."""
    breaks: int | None
    """The rate from which on most windows break it; None: none is known."""
    about: int | None = None
    """The limit between the two, at which half of them do; None where it is not known."""

    def verdict(self, rate: int) -> str:
        """Say what is known of a rate."""
        if self.holds is not None and rate <= self.holds:
            return HOLDS
        return BREAKS if self.breaks is not None and rate >= self.breaks else OPEN


def by_rate(seen: Seen) -> dict[int, list[float]]:
    """Return the margins of the windows at each rate."""
    found: dict[int, list[float]] = {}
    for rate, margin in seen:
        found.setdefault(rate, []).append(margin)
    return found


def mostly_kept(margins: Sequence[float]) -> bool:
    """Say whether half of the windows or more kept the promise."""
    return 2 * sum(margin <= 0 for margin in margins) >= len(margins)


def _agree(margins: Sequence[float]) -> bool:
    return len(margins) >= ALL and len({margin > 0 for margin in margins}) == 1


def answer(windows: Windows) -> Answer:
    """Return what windows say: no tried rate contradicts it."""
    rates = sorted(windows)
    kept = [rate for rate in rates if mostly_kept(windows[rate])]
    broken = [rate for rate in rates if rate not in kept]
    if not broken:
        return Answer(kept[-1] if kept and _agree(windows[kept[-1]]) else None, None)
    if not kept:
        return Answer(None, broken[0] if _agree(windows[broken[0]]) else None)
    limit = crossing(windows)
    if limit is None:
        return Answer(None, None)
    low, about, high = limit
    if broken[0] <= low:
        low = max((rate for rate in kept if rate < broken[0]), default=0)
    if kept[-1] >= high:
        high = min((rate for rate in broken if rate > kept[-1]), default=math.inf)
    breaks = None if math.isinf(high) else _shortened(high, math.ceil)
    return Answer(_shortened(low, math.floor), breaks, _shortened(about, round))


def _shortened(rate: float, towards: Callable[[float], int]) -> int | None:
    """Return a rate of three digits; None for less than one."""
    unit = 10 ** max(0, math.floor(math.log10(rate)) - 2) if rate >= 1 else 1
    return towards(rate / unit) * unit or None


def crossing(windows: Windows) -> tuple[float, float, float] | None:
    """Return the limit with the ends of its interval, in ascending order; None where it can't be told."""
    middle = _divide(windows)
    points = [
        (math.log(rate / middle), max(-FARTHEST, min(margin, FARTHEST)))
        for rate, margins in windows.items()
        for margin in margins
        if 1 / NEARBY <= rate / middle <= NEARBY
    ]
    if len(points) < LEAST or len({x for x, _ in points}) < 2:
        return None
    # About the mean of x, the errors of height and slope are independent.
    x_mean = fmean(x for x, _ in points)
    line = fit([(1.0, x - x_mean) for x, _ in points], [y for _, y in points])
    (height, slope), (height_error, slope_error) = line.coefficients, line.errors
    if slope <= 0 or slope < STEEP * slope_error:
        return None
    x = x_mean - height / slope
    error = math.hypot(height_error, (x - x_mean) * slope_error) / slope
    reach = max(quantile(1 - DOUBT / 2, line.degrees) * error, math.log1p(CLOSE))
    return middle * math.exp(x - reach), middle * math.exp(x), middle * math.exp(x + reach)


def _divide(windows: Windows) -> float:
    """Return the rate that divides windows best: below it the fewest broke the promise, above it kept it."""
    rates = sorted(windows)

    def wrong(place: int) -> int:
        below = sum(margin > 0 for rate in rates[:place] for margin in windows[rate])
        return below + sum(margin <= 0 for rate in rates[place:] for margin in windows[rate])

    errors = {place: wrong(place) for place in range(1, len(rates))}
    best = [place for place, count in errors.items() if count == min(errors.values())]
    place = best[len(best) // 2]
    return math.sqrt(rates[place - 1] * rates[place])


def next_rate(seen: Seen, start: int, lowest: int = 1) -> int | None:
    """Return at which rate to look next; None when enough is known.

    `seen` has the rate and the margin of each window, in order. The search begins with `start`, and no rate
    below `lowest` is tried.
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
        further = LADDER[max(bottom, min(place, len(LADDER) - 1))]
        return further if further != end or len(windows[end]) < ALL else None
    limit = crossing(windows)
    if limit:
        low, _, high = limit
        odd = [
            rate for rate in windows if (rate <= low and rate in broken) or (rate >= high and rate in kept)
        ]
        if odd := [rate for rate in odd if len(windows[rate]) < ALL]:
            return min(odd, key=lambda rate: len(windows[rate]))
        if high / low <= NARROW:
            return None
    return _nearer(seen, windows, bottom)


def _nearer(seen: Seen, windows: Windows, bottom: int) -> int:
    """Return a rate between those that the promise divides, or one step from the last window there."""
    rates, middle = sorted(windows), _divide(windows)
    above = bisect_left(rates, middle)
    places = [bisect_left(LADDER, rate) for rate in (rates[above - 1], rates[above])]
    if places[1] - places[0] > 2:
        return LADDER[sum(places) // 2]
    rate, margin = seen[-1]
    if not 1 / NEARBY <= rate / middle <= NEARBY:
        return rates[above - 1]
    return LADDER[max(bottom, min(bisect_left(LADDER, rate) + (1 if margin <= 0 else -1), len(LADDER) - 1))]
