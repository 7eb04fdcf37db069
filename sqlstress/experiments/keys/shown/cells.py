"""What was measured of primary keys, to be looked up by schema and type of identifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite
from sqlstress.experiments.keys.spec import Picks
from sqlstress.report import Run, Space

TABLE = "picks"

SpaceFigure = Callable[[Space], float | None]
SPACE: dict[str, SpaceFigure] = {
    "file": lambda space: space.file_bytes,
    "bytes per row": lambda space: space.bytes_per_row(TABLE),
    "table's share": lambda space: space.table_alone(TABLE).share,
    "indices' share": lambda space: space.indices_of(TABLE).share,
    "table's fan-out": lambda space: space.table_alone(TABLE).fan_out,
    "indices' fan-out": lambda space: space.indices_of(TABLE).fan_out,
}
"""What is told of the space: sizes in bytes, shares of the file's pages from 0 to 1."""


def space_figure(space: Space | None, name: str) -> float | None:
    """Return one of SPACE; None where it was not measured, or by a report that contradicts itself."""
    if space is None:
        return None
    try:
        return finite(SPACE[name](space))
    except (KeyError, ZeroDivisionError):
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A case that was measured, and whose data was not found wrong."""

    run: Run
    picks: Picks
    processes: int
    seconds: float
    """Time of its typical trial; above 0."""
    rows_per_s: float
    space: Space | None

    def figure(self, name: str) -> float | None:
        """Return the figure of a name: "time" (s), "rows/s", or one of SPACE."""
        known = {"time": self.seconds, "rows/s": self.rows_per_s}
        return known[name] if name in known else space_figure(self.space, name)


class Cells:
    """The cells of a group, in the order of its runs."""

    def __init__(self, group: Group) -> None:
        self.all = tuple(cell for run in group.runs if (cell := cell_of(run)))
        self._by_place = {(cell.picks, cell.processes): cell for cell in self.all}

    def twin(self, of: Cell, **changes: str) -> Cell | None:
        """Return the cell that differs from another one in this only, such as id_type="uuid4"."""
        return self._by_place.get((replace(of.picks, **changes), of.processes))  # type: ignore[arg-type]


def cell_of(run: Run) -> Cell | None:
    """Return the figures of a run; None where they can't be believed."""
    trial = run.typical()
    if trial is None or trial.error is not None or run.verdict.status == "failed" or run.case.spec is None:
        return None
    seconds, rows_per_s = finite(trial.seconds), finite(trial.rows_per_s)
    if not seconds or seconds < 0 or rows_per_s is None:
        return None
    return Cell(run, run.case.spec, run.case.concurrency, seconds, rows_per_s, trial.space)


def ratio(cell: Cell | None, base: Cell | None, figure: str) -> float | None:
    """Return a cell's figure over that of another one."""
    over, under = (one.figure(figure) if one else None for one in (cell, base))
    return over / under if over is not None and under else None
