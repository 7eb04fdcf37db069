"""What was measured of methods, to be looked up by phase, method and scale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite
from sqlstress.experiments.methods.face import tricks_of
from sqlstress.experiments.methods.spec import METHODS, PHASES
from sqlstress.report import Run

DONE, TIMEOUT, LIMIT, FAILED, WRONG = "done", "timeout", "limit", "failed", "wrong"
"""How a cell ended: as its trial did; or it could not be measured; or its data was found wrong."""
DOING = {"insert": "inserting", "allocate": "allocating", "query": "querying"}
"""Phase → what is done in it, in a sentence."""


@dataclass(frozen=True, slots=True)
class Series:
    """What the cells of one column of a table have in common."""

    processes: int
    driver: str
    phase: str
    tricks: str
    """A method's name, and WAL and TSC where it has them, as in "1b1 + WAL"."""


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One method at one scale."""

    run: Run
    series: Series
    scale: int
    rows: int
    """Rows that it was to write or read."""
    outcome: str
    """DONE, TIMEOUT, LIMIT, FAILED or WRONG; that of a smaller scale where it was not tried."""
    rows_per_s: float = 0.0
    """Above 0 where it was done, else 0."""
    seconds: float = 0.0
    note: str = ""
    """What SQLite said of a limit."""


def doing(cell: Cell) -> str:
    """Say what a cell does: "inserting by JSON"."""
    return f"{DOING[cell.series.phase]} by {cell.series.tricks}"


class Cells:
    """The cells of a group."""

    def __init__(self, group: Group) -> None:
        self.all = tuple(_cells(group.runs))
        self._of: dict[Series, list[Cell]] = {}
        for cell in self.all:
            self._of.setdefault(cell.series, []).append(cell)
        # Asked for again and again, by every driver, phase and method.
        self._processes = tuple(sorted({one.processes for one in self._of}))
        self._drivers = tuple(dict.fromkeys(one.driver for one in self._of))
        self._tricks: dict[str, dict[str, None]] = {}
        for one in self._of:
            self._tricks.setdefault(one.phase, {})[one.tricks] = None

    @property
    def series(self) -> tuple[Series, ...]:
        """Every series that there is, in the order of the report."""
        return tuple(self._of)

    def of(self, series: Series) -> tuple[Cell, ...]:
        """Return the cells of a series, none if there is no such series."""
        return tuple(self._of.get(series, ()))

    def best(self, series: Series) -> Cell | None:
        """Return the cell of a series with most rows per second; None if none was done."""
        done = [cell for cell in self.of(series) if cell.outcome == DONE]
        return max(done, key=lambda cell: cell.rows_per_s, default=None)

    def at(self, series: Series, scale: int) -> Cell | None:
        """Return the cell of a series at a scale."""
        return next((cell for cell in self.of(series) if cell.scale == scale), None)

    def largest_common(self, wanted: Iterable[Series]) -> tuple[Cell, ...] | None:
        """Return the cells of some series at the largest scale that all of them have done."""
        series = tuple(wanted)
        done = [{cell.scale for cell in self.of(one) if cell.outcome == DONE} for one in series]
        scales = set.intersection(*done) if done else set()
        if not scales:
            return None
        return tuple(cell for one in series if (cell := self.at(one, max(scales))))

    def processes(self) -> tuple[int, ...]:
        """Return the numbers of processes, ascending."""
        return self._processes

    def drivers(self) -> tuple[str, ...]:
        """Return the drivers, in the order of the report."""
        return self._drivers

    def tricks(self, phase: str) -> tuple[str, ...]:
        """Return the methods of a phase, in the order of the report."""
        return tuple(self._tricks.get(phase, ()))

    def phases(self) -> tuple[str, ...]:
        """Return the phases, in their order."""
        return tuple(phase for phase in PHASES if phase in self._tricks)


def _cells(runs: Iterable[Run]) -> Iterator[Cell]:
    failed: dict[Series, str] = {}
    for run in runs:
        method = run.case.spec
        if method is None or method.name not in METHODS or method.phase not in PHASES:
            continue  # of another version
        series = Series(run.case.concurrency, run.case.driver, method.phase, tricks_of(run.case))
        cell = _cell(run, series, failed.get(series, FAILED))
        if cell.outcome in (TIMEOUT, LIMIT):
            failed[series] = cell.outcome
        yield cell


def _cell(run: Run, series: Series, before: str) -> Cell:
    """Return the cell of a run; `before` is how the series failed at a smaller scale."""
    scale, rows = run.case.spec.scale, run.case.spec.rows
    if run.skipped is not None:
        return Cell(run, series, scale, rows, before)
    if run.verdict.status == "failed":
        return Cell(run, series, scale, rows, WRONG)
    unfinished = next((trial for trial in run.valid if trial.outcome != DONE), None)
    if unfinished:
        known = unfinished.outcome if unfinished.outcome in (TIMEOUT, LIMIT) else FAILED
        return Cell(run, series, scale, rows, known, note=unfinished.note)
    trial = run.typical() if run.valid else None
    rate, seconds = (finite(trial.rows_per_s), finite(trial.seconds)) if trial else (None, None)
    if not rate or rate < 0 or seconds is None:
        return Cell(run, series, scale, rows, FAILED)
    return Cell(run, series, scale, rows, DONE, rate, seconds)
