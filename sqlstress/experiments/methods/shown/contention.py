"""What more processes make of a method: the same work, in parts of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlstress.experiments.methods.shown.cells import DONE, Cell, Cells, Series


@dataclass(frozen=True, slots=True)
class Contended:
    """One method at one scale, by the fewest processes and by more."""

    base: Cell
    """By the fewest, at the largest scale that they have done."""
    more: tuple[Cell | None, ...]
    """By each of the larger numbers of processes; None where it was not tried."""


def contended(cells: Cells, driver: str) -> Iterator[Contended]:
    """Yield the methods that the fewest processes have done through a driver."""
    fewest, *more = cells.processes()
    for phase in cells.phases():
        for tricks in cells.tricks(phase):
            alone = cells.largest_common([Series(fewest, driver, phase, tricks)])
            if alone:
                (base,) = alone
                found = (cells.at(Series(count, driver, phase, tricks), base.scale) for count in more)
                yield Contended(base, tuple(found))


def ratio(cell: Cell | None, base: Cell) -> float | None:
    """Return how many times the rows per second of the fewest; None where it was not done."""
    return cell.rows_per_s / base.rows_per_s if cell and cell.outcome == DONE else None
