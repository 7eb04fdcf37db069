"""The findings of methods: which way to write and to read, and what the others cost.

A difference is reported if the passes tell it from noise; of too few passes, only the highest figures are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

from sqlstress.analysis.answers import doubts, is_conclusive, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Tested
from sqlstress.experiments.classics import sentences
from sqlstress.experiments.classics.methods import METHOD_NAMES, PHASES, tricks_of
from sqlstress.report import Run
from sqlstress.statistics.compare import FEWEST, NEAR, Ratio
from sqlstress.statistics.units import finite

DONE, TIMEOUT, LIMIT, FAILED, WRONG = "done", "timeout", "limit", "failed", "wrong"
"""How a cell ended: as its trial did; or it could not be measured; or its data was found wrong."""
BASE = "1b1"
"""The method without tricks, to which the others are compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One column of a table: a method at every scale that was asked for."""

    processes: int
    driver: str
    phase: str
    tricks: str
    """A method's name, and WAL and TSC where it has them, as in "1b1 + WAL"."""
    cells: list[Cell] = field(default_factory=list)
    """In the order of the report; none where it has no such series."""

    @property
    def method(self) -> str:
        """The method's name."""
        return self.tricks.partition(" ")[0]

    @property
    def done(self) -> list[Cell]:
        """The cells that were done."""
        return [cell for cell in self.cells if cell.outcome == DONE]

    @property
    def best(self) -> Cell | None:
        """The cell with most rows per second; None if none was done."""
        return max(self.done, key=lambda cell: cell.rows_per_s, default=None)

    def at(self, scale: int) -> Cell | None:
        """Return the cell at a scale."""
        return next((cell for cell in self.cells if cell.scale == scale), None)


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One method at one scale."""

    run: Run
    series: Series
    outcome: str
    """DONE, TIMEOUT, LIMIT, FAILED or WRONG; that of a smaller scale where it was not tried."""
    rows_per_s: float = 0.0
    """Above 0 where it was done, else 0."""
    seconds: float = 0.0
    note: str = ""
    """What SQLite said of a limit."""

    @property
    def scale(self) -> int:
        """Its case's scale."""
        return int(self.run.case.spec.scale)

    @property
    def rows(self) -> int:
        """Rows that it was to write or read."""
        return int(self.run.case.spec.rows)


class Cells:
    """The cells of a group."""

    def __init__(self, group: Group) -> None:
        self.all: list[Cell] = []
        """In the order of the report."""
        self._series: dict[tuple[int, str, str, str], Series] = {}
        for run in group.runs:
            method = run.case.spec
            if method.name not in METHOD_NAMES or method.phase not in PHASES:
                continue  # of another version
            key = run.case.concurrency, run.case.driver, method.phase, tricks_of(run.case)
            series = self._series.setdefault(key, Series(*key))
            series.cells.append(_cell(run, series))
            self.all.append(series.cells[-1])
        self.processes = tuple(sorted({series.processes for series in self._series.values()}))
        """The numbers of processes, ascending."""
        self.drivers = tuple(dict.fromkeys(series.driver for series in self._series.values()))
        """The drivers, in the order of the report."""
        methods = dict.fromkeys((series.phase, series.tricks) for series in self._series.values())
        self._methods = sorted(methods, key=lambda method: PHASES.index(method[0]))

    def series(
        self, phase: str, tricks: str, driver: str | None = None, processes: int | None = None
    ) -> Series:
        """Return a series; of the first driver and the fewest processes unless others are named."""
        key = processes or self.processes[0], driver or self.drivers[0], phase, tricks
        return self._series.get(key) or Series(*key)

    def like(self, cell: Cell, tricks: str | None = None, driver: str | None = None) -> Series:
        """Return the series of a cell, or the series that differs in the method or the driver only."""
        own = cell.series
        return self.series(own.phase, tricks or own.tricks, driver or own.driver, own.processes)

    def by_work(self) -> list[Cell]:
        """Return the cells by phase, driver and rows, otherwise in the order of the report."""
        return sorted(
            self.all,
            key=lambda cell: (
                PHASES.index(cell.series.phase),
                self.drivers.index(cell.series.driver),
                cell.rows,
            ),
        )

    def every(self, driver: str | None = None) -> list[Series]:
        """Return the series of all methods, phase by phase, by the fewest processes."""
        return [self.series(phase, tricks, driver) for phase, tricks in self._methods]

    def by_phase(self) -> Iterator[tuple[str, list[Series]]]:
        """Yield each phase with the series of the first driver, by the fewest processes."""
        for phase, series in groupby(self.every(), key=lambda each: each.phase):
            yield phase, list(series)


def _cell(run: Run, series: Series) -> Cell:
    """Return the cell of a run; one that was skipped is as its series was at a smaller scale."""
    if run.skipped is not None:
        before = (cell.outcome for cell in reversed(series.cells) if cell.outcome in (TIMEOUT, LIMIT))
        return Cell(run, series, next(before, FAILED))
    if run.verdict.status == "failed":
        return Cell(run, series, WRONG)
    unfinished = next((trial for trial in run.valid if trial.outcome != DONE), None)
    if unfinished:
        known = unfinished.outcome if unfinished.outcome in (TIMEOUT, LIMIT) else FAILED
        return Cell(run, series, known, note=unfinished.note)
    trial = run.shown()
    rate, seconds = (finite(trial.rows_per_s), finite(trial.seconds)) if trial else (None, None)
    if not rate or rate < 0 or seconds is None:
        return Cell(run, series, FAILED)
    return Cell(run, series, DONE, rate, seconds)


def largest_common(*wanted: Series) -> tuple[Cell, ...] | None:
    """Return the cells of some series at the largest scale that all of them have done."""
    scales = set.intersection(*({cell.scale for cell in series.done} for series in wanted))
    return tuple(cell for series in wanted if (cell := series.at(max(scales)))) if scales else None


MAPPER, BARE = "peewee", "sqlite3"
"""The two drivers that use the same SQLite."""
COMMITTING = (BASE, f"{BASE} + WAL")
"""Methods that commit each row: the disk hides what a driver costs them."""


def costs(cells: Cells) -> Iterator[tuple[Cell, Cell]]:
    """Yield each method through Peewee and through sqlite3, at the largest scale that both have done."""
    for mapped in cells.every(MAPPER):
        if mapped.phase != "query" and mapped.tricks in COMMITTING:
            continue
        if pair := largest_common(mapped, cells.series(mapped.phase, mapped.tricks, BARE)):
            yield pair[0], pair[1]


def contended(cells: Cells, driver: str) -> Iterator[tuple[Cell, Cell]]:
    """Yield each method by the fewest and by the most processes, at the largest scale of the fewest."""
    for alone in cells.every(driver):
        if alone.done:
            base = max(alone.done, key=lambda cell: cell.scale)
            together = cells.series(alone.phase, alone.tricks, driver, cells.processes[-1]).at(base.scale)
            if together and together.outcome == DONE:
                yield base, together


def rates(run: Run) -> dict[int, float]:
    """Return the rows per second of each pass: several processes share the rows, not the transactions."""
    return run.by_pass(lambda trial: trial.rows_per_s)


# Sentences about the first driver and the fewest processes, and about what other drivers and more processes
# change.


INSIDE = "SPC"
"""The method that only some problems allow."""
MOST = 3
"""Number of methods that are named of each sort."""
FAR = 2.0
"""Ratio of two ways that mean the same, from which on the slower way is advised against."""
DOING = {"insert": "inserting", "allocate": "allocating", "query": "querying"}
"""Verb of each phase."""
WORKING = {
    ("insert", "BLK"): ("BLK/n + TSC",),
    ("allocate", "BLK"): ("BLK/n + TSC",),
    ("query", "BLK"): ("VALUES", "ROW", "JSON"),
}
"""Methods that do the work of a method that meets a limit, by phase and method."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The cells that were done in enough passes, tested together."""

    cells: Cells
    known: frozenset[Cell]
    tested: Tested

    def ratio(self, base: Cell, other: Cell) -> Ratio | None:
        """Return the other cell's rate over the base's; None if there were too few passes."""
        return self.tested.ratio(base.run, other.run) if {base, other} <= self.known else None

    def gains(self, pairs: Iterable[tuple[Cell, Cell]]) -> list[tuple[Cell, Ratio]]:
        """Return the conclusive ratios, the lowest first, each with the cell that is 1."""
        ratios = ((base, self.ratio(base, other)) for base, other in pairs)
        told = [(base, ratio) for base, ratio in ratios if ratio and is_conclusive(ratio)]
        return sorted(
            ((base, ratio) for base, ratio in told if not ratio.is_within(NEAR)),
            key=lambda gain: gain[1].estimate,
        )


def methods(group: Group) -> Iterator[Finding]:
    """Yield the findings of a group."""
    cells = Cells(group)
    if not cells.all:
        return
    known = [cell for cell in cells.all if cell.outcome == DONE and len(rates(cell.run)) >= FEWEST]
    tested = group.tested([cell.run for cell in known], rates) if known else None
    if tested is None:
        found = [*_highest(cells)]
    else:
        judged = Judged(cells, frozenset(known), tested)
        found = [
            *_fastest(judged),
            *_transactions(judged),
            *_row_values(judged),
            *_binding(judged),
            *_contention(judged),
        ]
    yield from found
    yield from doubts(tested, found, group.case)
    yield from _limits(cells)


def _highest(cells: Cells) -> Iterator[Finding]:
    """Yield the highest cell of each phase: single trials support no other conclusion."""
    phases = []
    for phase, every in cells.by_phase():
        if best := [cell for series in every if (cell := series.best)]:
            most = max(best, key=lambda cell: cell.rows_per_s)
            lead = Finding(sentences.methods_lead, methods=(most.series.tricks,), rate=most.rows_per_s)
            phases.append(Finding(sentences.phase_fastest, doing=DOING[phase], fastest=lead))
    if phases:
        yield Finding(sentences.methods_fastest, single=True, driver=cells.drivers[0], phases=tuple(phases))


def _fastest(judged: Judged) -> Iterator[Finding]:
    """Yield the fastest methods of each phase, and the fastest that every problem allows."""
    phases = []
    for phase, every in judged.cells.by_phase():
        known = [cell for series in every for cell in series.cells if cell in judged.known]
        if not known:
            continue
        best = max(known, key=lambda cell: judged.tested.middle(cell.run))
        general = [cell for cell in known if cell.series.method != INSIDE]
        others = _leading(judged, general) if general and best not in general else None
        fastest = _leading(judged, known)
        phases.append(Finding(sentences.phase_fastest, doing=DOING[phase], fastest=fastest, others=others))
    if phases:
        yield Finding(sentences.methods_fastest, driver=judged.cells.drivers[0], phases=tuple(phases))


def _leading(judged: Judged, known: Sequence[Cell]) -> Finding:
    """Return the methods with a cell that may be the fastest, compared with one by one."""
    lead = leaders(judged.tested, [cell.run for cell in known], families=2)
    near = lead.among(known)
    best = next(cell for cell in near if cell.run is lead.best)
    several = any(cell.series is not best.series for cell in near)
    base = judged.cells.series(best.series.phase, BASE).best
    compared = base is not None and base.series is not best.series
    ratio = judged.ratio(base, best) if base and compared else None
    return Finding(
        sentences.methods_lead,
        methods=tuple(dict.fromkeys(cell.series.tricks for cell in near)),
        about=several,
        rate=best.rows_per_s,
        base=BASE if is_conclusive(ratio) else None,
        ratio=ratio if is_conclusive(ratio) else None,
        equal=several and lead.equal,
        unclear=(several and lead.unclear) or (compared and not is_conclusive(ratio)),
        which=several and lead.unclear,
    )


def _transactions(judged: Judged) -> Iterator[Finding]:
    """Yield the gain of one transaction where rows are written, and the gain of WAL."""

    def gains(slow: str, fast: str) -> dict[str, Ratio | None]:
        both = {
            DOING[phase]: largest_common(*(judged.cells.series(phase, tricks) for tricks in (slow, fast)))
            for phase in ("insert", "allocate")
        }
        return {doing: judged.ratio(*pair) for doing, pair in both.items() if pair}

    together = gains(BASE, f"{BASE} + TSC")
    if any(ratio and ratio.is_above and not ratio.is_within(NEAR) for ratio in together.values()):
        yield _gain(sentences.transaction, together)
    for how, tricks in (("with a commit per row", ""), ("in one transaction", " + TSC")):
        if changed := gains(BASE + tricks, f"{BASE} + WAL{tricks}"):
            yield _gain(sentences.wal, changed, how=how)


def _gain(sentence: Callable[..., str], ratios: Mapping[str, Ratio | None], **more: str) -> Finding:
    """Return the ratios that are conclusive, and the work for which there is none."""
    made = {doing: ratio for doing, ratio in ratios.items() if ratio and is_conclusive(ratio)}
    faster = tuple(Finding(sentences.made_faster, doing=doing, ratio=ratio) for doing, ratio in made.items())
    unclear = tuple(doing for doing in ratios if doing not in made)
    return Finding(sentence, faster=faster, both=bool(faster and unclear), unclear=unclear, **more)


def _row_values(judged: Judged) -> Iterator[Finding]:
    """Yield a warning of row values if they took much longer than a join that means the same."""
    found = []
    for driver in judged.cells.drivers:
        pair = largest_common(*(judged.cells.series("query", form, driver) for form in ("ROW", "VALUES")))
        ratio = judged.ratio(*pair) if pair else None
        if ratio and ratio.low > FAR:
            found.append(Finding(sentences.took_as_long, ratio=ratio, driver=driver))
    if found:
        yield Finding(sentences.row_values, took=tuple(found))


def _ways(gains: Iterable[tuple[Cell, Ratio]]) -> tuple[Finding, ...]:
    """Return the first few gains."""
    return tuple(
        Finding(sentences.way_changed, way=f"{DOING[cell.series.phase]} by {cell.series.tricks}", ratio=ratio)
        for cell, ratio in islice(gains, MOST)
    )


def _binding(judged: Judged) -> Iterator[Finding]:
    """Yield the methods that Peewee makes slowest, compared with sqlite3."""
    longer = [gain for gain in reversed(judged.gains(costs(judged.cells))) if gain[1].is_above]
    if longer:
        yield Finding(sentences.binding, ways=_ways(longer))


def _contention(judged: Judged) -> Iterator[Finding]:
    """Yield the methods whose total rate falls or rises most with the most processes."""
    fewest, *more = judged.cells.processes
    driver = judged.cells.drivers[0]
    gains = judged.gains(contended(judged.cells, driver)) if more else []
    fewer = [gain for gain in gains if gain[1].is_below]
    for how, ways in (("fewer", fewer), ("more", [*reversed(gains[len(fewer) :])])):
        if ways:
            found = _ways(ways)
            yield Finding(
                sentences.contention, driver=driver, most=more[-1], fewest=fewest, how=how, ways=found
            )


def _limits(cells: Cells) -> Iterator[Finding]:
    """Yield each limit of SQLite that was met, once, and a method that works without it."""
    reasons: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells.all:
        if cell.outcome == LIMIT and cell.note:
            reasons.setdefault((cell.series.phase, cell.series.method, cell.note), []).append(cell)
    for (phase, method, note), refused in reasons.items():
        instead = _instead(cells, refused[0])
        yield Finding(
            sentences.method_limit,
            doing=DOING[phase],
            rows=refused[0].rows,
            method=method,
            drivers=tuple(dict.fromkeys(cell.series.driver for cell in refused)),
            reason=note,
            instead=instead.series.tricks if instead else None,
            done=instead.rows if instead else None,
            rate=instead.rows_per_s if instead else None,
        )


def _instead(cells: Cells, refused: Cell) -> Cell | None:
    """Return the cell of another method that did as many rows or more."""
    series = refused.series
    others = (
        cells.series(series.phase, tricks, series.driver, series.processes)
        for tricks in WORKING.get((series.phase, series.method), ())
    )
    done = (cell for other in others for cell in reversed(other.done) if cell.rows >= refused.rows)
    return next(done, None)
