"""Search: which settings, or which rate, are measured next, and when enough is known of them.

Everything here is a function of what was seen, so that it can be tried on machines that are made up.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from operator import mul
from random import Random
from typing import NamedTuple, TypeVar

from sqlstress.statistics.compare import FEWEST, Passes

K = TypeVar("K", bound=Hashable)

# Balanced designs: which settings are tried together, so that a few trials tell the part of each one.
#
# In a design every level of a factor stands as often as the others, and so does every pair of levels of two
# factors, as nearly as the number of trials lets them: then what one factor does is not taken for what
# another does. Columns are added one by one; each is drawn, and its entries exchanged as long as that helps.
#
# Source: Xu, "An Algorithm for Constructing Orthogonal and Nearly-Orthogonal Arrays With Mixed Levels and
# Small Runs", Technometrics 44, 2002.


Row = tuple[int, ...]
"""A level of each factor; 0 is the first one."""

MOST_RUNS = 36
"""Rows of a design whose pairs of levels all stand equally often: where that takes more, they don't."""
EACH = 2
"""Rows for each figure that is to be told, at least."""
DRAWS = 20
"""Columns that are drawn at most, of which the best is taken."""


def runs_of(levels: Sequence[int]) -> int:
    """Return how many rows a design has: as few as balance all pairs of factors, if those are few enough."""
    least = EACH * (1 + sum(count - 1 for count in levels))
    period = math.lcm(*(a * b for a, b in combinations(levels, 2)), *levels)
    balanced = period * math.ceil(least / period)
    return balanced if balanced <= MOST_RUNS else least


def design(levels: Sequence[int], runs: int, draw: Random) -> list[Row]:
    """Return a design of so many rows in an order that is drawn; `levels` has the number of each factor's."""
    columns: list[list[int]] = []
    for place, count in enumerate(levels):
        # The squares of how often each pair of levels stands, if they stand as evenly as can be.
        least = 0
        for cells in (count * other for other in levels[:place]):
            each, more = divmod(runs, cells)
            least += (cells - more) * each**2 + more * (each + 1) ** 2
        best: list[int] = []
        for _ in range(DRAWS):
            column = _improved(_column(count, runs, draw), columns)
            if not best or _unevenness(column, columns) < _unevenness(best, columns):
                best = column
            if _unevenness(best, columns) == least:
                break
        columns.append(best)
    rows = list(zip(*columns, strict=True))
    draw.shuffle(rows)
    return rows


def _column(count: int, runs: int, draw: Random) -> list[int]:
    """Draw a column in which each level stands equally often, or once more."""
    names = list(range(count))
    draw.shuffle(names)  # chance says which of them stand once more
    column = [names[place % count] for place in range(runs)]
    draw.shuffle(column)
    return column


def _unevenness(column: Sequence[int], others: Sequence[Sequence[int]]) -> int:
    """Return the squares of how often each pair of levels stands, over all others."""
    return sum(number**2 for other in others for number in Counter(zip(other, column, strict=True)).values())


def _improved(column: list[int], others: Sequence[Sequence[int]]) -> list[int]:
    """Exchange entries of a column for as long as it stands more evenly beside the others afterwards."""
    counts = [Counter(zip(other, column, strict=True)) for other in others]
    better = True
    while better:
        better = False
        for one, two in combinations(range(len(column)), 2):
            x, y = column[one], column[two]
            if x == y:
                continue
            # By how much the squares would change if two entries were exchanged.
            change = sum(
                4 + 2 * (found[u, y] + found[v, x] - found[u, x] - found[v, y])
                for other, found in zip(others, counts, strict=True)
                if (u := other[one]) != (v := other[two])
            )
            if change < 0:
                for other, found in zip(others, counts, strict=True):
                    for place, before, after in ((one, x, y), (two, y, x)):
                        found[other[place], before] -= 1
                        found[other[place], after] += 1
                column[one], column[two] = y, x
                better = True
    return column


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


# A race: arms measured in turns, of which those leave that are worse than the leader beyond doubt.
#
# Whoever looks after every round is deceived more often than who looks once: each look has its part of the
# error rate, and so has each pair of arms in it.


ERROR = 0.05
"""With this probability at most, an arm leaves that is not worse than the leader."""


def survivors(figures: Mapping[K, Mapping[int, float]], looks: int) -> list[K]:
    """Return the arms that stay after one of so many looks; all of them while rounds are too few.

    `figures` are those of the arms that still race, by round, above 0.
    """
    if len(figures) < 2 or min(map(len, figures.values())) < FEWEST:
        return [*figures]
    passes = Passes(figures, ERROR / looks)
    leader = max(figures, key=passes.middle)
    ratios = {arm: passes.ratio(leader, arm) for arm in figures if arm != leader}
    return [arm for arm in figures if not ((ratio := ratios.get(arm)) and ratio.is_below)]


def winner(figures: Mapping[K, Mapping[int, float]], order: Sequence[K], about: float) -> K:
    """Return the arm with the highest mean; of those less than a share below it the first one of an order.

    Raises ValueError without figures.
    """
    passes = Passes({arm: own for arm, own in figures.items() if own}, ERROR)
    means = {arm: passes.middle(arm) for arm in order if figures.get(arm)}
    if not means:
        raise ValueError("no arm has figures")
    return next(arm for arm, mean in means.items() if mean >= max(means.values()) * (1 - about))


# The highest rate that holds a promise, searched for where every window is one look through noise.
#
# A window of load at a rate keeps the promise or breaks it, and near the limit it does so by chance. So a
# rate is said to hold when ALL windows kept it, and not to hold when all broke it; one that did both is left
# open, and the answer goes around it. One that keeps its promise half of the time is taken for either with a
# probability of 1 in 32. Rates are steps of a ladder that is the same for everybody: answers of several runs
# can be set beside each other.


ALL = 6
"""Windows that must agree on a rate."""
STEPS = (10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91)
"""Of a decade, about 10 % apart: the preferred numbers E24 of IEC 60063, the way down to 1."""
LADDER: tuple[int, ...] = tuple(
    sorted({*range(1, 10), *(step * 10**tens for tens in range(5) for step in STEPS), 10**6})
)
HOLDS, BREAKS, OPEN, UNDECIDED = "holds", "breaks", "open", "undecided"
"""What is known of a rate: an open one did both; of an undecided one too few windows were seen."""
HALF, UP = 7, 3
"""Steps down to about half of a rate, and up by a third."""

Windows = Mapping[int, Sequence[bool]]
"""Whether each window at a rate kept the promise."""


class Answer(NamedTuple):
    """What is known by now."""

    holds: int | None
    """The highest rate that holds, below all that do not; None: none is known to."""
    breaks: int | None
    """The lowest rate that does not hold; None: none is known not to."""


def verdict(kept: Sequence[bool]) -> str:
    """Say what is known of a rate."""
    if any(kept) and not all(kept):
        return OPEN
    if len(kept) < ALL:
        return UNDECIDED
    return HOLDS if kept[0] else BREAKS


def answer(windows: Windows) -> Answer:
    """Return what is known: a rate above one that does not hold is no answer, whatever was seen there."""
    breaks = min((rate for rate, kept in windows.items() if verdict(kept) == BREAKS), default=None)
    held = (rate for rate, kept in windows.items() if verdict(kept) == HOLDS)
    return Answer(max((rate for rate in held if breaks is None or rate < breaks), default=None), breaks)


def next_rate(windows: Windows, start: int) -> int | None:
    """Return at which rate to look next; None when nothing is to be learned any more.

    `start` is where to begin. First the limit is bracketed and halved by single windows. Then the neighbours
    are looked at in turns, so that both meet the same moods of the machine, until each is decided.
    """
    if not windows:
        return LADDER[max(0, bisect_right(LADDER, start) - 1)]
    # The highest rate of which all windows kept the promise, and the lowest above it that all broke: what
    # lies above a rate that is known to break it is not looked at.
    top = answer(windows).breaks
    kept = (rate for rate, seen in windows.items() if all(seen) and (top is None or rate < top))
    low = max(kept, default=None)
    broken = (rate for rate, seen in windows.items() if not any(seen) and (low is None or rate > low))
    high = min(broken, default=None)
    # At an end of the ladder that end, until it is decided.
    if low is None and min(windows) != LADDER[0]:
        return LADDER[max(0, bisect_left(LADDER, min(windows)) - HALF)]
    if low is not None and high is None and max(windows) != LADDER[-1]:
        return LADDER[min(len(LADDER) - 1, bisect_left(LADDER, max(windows)) + UP)]
    ends = (min(windows),) if low is None else (max(windows),) if high is None else (low, high)
    if low is not None and high is not None:
        inner = LADDER[bisect_right(LADDER, low) : bisect_left(LADDER, high)]
        if between := [rate for rate in inner if rate not in windows]:
            return between[len(between) // 2]
    undecided = [rate for rate in ends if verdict(windows[rate]) == UNDECIDED]
    return min(undecided, key=lambda rate: len(windows[rate]), default=None)
