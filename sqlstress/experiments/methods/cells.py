"""What was measured of methods, to be looked up by phase, method and scale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite
from sqlstress.experiments.methods.experiment import METHOD_NAMES, PHASES, tricks_of
from sqlstress.report import Run
from sqlstress.statistics.compare import FEWEST, Ratio

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
        if method is None or method.name not in METHOD_NAMES or method.phase not in PHASES:
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


# What of the cells stands side by side: matrices, summaries, two bindings, fewer and more processes.


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


# What the passes say of the cells: how many times as fast one is as another.


def rates(run: Run) -> dict[int, float]:
    """Return the rows a second of each pass: several processes share the rows, not the transactions."""
    return run.by_pass(lambda trial: trial.rows_per_s)


class Judged:
    """The cells that were done in enough passes, tested together."""

    def __init__(self, group: Group, cells: Cells) -> None:
        known = [cell for cell in cells.all if cell.outcome == DONE and len(rates(cell.run)) >= FEWEST]
        self._known = frozenset(known)
        self.tested = group.tested([cell.run for cell in known], rates) if known else None
        """None where there were too few passes."""

    def knows(self, cell: Cell) -> bool:
        """Say whether a cell was done in enough passes."""
        return cell in self._known

    def ratio(self, base: Cell, other: Cell) -> Ratio | None:
        """Return how many times as fast the other one is; None where there were too few passes."""
        if self.tested is None or not (self.knows(base) and self.knows(other)):
            return None
        return self.tested.ratio(base.run, other.run)
