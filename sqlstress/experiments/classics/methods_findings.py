"""Findings of methods: the fastest way to write and to read, and the gain of a transaction and of WAL.

A difference is reported if the passes tell it from noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.answers import inconclusive_findings, is_conclusive, leaders, more_trials
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, PairwiseTests
from sqlstress.experiments.classics import sentences
from sqlstress.experiments.classics.sentences import Gain, MethodLead, Phase
from sqlstress.experiments.classics.spec import METHOD_NAMES, PHASES, tricks_of
from sqlstress.report import Run
from sqlstress.statistics.compare import MIN_PASSES, NEAR, Ratio
from sqlstress.statistics.units import finite

DONE, TIMEOUT, LIMIT, FAILED, WRONG = "done", "timeout", "limit", "failed", "wrong"
"""Outcomes of a cell: those of a trial; FAILED if it could not be measured, WRONG if its data was wrong."""
BASE = "1b1"
"""The method without tricks, to which the others are compared."""
BARE = "sqlite3"
"""The driver without an object-relational mapper, to which the others are compared."""


@dataclass(frozen=True, slots=True, eq=False)
class MethodsCell:
    """One method at one scale, through one driver."""

    run: Run
    outcome: str
    """DONE, TIMEOUT, LIMIT, FAILED or WRONG; the outcome of a smaller scale if it was skipped."""
    rows_per_s: float = 0.0
    """Above 0 if it was done, else 0."""
    seconds: float = 0.0
    note: str = ""
    """SQLite's text about a limit."""

    @property
    def phase(self) -> str:
        """insert, allocate or query."""
        return str(self.run.case.spec.phase)

    @property
    def tricks(self) -> str:
        """Name of the method with WAL and TSC, as in "1b1 + WAL"."""
        return tricks_of(self.run.case)

    @property
    def driver(self) -> str:
        """Name of the driver."""
        return self.run.case.driver

    @property
    def scale(self) -> int:
        """Scale of the case."""
        return int(self.run.case.spec.scale)

    @property
    def rows(self) -> int:
        """Number of rows to write or read."""
        return int(self.run.case.spec.rows)


class MethodsCells:
    """The cells of a group."""

    def __init__(self, group: Group) -> None:
        self.all: list[MethodsCell] = []
        """In the order of the report."""
        self._series: dict[tuple[str, str, str], list[MethodsCell]] = {}
        for run in group.runs:
            method = run.case.spec
            if method.name in METHOD_NAMES and method.phase in PHASES:
                key = method.phase, tricks_of(run.case), run.case.driver
                series = self._series.setdefault(key, [])
                series.append(_cell(run, series))
                self.all.append(series[-1])
        self.drivers = tuple(dict.fromkeys(cell.driver for cell in self.all))
        """In the order of the report."""

    def series(self, phase: str, tricks: str, driver: str | None = None) -> list[MethodsCell]:
        """Return the cells of a method at all scales; `driver` is the first one by default."""
        return self._series.get((phase, tricks, driver or self.drivers[0]), [])

    def by_work(self) -> list[MethodsCell]:
        """Return the cells by phase, driver and rows, otherwise in the order of the report."""
        return sorted(
            self.all,
            key=lambda cell: (PHASES.index(cell.phase), self.drivers.index(cell.driver), cell.rows),
        )

    def by_phase(self) -> Iterator[tuple[str, list[MethodsCell]]]:
        """Yield each phase with its cells through the first driver."""
        for phase in PHASES:
            if cells := [cell for cell in self.all if (cell.phase, cell.driver) == (phase, self.drivers[0])]:
                yield phase, cells


def _cell(run: Run, smaller: Sequence[MethodsCell]) -> MethodsCell:
    """Return the cell of a run; `smaller` are the cells of its method at smaller scales."""
    if run.skipped is not None:
        before = (cell.outcome for cell in reversed(smaller) if cell.outcome in (TIMEOUT, LIMIT))
        return MethodsCell(run, next(before, FAILED))
    if run.verdict.status == "failed":
        return MethodsCell(run, WRONG)
    unfinished = next((trial for trial in run.valid if trial.outcome != DONE), None)
    if unfinished:
        known = unfinished.outcome if unfinished.outcome in (TIMEOUT, LIMIT) else FAILED
        return MethodsCell(run, known, note=unfinished.note)
    trial = run.valid_median_trial()
    rate, seconds = (finite(trial.rows_per_s), finite(trial.seconds)) if trial else (None, None)
    if not rate or rate < 0 or seconds is None:
        return MethodsCell(run, FAILED)
    return MethodsCell(run, DONE, rate, seconds)


def best(cells: Sequence[MethodsCell]) -> MethodsCell | None:
    """Return the cell with most rows per second; None if none was done."""
    done = (cell for cell in cells if cell.outcome == DONE)
    return max(done, key=lambda cell: cell.rows_per_s, default=None)


def largest_common(
    one: Sequence[MethodsCell], other: Sequence[MethodsCell]
) -> tuple[MethodsCell, MethodsCell] | None:
    """Return the cells of two methods at the largest scale that both have done."""
    by_scale = {cell.scale: cell for cell in one if cell.outcome == DONE}
    both = [(by_scale[cell.scale], cell) for cell in other if cell.outcome == DONE and cell.scale in by_scale]
    return max(both, key=lambda pair: pair[0].scale, default=None)


def rates(run: Run) -> dict[int, float]:
    """Return the rows per second of each pass."""
    return run.by_pass(lambda trial: trial.rows_per_s)


INSIDE = "SPC"
"""The method that only some problems allow."""
DOING = {"insert": "inserting", "allocate": "allocating", "query": "querying"}
"""Verb of each phase."""
WORKING = {"insert": "BLK/n or JSON", "allocate": "BLK/n or JSON", "query": "VALUES or JSON"}
"""Methods without a limit, by phase."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The cells that were done in enough passes, tested together."""

    cells: MethodsCells
    known: frozenset[MethodsCell]
    tested: PairwiseTests

    def ratio(self, base: MethodsCell | None, other: MethodsCell) -> Ratio | None:
        """Return the other cell's rate divided by the base's; None if there were too few passes."""
        if base is None or not {base, other} <= self.known:
            return None
        return self.tested.ratio(base.run, other.run)


def methods(group: Group) -> Iterator[Finding]:
    """Yield the findings of a group, about the first driver."""
    cells = MethodsCells(group)
    if not cells.all:
        return
    known = [cell for cell in cells.all if cell.outcome == DONE and len(rates(cell.run)) >= MIN_PASSES]
    tested = group.pairwise_tests([cell.run for cell in known], rates) if known else None
    if tested is None:
        if any(cell.outcome == DONE for cell in cells.all):
            yield Finding(shared.cannot_tell, advice=more_trials(group.case))
    else:
        judged = Judged(cells, frozenset(known), tested)
        findings = [*_fastest(judged), *_transactions(judged)]
        yield from findings
        yield from inconclusive_findings(tested, findings, group.case)
    yield from _limits(cells)


def _fastest(judged: Judged) -> Iterator[Finding]:
    """Yield the fastest methods of each phase, with SPC and without it."""
    phases = []
    for phase, of_phase in judged.cells.by_phase():
        known = [cell for cell in of_phase if cell in judged.known]
        if not known:
            continue
        first = max(known, key=lambda cell: judged.tested.middle(cell.run))
        general = [cell for cell in known if cell.run.case.spec.name != INSIDE]
        others = _lead(judged, general) if general and first not in general else None
        phases.append(Phase(DOING[phase], _lead(judged, known), others))
    if phases:
        yield Finding(sentences.methods_fastest, driver=judged.cells.drivers[0], phases=tuple(phases))


def _lead(judged: Judged, known: Sequence[MethodsCell]) -> MethodLead:
    """Return the methods with a cell that may be the fastest, compared with 1b1."""
    lead = leaders(judged.tested, [cell.run for cell in known], families=2)
    near = lead.among(known)
    first = next(cell for cell in near if cell.run is lead.best)
    names = tuple(dict.fromkeys(cell.tricks for cell in near))
    base = best(judged.cells.series(first.phase, BASE))
    compared = base is not None and base.tricks != first.tricks
    ratio = judged.ratio(base, first) if compared else None
    told = is_conclusive(ratio)
    unranked = len(names) > 1 and lead.unclear
    return MethodLead(
        names,
        first.rows_per_s,
        ratio if told else None,
        equal=len(names) > 1 and lead.equal,
        unranked=unranked,
        unclear=unranked or (compared and not told),
    )


def _transactions(judged: Judged) -> Iterator[Finding]:
    """Yield the gain of one transaction for writes, and the gain of WAL."""

    def gains(slow: str, fast: str) -> dict[str, Ratio | None]:
        pairs = {
            DOING[phase]: largest_common(*(judged.cells.series(phase, tricks) for tricks in (slow, fast)))
            for phase in ("insert", "allocate")
        }
        return {doing: judged.ratio(*pair) for doing, pair in pairs.items() if pair}

    together = gains(BASE, f"{BASE} + TSC")
    if any(ratio and ratio.is_above and not ratio.is_within(NEAR) for ratio in together.values()):
        yield _gain(sentences.transaction, together)
    for how, tricks in (("with a commit per row", ""), ("in one transaction", " + TSC")):
        if changed := gains(BASE + tricks, f"{BASE} + WAL{tricks}"):
            yield _gain(sentences.wal, changed, how=how)


def _gain(sentence: Callable[..., str], ratios: Mapping[str, Ratio | None], **more: str) -> Finding:
    """Return the conclusive ratios, and the phases without one."""
    gains = tuple(Gain(doing, ratio) for doing, ratio in ratios.items() if ratio and is_conclusive(ratio))
    known = {gain.doing for gain in gains}
    return Finding(
        sentence, gains=gains, unclear=tuple(doing for doing in ratios if doing not in known), **more
    )


def _limits(cells: MethodsCells) -> Iterator[Finding]:
    """Yield each limit of SQLite once, with methods that work without it."""
    reasons: dict[tuple[str, str, str], list[MethodsCell]] = {}
    for cell in cells.all:
        if cell.outcome == LIMIT and cell.note:
            reasons.setdefault((cell.phase, cell.run.case.spec.name, cell.note), []).append(cell)
    for (phase, method, note), refused in reasons.items():
        yield Finding(
            sentences.method_limit,
            doing=DOING[phase],
            rows=refused[0].rows,
            method=method,
            drivers=tuple(dict.fromkeys(cell.driver for cell in refused)),
            reason=note,
            instead=WORKING[phase],
        )
