"""What of the cells stands side by side: matrices, summaries, two bindings, fewer and more processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlstress.experiments.methods.shown.cells import DONE, Cell, Cells, Series

BASE = "1b1"
"""The method without tricks, to which the others are compared."""
TRICKS = ("--", "WAL", "TSC", "TSC + WAL")
"""The columns of a summary: what is combined with a method."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """One of the published tables: scales downwards, methods side by side."""

    title: str
    phase: str
    counted: str
    """What its rows count."""
    parts: tuple[tuple[str, ...], ...]
    """Its columns, in parts that fit a terminal: those that were published, and ours."""


MATRICES = (
    Matrix(
        "Sample insertion",
        "insert",
        "samples",
        (("1b1", "1b1 + TSC", "1b1 + WAL", "1b1 + WAL + TSC"), ("BLK", "JSON", "BLK/n + TSC")),
    ),
    Matrix("Result allocation, slow methods", "allocate", "results", (("1b1", "1b1 + WAL", "1b1 + TSC"),)),
    Matrix(
        "Result allocation, fast methods",
        "allocate",
        "results",
        (("BLK", "1b1 + WAL + TSC", "JSON", "BLK/n + TSC"),),
    ),
    Matrix("Result allocation inside SQLite", "allocate", "results", (("SPC", "SPC + WAL"),)),
    Matrix(
        "Queries",
        "query",
        "pairs",
        (("1b1", "JSON", "SPC"), ("1b1 + WAL", "JSON + WAL", "SPC + WAL"), ("BLK", "ROW", "VALUES")),
    ),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a summary: the best cell of a method, for each of TRICKS."""

    phase: str
    name: str
    best: tuple[Cell | None, ...]
    """None where it was not tried; one that failed where it was never done."""
    base: Cell | None
    """The best of one by one without tricks, which is 1x."""


def summary(cells: Cells, processes: int, driver: str) -> Iterator[Line]:
    """Yield the lines of the summary within each phase."""
    for phase in cells.phases():
        names = dict.fromkeys(tricks.partition(" ")[0] for tricks in cells.tricks(phase))
        lines = (_line(cells, Series(processes, driver, phase, name), phase) for name in names)
        yield from (line for line in lines if any(line.best))


PUBLISHED_PHASES = {"1b1": "insert", "BLK": "allocate", "JSON": "allocate", "SPC": "allocate"}
"""The published summary of insertions: the phase of which each of its methods is taken."""


def summary_as_published(cells: Cells, processes: int, driver: str) -> Iterator[Line]:
    """Yield the lines of the published summary: all relative to the insertion of samples one by one."""
    for name, phase in PUBLISHED_PHASES.items():
        yield _line(cells, Series(processes, driver, phase, name), "insert")


def _line(cells: Cells, series: Series, base_phase: str) -> Line:
    base = cells.best(Series(series.processes, series.driver, base_phase, BASE))
    best = tuple(cells.best(each) or next(iter(cells.of(each)), None) for each in with_tricks(series))
    return Line(series.phase, series.tricks, best, base)


def with_tricks(series: Series) -> Iterator[Series]:
    """Yield the series of a method's name with each of TRICKS."""
    for tricks in ("", " + WAL", " + TSC", " + WAL + TSC"):
        yield Series(series.processes, series.driver, series.phase, series.tricks + tricks)


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
