"""What was measured of methods, and what it says: which way to write and to read, and what the others cost.

What is compared is said as far as the passes tell it from noise; of too few of them, only which was highest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlstress.analysis.answers import doubts, is_told, leaders
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import EQUAL, Group, Tested
from sqlstress.analysis.wording import finite
from sqlstress.experiments.methods.experiment import METHOD_NAMES, PHASES, tricks_of
from sqlstress.report import Run
from sqlstress.statistics.compare import FEWEST, Ratio
from sqlstress.statistics.units import NS_PER_S

# What was measured, to be looked up by phase, method and scale.


DONE, TIMEOUT, LIMIT, FAILED, WRONG = "done", "timeout", "limit", "failed", "wrong"
"""How a cell ended: as its trial did; or it could not be measured; or its data was found wrong."""
BASE = "1b1"
"""The method without tricks, to which the others are compared."""


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
        self._of: dict[Series, list[Cell]] = {}
        for run in group.runs:
            method = run.case.spec
            if method.name not in METHOD_NAMES or method.phase not in PHASES:
                continue  # of another version
            series = Series(run.case.concurrency, run.case.driver, method.phase, tricks_of(run.case))
            smaller = self._of.setdefault(series, [])
            failed = next(
                (cell.outcome for cell in reversed(smaller) if cell.outcome in (TIMEOUT, LIMIT)), FAILED
            )
            smaller.append(_cell(run, series, failed))
            self.all.append(smaller[-1])
        self.processes = tuple(sorted({series.processes for series in self._of}))
        """The numbers of processes, ascending."""
        self.drivers = tuple(dict.fromkeys(series.driver for series in self._of))
        """The drivers, in the order of the report."""
        self.tricks: dict[str, tuple[str, ...]] = {}
        """Phase → its methods, in the order of the report."""
        for phase in PHASES:
            if tricks := dict.fromkeys(series.tricks for series in self._of if series.phase == phase):
                self.tricks[phase] = tuple(tricks)

    def series(self, phase: str, tricks: str, driver: str | None = None) -> Series:
        """Return a series of the fewest processes; of the first driver unless another one is named."""
        return Series(self.processes[0], driver or self.drivers[0], phase, tricks)

    def of(self, series: Series) -> Sequence[Cell]:
        """Return the cells of a series, none if there is no such series."""
        return self._of.get(series, ())

    def best(self, series: Series) -> Cell | None:
        """Return the cell of a series with most rows per second; None if none was done."""
        done = [cell for cell in self.of(series) if cell.outcome == DONE]
        return max(done, key=lambda cell: cell.rows_per_s, default=None)

    def at(self, series: Series, scale: int) -> Cell | None:
        """Return the cell of a series at a scale."""
        return next((cell for cell in self.of(series) if cell.scale == scale), None)

    def largest_common(self, *wanted: Series) -> tuple[Cell, ...] | None:
        """Return the cells of some series at the largest scale that all of them have done."""
        done = [{cell.scale for cell in self.of(series) if cell.outcome == DONE} for series in wanted]
        scales = set.intersection(*done)
        if not scales:
            return None
        return tuple(cell for series in wanted if (cell := self.at(series, max(scales))))


def _cell(run: Run, series: Series, before: str) -> Cell:
    """Return the cell of a run; `before` is how the series failed at a smaller scale."""
    if run.skipped is not None:
        return Cell(run, series, before)
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
    for phase, every in cells.tricks.items():
        for tricks in every:
            if phase != "query" and tricks in COMMITTING:
                continue
            mapper, bare, other = (cells.series(phase, tricks, driver) for driver in (MAPPER, BARE, "apsw"))
            if both := cells.largest_common(mapper, bare):
                through, below = both
                apsw = cells.at(other, through.scale)
                yield Cost(through, below, apsw if apsw and apsw.rows_per_s else None)


def contended(cells: Cells, driver: str) -> Iterator[tuple[Cell, list[Cell | None]]]:
    """Yield each method that the fewest processes have done, at the largest scale, and by more processes."""
    for phase, every in cells.tricks.items():
        for tricks in every:
            if alone := cells.largest_common(cells.series(phase, tricks, driver)):
                (base,) = alone
                more = (replace(base.series, processes=count) for count in cells.processes[1:])
                yield base, [cells.at(series, base.scale) for series in more]


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


class Judged:
    """The cells that were done in enough passes, tested together."""

    def __init__(self, group: Group, cells: Cells) -> None:
        self.cells, self.driver = cells, cells.drivers[0]
        known = [cell for cell in cells.all if cell.outcome == DONE and len(rates(cell.run)) >= FEWEST]
        self._known = frozenset(known)
        self.tested = group.tested([cell.run for cell in known], rates) if known else None
        """None where there were too few passes."""

    def known(self, phase: str) -> list[Cell]:
        """Return the cells of a phase, of the first driver and the fewest processes."""
        every = (self.cells.of(self.cells.series(phase, tricks)) for tricks in self.cells.tricks[phase])
        return [cell for cells in every for cell in cells if cell in self._known]

    def ratio(self, base: Cell, other: Cell) -> Ratio | None:
        """Return how many times as fast the other one is; None where there were too few passes."""
        if self.tested is None or not {base, other} <= self._known:
            return None
        return self.tested.ratio(base.run, other.run)


def methods(group: Group) -> Iterator[Finding]:
    """Yield what a group says."""
    cells = Cells(group)
    if not cells.all:
        return
    costly = list(costs(cells))
    # What Peewee costs most is tested apart: all of it is to hold together.
    shared = replace(group, groups=group.groups * (1 + bool(costly)))
    judged = Judged(shared, cells)
    if judged.tested is None:
        found = [*_highest(judged)]
    else:
        found = [
            *_fastest(judged, judged.tested),
            *_transactions(judged),
            *_row_values(judged),
            *_binding(shared, judged, costly),
            *_contention(judged),
        ]
    yield from found
    yield from doubts(judged.tested, found, group.case)
    yield from _limits(cells)


def _highest(judged: Judged) -> Iterator[Finding]:
    """Name the highest cell of each phase, where single trials tell no more."""
    phases = []
    for phase, every in judged.cells.tricks.items():
        best = [cell for tricks in every if (cell := judged.cells.best(judged.cells.series(phase, tricks)))]
        if best:
            most = max(best, key=lambda cell: cell.rows_per_s)
            phases.append(
                Finding("method-highest", doing=DOING[phase], method=most.series.tricks, rate=most.rows_per_s)
            )
    if phases:
        yield Finding("methods-highest", driver=judged.driver, phases=tuple(phases))


def _fastest(judged: Judged, tested: Tested) -> Iterator[Finding]:
    """Name the fastest methods of each phase, and the fastest that every problem allows."""
    phases = []
    for phase in judged.cells.tricks:
        known = judged.known(phase)
        if not known:
            continue
        best = max(known, key=lambda cell: tested.middle(cell.run))
        general = [cell for cell in known if not cell.series.tricks.startswith(INSIDE)]
        others = _leading(judged, tested, general) if general and best not in general else None
        fastest = _leading(judged, tested, known)
        phases.append(Finding("phase-fastest", doing=DOING[phase], fastest=fastest, others=others))
    if phases:
        yield Finding("methods-fastest", driver=judged.driver, phases=tuple(phases))


def _leading(judged: Judged, tested: Tested, known: Sequence[Cell]) -> Finding:
    """Return the methods of which a cell is not slower than the best one, beyond doubt."""
    lead = leaders(tested, [cell.run for cell in known], families=2)
    near = lead.among(known)
    best = next(cell for cell in near if cell.run is lead.best)
    several = any(cell.series != best.series for cell in near)
    base, beside = judged.cells.best(replace(best.series, tricks=BASE)), None
    if base and base.series != best.series:
        # How many times as fast it is as one by one.
        ratio = judged.ratio(base, best)
        beside = Finding("method-beside-unclear", unclear=True, base=BASE)
        if is_told(ratio):
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
        pairs = {
            phase: judged.cells.largest_common(
                judged.cells.series(phase, slow), judged.cells.series(phase, fast)
            )
            for phase in ("insert", "allocate")
        }
        return [(DOING[phase], judged.ratio(*pair)) for phase, pair in pairs.items() if pair]

    together = gains(BASE, f"{BASE} + TSC")
    if any(ratio and ratio.is_above and not ratio.is_within(EQUAL) for _, ratio in together):
        yield Finding("transaction", made=_made(together))
    elif not all(is_told(ratio) for _, ratio in together):
        yield Finding("transaction-unclear", unclear=True)
    within = gains(f"{BASE} + TSC", f"{BASE} + WAL + TSC")
    if alone := gains(BASE, f"{BASE} + WAL"):
        yield Finding("wal", alone=_made(alone), within=_made(within) if within else None)


def _made(gains: Gains) -> Finding:
    """Return what became how much faster, and of what that can't be told."""
    faster = tuple(
        Finding("made-faster", doing=doing, ratio=ratio) for doing, ratio in gains if is_told(ratio)
    )
    unclear = tuple(doing for doing, ratio in gains if not is_told(ratio))
    return Finding("made", faster=faster, both=bool(faster and unclear), unclear=unclear)


def _row_values(judged: Judged) -> Iterator[Finding]:
    """Warn of row values where they took much longer than a join that means the same."""
    found = []
    for driver in judged.cells.drivers:
        pair = judged.cells.largest_common(
            judged.cells.series("query", "ROW", driver), judged.cells.series("query", "VALUES", driver)
        )
        ratio = judged.ratio(*pair) if pair else None
        if ratio and ratio.low > FAR:
            found.append(Finding("took-as-long", ratio=ratio, driver=driver))
    if found:
        yield Finding("row-values", took=tuple(found))


def _way(cell: Cell) -> str:
    """Say what a cell does: "inserting by JSON"."""
    return f"{DOING[cell.series.phase]} by {cell.series.tricks}"


def _unclear(ratios: Iterable[Ratio | None]) -> list[Finding]:
    """Return of how many ways the passes tell nothing."""
    count = sum(not is_told(ratio) for ratio in ratios)
    return [Finding("ways-unclear", unclear=count)] if count else []


def _binding(group: Group, judged: Judged, costly: Sequence[Cost]) -> Iterator[Finding]:
    """Yield where Peewee costs most, in time for each row, and where next to nothing."""
    # Less done in a second is more time.
    ratios = {cost: judged.ratio(cost.cell, cost.bare) for cost in costly}
    same = [_way(cost.cell) for cost, ratio in ratios.items() if ratio and ratio.is_within(EQUAL)]
    longer = {
        cost: ratio
        for cost, ratio in ratios.items()
        if ratio and ratio.is_above and not ratio.is_within(EQUAL)
    }
    parts = [Finding("binding-most", ways=_dearest(group, longer))] if longer else []
    parts += [Finding("binding-little", share=EQUAL, ways=same)] if same else []
    parts += _unclear(ratios.values())
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
    ratios = {
        base: judged.ratio(base, most)
        for base, (*_, most) in contended(judged.cells, judged.driver)
        if most and most.outcome == DONE
    }
    known = {base: ratio for base, ratio in ratios.items() if ratio and is_told(ratio)}
    same = [_way(base) for base, ratio in known.items() if ratio.is_within(EQUAL)]
    changed = sorted(
        ((base, ratio) for base, ratio in known.items() if not ratio.is_within(EQUAL)),
        key=lambda each: each[1].estimate,
    )
    fewer = [each for each in changed if each[1].is_below]
    greater = [each for each in reversed(changed) if each[1].is_above]
    parts = [Finding("contention-fewer", ways=_first(fewer))] if fewer else []
    parts += [Finding("contention-more", ways=_first(greater))] if greater else []
    parts += [Finding("contention-same", ways=same)] if same else []
    parts += _unclear(ratios.values())
    if parts:
        yield Finding("contention", driver=judged.driver, most=more[-1], fewest=fewest, parts=tuple(parts))


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
            name = cell.series.tricks.partition(" ")[0]
            reasons.setdefault((cell.series.phase, name, cell.note), []).append(cell)
    for (phase, name, note), refused in reasons.items():
        yield Finding(
            "method-limit",
            doing=DOING[phase],
            rows=refused[0].rows,
            method=name,
            drivers=tuple(dict.fromkeys(cell.series.driver for cell in refused)),
            reason=note,
            instead=_instead(cells, refused[0], name),
        )


def _instead(cells: Cells, refused: Cell, name: str) -> Finding | None:
    """Return which method did the same, or more."""
    for tricks in WORKING.get((refused.series.phase, name), ()):
        beside = cells.of(replace(refused.series, tricks=tricks))
        found = [cell for cell in beside if cell.outcome == DONE and cell.rows >= refused.rows]
        if found:
            return Finding("method-instead", method=tricks, rows=found[-1].rows, rate=found[-1].rows_per_s)
    return None
