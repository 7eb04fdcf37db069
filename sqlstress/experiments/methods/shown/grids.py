"""The published tables of the experiment with methods: what stands side by side, and the summaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlstress.experiments.methods.shown.cells import Cell, Cells, Series

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
