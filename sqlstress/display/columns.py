"""A table from what its columns say of each row; columns without a figure fall away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlstress.display.blocks import Column, Table
from sqlstress.display.figures import MISSING

R = TypeVar("R")


@dataclass(frozen=True)  # with slots, Python 3.11 can make no Figure[Row](...)
class Figure(Generic[R]):
    """A column, and what it says."""

    column: Column
    cell: Callable[[R], str | None]
    """What it says of a row; None when it has no figure."""


def table_of(rows: Sequence[R], figures: Sequence[Figure[R]], leaving: tuple[str, ...] = ()) -> Table:
    """Return a table; `leaving` are the names of the columns that leave first where it is too wide."""
    cells = [(figure.column, [figure.cell(row) for row in rows]) for figure in figures]
    filled = [(column, found) for column, found in cells if any(cell is not None for cell in found)]
    return Table(
        tuple(column for column, _ in filled),
        tuple(
            tuple(MISSING if found[place] is None else str(found[place]) for _, found in filled)
            for place in range(len(rows))
        ),
        leaving,
    )
