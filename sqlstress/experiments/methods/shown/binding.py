"""What a binding costs: the same method through one driver and through another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlstress.experiments.methods.shown.cells import Cell, Cells, Series

MAPPER, BARE = "peewee", "sqlite3"
"""The two drivers that have the same SQLite below them."""
COMMITTING = ("1b1", "1b1 + WAL")
"""Methods whose every row waits for the disk: what a binding costs is lost in that."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One method at one scale, through Peewee and below it."""

    cell: Cell
    """Through Peewee."""
    bare: Cell
    """Through the standard library's binding, with the same SQLite."""
    other: Cell | None
    """Through APSW, which brings a SQLite of its own; None where that was not done."""

    @property
    def ratio(self) -> float:
        """How many times as long Peewee took."""
        return self.bare.rows_per_s / self.cell.rows_per_s

    @property
    def extra_s(self) -> float:
        """Seconds more for each row; less where below 0."""
        return 1 / self.cell.rows_per_s - 1 / self.bare.rows_per_s


def costs(cells: Cells, processes: int) -> Iterator[Cost]:
    """Yield what Peewee costs with each method, at the largest scale that was done both ways."""
    for phase in cells.phases():
        for tricks in cells.tricks(phase):
            if phase != "query" and tricks in COMMITTING:
                continue
            mapper, bare, other = (
                Series(processes, driver, phase, tricks) for driver in (MAPPER, BARE, "apsw")
            )
            both = cells.largest_common((mapper, bare))
            if both:
                through, below = both
                apsw = cells.at(other, through.scale)
                yield Cost(through, below, apsw if apsw and apsw.rows_per_s else None)
