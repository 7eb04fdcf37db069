"""Least squares: what each of several causes adds, when they act together.

Solved by Gram-Schmidt, modified, so that columns that are nearly alike cost no digits.

Source: Golub and Van Loan, "Matrix Computations", chapter 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

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
