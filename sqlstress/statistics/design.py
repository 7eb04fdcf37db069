"""Balanced designs: which settings are tried together, so that a few trials tell the part of each one.

In a design every level of a factor stands as often as the others, and so does every pair of levels of two
factors, as nearly as the number of trials lets them: then what one factor does is not taken for what another
does. Columns are added one by one; each is drawn, and its entries exchanged as long as that helps.

Source: Xu, "An Algorithm for Constructing Orthogonal and Nearly-Orthogonal Arrays With Mixed Levels and Small
Runs", Technometrics 44, 2002.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from operator import mul
from random import Random
from typing import NamedTuple

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
        least = sum(_even(runs, count * other) for other in levels[:place])
        columns.append(_best_column(count, runs, columns, least, draw))
    rows = list(zip(*columns, strict=True))
    draw.shuffle(rows)
    return rows


def imbalance(rows: Sequence[Row], levels: Sequence[int]) -> float:
    """Return how far a design is from orthogonal: the squares of what pairs of levels lack, summed."""
    total = 0.0
    for a, b in combinations(range(len(levels)), 2):
        found = Counter((row[a], row[b]) for row in rows)
        even = len(rows) / (levels[a] * levels[b])
        total += sum((found[i, j] - even) ** 2 for i in range(levels[a]) for j in range(levels[b]))
    return total


def _best_column(
    count: int, runs: int, others: Sequence[Sequence[int]], least: int, draw: Random
) -> list[int]:
    """Draw columns until one stands as evenly beside the others as can be, or as often as we may."""
    best: list[int] = []
    for _ in range(DRAWS):
        column = _improved(_column(count, runs, draw), others)
        if not best or _against(column, others) < _against(best, others):
            best = column
        if _against(best, others) == least:
            break
    return best


def _even(runs: int, cells: int) -> int:
    """Return the squares of how often each of so many pairs stands, if they stand as evenly as can be."""
    each, more = divmod(runs, cells)
    return (cells - more) * each**2 + more * (each + 1) ** 2


def _column(count: int, runs: int, draw: Random) -> list[int]:
    """Draw a column in which each level stands equally often, or once more."""
    names = list(range(count))
    draw.shuffle(names)  # chance says which of them stand once more
    column = [names[place % count] for place in range(runs)]
    draw.shuffle(column)
    return column


def _against(column: Sequence[int], others: Sequence[Sequence[int]]) -> int:
    """Return how unevenly a column stands beside others: squares of how often each pair does."""
    return sum(number**2 for other in others for number in Counter(zip(other, column, strict=True)).values())


def _improved(column: list[int], others: Sequence[Sequence[int]]) -> list[int]:
    """Exchange entries of a column for as long as it stands more evenly beside the others afterwards."""
    counts = [Counter(zip(other, column, strict=True)) for other in others]
    places = list(combinations(range(len(column)), 2))
    better = True
    while better:
        better = False
        for one, two in places:
            if column[one] != column[two] and _change(column, others, counts, one, two) < 0:
                _exchange(column, others, counts, one, two)
                better = True
    return column


Counts = Sequence[Counter[tuple[int, int]]]


def _change(column: list[int], others: Sequence[Sequence[int]], counts: Counts, one: int, two: int) -> int:
    """Return by how much the squares would change if two entries were exchanged."""
    x, y, change = column[one], column[two], 0
    for other, found in zip(others, counts, strict=True):
        u, v = other[one], other[two]
        if u != v:
            change += 4 + 2 * (found[u, y] + found[v, x] - found[u, x] - found[v, y])
    return change


def _exchange(column: list[int], others: Sequence[Sequence[int]], counts: Counts, one: int, two: int) -> None:
    x, y = column[one], column[two]
    for other, found in zip(others, counts, strict=True):
        for place, before, after in ((one, x, y), (two, y, x)):
            found[other[place], before] -= 1
            found[other[place], after] += 1
    column[one], column[two] = y, x


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
