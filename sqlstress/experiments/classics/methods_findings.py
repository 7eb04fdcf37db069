"""What was measured of methods, and what it says: which way to write and to read, and what the others cost.

What is compared is said as far as the passes tell it from noise; of too few of them, only which was highest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from sqlstress.analysis.answers import doubts, is_conclusive, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, Group, Tested
from sqlstress.experiments.classics.methods import METHOD_NAMES, PHASES, tricks_of
from sqlstress.report import Run
from sqlstress.statistics.compare import FEWEST, Ratio
from sqlstress.statistics.units import NS_PER_S, finite

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
"""The two drivers that have the same SQLite below them."""
COMMITTING = (BASE, f"{BASE} + WAL")
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
    def run(self) -> Run:
        """That through Peewee."""
        return self.cell.run

    @property
    def ratio(self) -> float:
        """How many times as long Peewee took."""
        return self.bare.rows_per_s / self.cell.rows_per_s

    @property
    def extra_s(self) -> float:
        """Seconds more for each row; less where below 0."""
        return 1 / self.cell.rows_per_s - 1 / self.bare.rows_per_s


def costs(cells: Cells) -> Iterator[Cost]:
    """Yield what Peewee costs with each method, at the largest scale that was done both ways."""
    for mapped in cells.every(MAPPER):
        if mapped.phase != "query" and mapped.tricks in COMMITTING:
            continue
        bare, other = (cells.series(mapped.phase, mapped.tricks, driver) for driver in (BARE, "apsw"))
        if both := largest_common(mapped, bare):
            through, below = both
            apsw = other.at(through.scale)
            yield Cost(through, below, apsw if apsw and apsw.rows_per_s else None)


def contended(cells: Cells, driver: str) -> Iterator[tuple[Cell, list[Cell | None]]]:
    """Yield each method that the fewest processes have done, at the largest scale, and by more processes."""
    for alone in cells.every(driver):
        if alone.done:
            base = max(alone.done, key=lambda cell: cell.scale)
            more = (cells.series(alone.phase, alone.tricks, driver, count) for count in cells.processes[1:])
            yield base, [series.at(base.scale) for series in more]


def rates(run: Run) -> dict[int, float]:
    """Return the rows a second of each pass: several processes share the rows, not the transactions."""
    return run.by_pass(lambda trial: trial.rows_per_s)


# What is said of the first driver by the fewest processes, and what the drivers and more processes change.


INSIDE = "SPC"
"""The method that not every problem allows."""
MOST = 3
"""So many methods are named of each sort."""
FAR = 2.0
"""A ratio from which on one of two ways that mean the same is advised against."""
DOING = {"insert": "inserting", "allocate": "allocating", "query": "querying"}
"""Phase → what is done in it, in a sentence."""
WORKING = {
    ("insert", "BLK"): ("BLK/n + TSC",),
    ("allocate", "BLK"): ("BLK/n + TSC",),
    ("query", "BLK"): ("VALUES", "ROW", "JSON"),
}
"""What does the same where a method of a phase meets a limit."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The cells that were done in enough passes, tested together."""

    cells: Cells
    known: frozenset[Cell]
    tested: Tested

    def ratio(self, base: Cell, other: Cell) -> Ratio | None:
        """Return how many times as fast the other one is; None where there were too few passes."""
        return self.tested.ratio(base.run, other.run) if {base, other} <= self.known else None


def methods(group: Group) -> Iterator[Finding]:
    """Yield what a group says."""
    cells = Cells(group)
    if not cells.all:
        return
    costly = list(costs(cells))
    # What Peewee costs most is tested apart: all of it is to hold together.
    shared = replace(group, groups=group.groups * (1 + bool(costly)))
    known = [cell for cell in cells.all if cell.outcome == DONE and len(rates(cell.run)) >= FEWEST]
    tested = shared.tested([cell.run for cell in known], rates) if known else None
    if tested is None:
        found = [*_highest(cells)]
    else:
        judged = Judged(cells, frozenset(known), tested)
        found = [
            *_fastest(judged),
            *_transactions(judged),
            *_row_values(judged),
            *_binding(shared, judged, costly),
            *_contention(judged),
        ]
    yield from found
    yield from doubts(tested, found, group.case)
    yield from _limits(cells)


def _highest(cells: Cells) -> Iterator[Finding]:
    """Name the highest cell of each phase, where single trials tell no more."""
    phases = []
    for phase, every in cells.by_phase():
        if best := [cell for series in every if (cell := series.best)]:
            most = max(best, key=lambda cell: cell.rows_per_s)
            phases.append(
                Finding("method-highest", doing=DOING[phase], method=most.series.tricks, rate=most.rows_per_s)
            )
    if phases:
        yield Finding("methods-highest", driver=cells.drivers[0], phases=tuple(phases))


def _fastest(judged: Judged) -> Iterator[Finding]:
    """Name the fastest methods of each phase, and the fastest that every problem allows."""
    phases = []
    for phase, every in judged.cells.by_phase():
        known = [cell for series in every for cell in series.cells if cell in judged.known]
        if not known:
            continue
        best = max(known, key=lambda cell: judged.tested.middle(cell.run))
        general = [cell for cell in known if cell.series.method != INSIDE]
        others = _leading(judged, general) if general and best not in general else None
        fastest = _leading(judged, known)
        phases.append(Finding("phase-fastest", doing=DOING[phase], fastest=fastest, others=others))
    if phases:
        yield Finding("methods-fastest", driver=judged.cells.drivers[0], phases=tuple(phases))


def _leading(judged: Judged, known: Sequence[Cell]) -> Finding:
    """Return the methods of which a cell is not slower than the best one, beyond doubt."""
    lead = leaders(judged.tested, [cell.run for cell in known], families=2)
    near = lead.among(known)
    best = next(cell for cell in near if cell.run is lead.best)
    several = any(cell.series is not best.series for cell in near)
    base, beside = judged.cells.series(best.series.phase, BASE).best, None
    if base and base.series is not best.series:
        # How many times as fast it is as one by one.
        ratio = judged.ratio(base, best)
        beside = Finding("method-beside-unclear", unclear=True, base=BASE)
        if is_conclusive(ratio):
            beside = Finding("method-beside", ratio=ratio, base=BASE)
    return Finding(
        "methods-lead",
        methods=tuple(dict.fromkeys(cell.series.tricks for cell in near)),
        about=several,
        rate=best.rows_per_s,
        beside=beside,
        equal=several and lead.equal,
        unclear=several and lead.unclear,
    )


Gains = list[tuple[str, Ratio | None]]
"""What is done, and how many times as fast it became."""


def _transactions(judged: Judged) -> Iterator[Finding]:
    """Yield what one transaction changes where rows are written, and what WAL does."""

    def gains(slow: str, fast: str) -> Gains:
        both = {
            phase: largest_common(*(judged.cells.series(phase, tricks) for tricks in (slow, fast)))
            for phase in ("insert", "allocate")
        }
        return [(DOING[phase], judged.ratio(*pair)) for phase, pair in both.items() if pair]

    together = gains(BASE, f"{BASE} + TSC")
    if any(ratio and ratio.is_above and not ratio.is_within(EQUAL) for _, ratio in together):
        yield Finding("transaction", made=_made(together))
    elif not all(is_conclusive(ratio) for _, ratio in together):
        yield Finding("transaction-unclear", unclear=True)
    within = gains(f"{BASE} + TSC", f"{BASE} + WAL + TSC")
    if alone := gains(BASE, f"{BASE} + WAL"):
        yield Finding("wal", alone=_made(alone), within=_made(within) if within else None)


def _made(gains: Gains) -> Finding:
    """Return what became how much faster, and of what that can't be told."""
    faster = tuple(
        Finding("made-faster", doing=doing, ratio=ratio) for doing, ratio in gains if is_conclusive(ratio)
    )
    unclear = tuple(doing for doing, ratio in gains if not is_conclusive(ratio))
    return Finding("made", faster=faster, both=bool(faster and unclear), unclear=unclear)


def _row_values(judged: Judged) -> Iterator[Finding]:
    """Warn of row values where they took much longer than a join that means the same."""
    found = []
    for driver in judged.cells.drivers:
        pair = largest_common(*(judged.cells.series("query", form, driver) for form in ("ROW", "VALUES")))
        ratio = judged.ratio(*pair) if pair else None
        if ratio and ratio.low > FAR:
            found.append(Finding("took-as-long", ratio=ratio, driver=driver))
    if found:
        yield Finding("row-values", took=tuple(found))


def _way(cell: Cell) -> str:
    """Say what a cell does: "inserting by JSON"."""
    return f"{DOING[cell.series.phase]} by {cell.series.tricks}"


def _apart(ratios: Mapping[Cell, Ratio | None]) -> tuple[dict[Cell, Ratio], list[str], list[Finding]]:
    """Return the ways that differ, those that are about equal, and how many can't be told."""
    told = {cell: ratio for cell, ratio in ratios.items() if ratio and is_conclusive(ratio)}
    same = [cell for cell, ratio in told.items() if ratio.is_within(EQUAL)]
    unclear = len(ratios) - len(told)
    return (
        {cell: ratio for cell, ratio in told.items() if cell not in same},
        [*map(_way, same)],
        [Finding("ways-unclear", unclear=unclear)] if unclear else [],
    )


def _binding(group: Group, judged: Judged, costly: Sequence[Cost]) -> Iterator[Finding]:
    """Yield where Peewee costs most, in time for each row, and where next to nothing."""
    # Less done in a second is more time.
    apart, same, unclear = _apart({cost.cell: judged.ratio(cost.cell, cost.bare) for cost in costly})
    longer = {cost: ratio for cost in costly if (ratio := apart.get(cost.cell)) and ratio.is_above}
    parts = [Finding("binding-most", ways=_dearest(group, longer))] if longer else []
    parts += [Finding("binding-little", share=EQUAL, ways=same)] if same else []
    parts += unclear
    if parts:
        yield Finding("binding", parts=tuple(parts))


def _dearest(group: Group, longer: Mapping[Cost, Ratio]) -> tuple[Finding, ...]:
    """Return those of which no other costs more for each row, beyond doubt; the dearest first."""
    extras = {}
    for cost in longer:
        # By how much a row took longer, in seconds, in each pass in which it did.
        through, below = rates(cost.run), rates(cost.bare.run)
        more = {number: 1 / through[number] - 1 / below[number] for number in through.keys() & below.keys()}
        extras[id(cost.run)] = {number: extra for number, extra in more.items() if extra > 0}
    ranked = sorted(longer, key=lambda cost: -cost.extra_s)
    certain = [cost.run for cost in longer if len(extras[id(cost.run)]) >= FEWEST]
    tested = group.tested(certain, lambda run: extras[id(run)]) if certain else None
    if tested:
        ranked = leaders(tested, certain).among(ranked)
    return tuple(
        Finding("way-dearer", way=_way(cost.cell), row_ns=cost.extra_s * NS_PER_S, ratio=longer[cost])
        for cost in ranked[:MOST]
    )


def _contention(judged: Judged) -> Iterator[Finding]:
    """Yield what the most processes made of the total."""
    fewest, *more = judged.cells.processes
    if not more:
        return
    driver = judged.cells.drivers[0]
    apart, same, unclear = _apart(
        {
            base: judged.ratio(base, most)
            for base, (*_, most) in contended(judged.cells, driver)
            if most and most.outcome == DONE
        }
    )
    changed = sorted(apart.items(), key=lambda each: each[1].estimate)
    fewer = [each for each in changed if each[1].is_below]
    greater = [each for each in reversed(changed) if each[1].is_above]
    parts = [Finding("contention-fewer", ways=_first(fewer))] if fewer else []
    parts += [Finding("contention-more", ways=_first(greater))] if greater else []
    parts += [Finding("contention-same", ways=same)] if same else []
    parts += unclear
    if parts:
        yield Finding("contention", driver=driver, most=more[-1], fewest=fewest, parts=tuple(parts))


def _first(ways: Sequence[tuple[Cell, Ratio]]) -> tuple[Finding, ...]:
    """Return the first ones, with how many times as many they had."""
    named = [Finding("way-changed", way=_way(base), ratio=ratio) for base, ratio in ways[:MOST]]
    rest = len(ways) - MOST
    return (*named, *[Finding("ways-more", count=rest)] * (rest > 0))


def _limits(cells: Cells) -> Iterator[Finding]:
    """Yield what SQLite refused, each reason once, and what does the same without meeting it."""
    reasons: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells.all:
        if cell.outcome == LIMIT and cell.note:
            reasons.setdefault((cell.series.phase, cell.series.method, cell.note), []).append(cell)
    for (phase, method, note), refused in reasons.items():
        yield Finding(
            "method-limit",
            doing=DOING[phase],
            rows=refused[0].rows,
            method=method,
            drivers=tuple(dict.fromkeys(cell.series.driver for cell in refused)),
            reason=note,
            instead=_instead(cells, refused[0]),
        )


def _instead(cells: Cells, refused: Cell) -> Finding | None:
    """Return which method did the same, or more."""
    series = refused.series
    for tricks in WORKING.get((series.phase, series.method), ()):
        beside = cells.series(series.phase, tricks, series.driver, series.processes)
        found = [cell for cell in beside.done if cell.rows >= refused.rows]
        if found:
            return Finding("method-instead", method=tricks, rows=found[-1].rows, rate=found[-1].rows_per_s)
    return None
