"""Table and findings of the experiment methods, as pure functions of a report.

A cell is a method at a scale (number of rows) by a driver: a case, and a row of the table. A difference is
only reported if it is significant over the passes, the trials of a case.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.advice import partial_proofs
from sqlstress.analysis.answers import inconclusive_findings, is_conclusive, leaders, more_trials
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, PairwiseTests
from sqlstress.experiments.classics import sentences
from sqlstress.experiments.classics.sentences import Gain, MethodLead, Phase
from sqlstress.experiments.classics.spec import METHOD_NAMES, PHASES, Method, tricks_of
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    NAME,
    VERIFIED,
    Block,
    Column,
    Legend,
    count_cell,
    seconds_cell,
    table_of,
    verified_legend,
)
from sqlstress.show.plots import Plot
from sqlstress.show.shown import Presenter
from sqlstress.statistics.compare import MIN_PASSES, NEAR, Ratio
from sqlstress.statistics.units import digits, finite, format_count

DONE, TIMEOUT, LIMIT, FAILED, WRONG = "done", "timeout", "limit", "failed", "wrong"
"""Outcomes of a cell: those of its trials; FAILED if not measured, WRONG if its data was wrong."""
_FAILURES = {TIMEOUT: "TIMEOUT", LIMIT: "LIMIT", WRONG: "FAILED"}
BASE = "1b1"
"""Method that writes or reads row by row, with which the other methods are compared."""
BARE = "sqlite3"
"""Driver without an object-relational mapper, with which the other drivers are compared."""
INSIDE = "SPC"
"""Method that makes the rows inside SQLite, which is only possible for some problems."""
DOING = {"insert": "inserting", "allocate": "allocating", "query": "querying"}
"""Verb of each phase."""
WORKING = {"insert": "BLK/n or JSON", "allocate": "BLK/n or JSON", "query": "VALUES or JSON"}
"""Methods that meet no limit of SQLite, by phase."""


# Cells: a cell is a method at a scale, by a driver.


@dataclass(frozen=True, slots=True, eq=False)
class MethodsCell:
    """Run of a cell, with the figures of its trial of median rate."""

    run: Run
    outcome: str
    """DONE, TIMEOUT, LIMIT, FAILED or WRONG; if the cell was skipped, the outcome of a smaller scale."""
    rows_per_s: float = 0.0
    """Rows per second; 0 unless the outcome is DONE."""
    seconds: float = 0.0
    """Duration; 0 unless the outcome is DONE."""
    note: str = ""
    """SQLite's error message about a limit; empty if there is none."""

    @property
    def method(self) -> Method:
        """Spec of the case: method, phase and scale."""
        spec: Method = self.run.case.spec
        return spec

    @property
    def tricks(self) -> str:
        """Name of the method with WAL and TSC (all in one transaction), such as "1b1 + WAL"."""
        return tricks_of(self.run.case)

    @property
    def driver(self) -> str:
        """Name of the driver."""
        return self.run.case.driver


class MethodsCells:
    """The cells of a group."""

    def __init__(self, group: Group) -> None:
        self.all: list[MethodsCell] = []
        """All cells, in the order of the report."""
        self._series: dict[tuple[str, str, str], list[MethodsCell]] = {}
        for run in group.runs:
            method: Method = run.case.spec
            if method.name in METHOD_NAMES and method.phase in PHASES:
                key = method.phase, tricks_of(run.case), run.case.driver
                series = self._series.setdefault(key, [])
                series.append(_cell(run, series))
                self.all.append(series[-1])
        self.drivers = tuple(dict.fromkeys(cell.driver for cell in self.all))
        """Names of the drivers, in the order of the report."""

    def series(self, phase: str, tricks: str, driver: str | None = None) -> list[MethodsCell]:
        """Return the cells of a method in a phase at all scales, by default by the first driver."""
        return self._series.get((phase, tricks, driver or self.drivers[0]), [])

    def by_work(self) -> list[MethodsCell]:
        """Return all cells, sorted by phase, driver and number of rows; else in the order of the report."""

        def work(cell: MethodsCell) -> tuple[int, int, int]:
            return PHASES.index(cell.method.phase), self.drivers.index(cell.driver), cell.method.rows

        return sorted(self.all, key=work)


def _cell(run: Run, smaller: Sequence[MethodsCell]) -> MethodsCell:
    """Return the cell of a run. `smaller` has the cells of the same method at smaller scales."""
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
    """Return the cell with the most rows per second; None if no cell has the outcome DONE."""
    done = (cell for cell in cells if cell.outcome == DONE)
    return max(done, key=lambda cell: cell.rows_per_s, default=None)


def rates(run: Run) -> dict[int, float]:
    """Return the rows per second by pass."""
    return run.by_pass(lambda trial: trial.rows_per_s)


# Findings: the fastest methods to write and to read, the gain of a transaction and of WAL, and limits.


@dataclass(frozen=True, slots=True)
class Judged:
    """Cells with the comparisons of those that were done in enough passes."""

    cells: MethodsCells
    known: frozenset[MethodsCell]
    """Cells that were done in enough passes for a comparison."""
    tested: PairwiseTests
    """Comparisons of the rates of the cells in `known`."""

    def ratio(self, base: MethodsCell | None, other: MethodsCell) -> Ratio | None:
        """Return the rate of `other` divided by that of `base`; None if either has too few passes."""
        if base is None or not {base, other} <= self.known:
            return None
        return self.tested.ratio(base.run, other.run)


def methods(group: Group) -> Iterator[Finding]:
    """Yield the findings of a group. They concern the first driver, except for limits."""
    cells = MethodsCells(group)
    known = [cell for cell in cells.all if cell.outcome == DONE and len(rates(cell.run)) >= MIN_PASSES]
    tested = group.pairwise_tests([cell.run for cell in known], rates) if known else None
    if tested:
        judged = Judged(cells, frozenset(known), tested)
        findings = [*_fastest(judged), *_gains(judged)]
        yield from findings
        yield from inconclusive_findings(tested, findings, group.case)
    elif any(cell.outcome == DONE for cell in cells.all):
        yield Finding(shared.cannot_tell, advice=more_trials(group.case))
    yield from _limits(cells)


def _fastest(judged: Judged) -> Iterator[Finding]:
    """Yield a finding on the fastest methods of each phase, with and without the method SPC."""
    driver = judged.cells.drivers[0]
    phases = []
    for phase in PHASES:
        of_phase = (cell for cell in judged.cells.all if (cell.method.phase, cell.driver) == (phase, driver))
        known = [cell for cell in of_phase if cell in judged.known]
        if not known:
            continue
        first = max(known, key=lambda cell: judged.tested.middle(cell.run))
        general = [cell for cell in known if cell.method.name != INSIDE]
        others = _lead(judged, general) if general and first not in general else None
        phases.append(Phase(DOING[phase], _lead(judged, known), others))
    if phases:
        yield Finding(sentences.methods_fastest, driver=driver, phases=tuple(phases))


def _lead(judged: Judged, known: Sequence[MethodsCell]) -> MethodLead:
    """Return the methods that may be the fastest of `known`, with their rate relative to the method 1b1."""
    lead = leaders(judged.tested, [cell.run for cell in known], families=2)
    near = [cell for cell in known if any(cell.run is run for run in lead.runs)]
    first = next(cell for cell in near if cell.run is lead.best)
    names = tuple(dict.fromkeys(cell.tricks for cell in near))
    base = best(judged.cells.series(first.method.phase, BASE))
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


def _gains(judged: Judged) -> Iterator[Finding]:
    """Yield findings on the gain of writing all rows in one transaction, and on the gain of WAL."""
    together = _gain(judged, BASE, f"{BASE} + TSC")
    if any(ratio and ratio.is_above and not ratio.is_within(NEAR) for ratio in together.values()):
        yield _gain_finding(sentences.transaction, together)
    for how, tricks in (("with a commit per row", ""), ("in one transaction", " + TSC")):
        if changed := _gain(judged, BASE + tricks, f"{BASE} + WAL{tricks}"):
            yield _gain_finding(sentences.wal, changed, how=how)


def _gain(judged: Judged, slow: str, fast: str) -> dict[str, Ratio | None]:
    """Return the rate of method `fast` relative to method `slow`, by the verb of the phase.

    The scale is the largest one that both methods have done. A ratio is None if there were too few passes.
    """
    ratios = {}
    for phase in ("insert", "allocate"):
        slow_cells, fast_cells = (
            {cell.method.scale: cell for cell in judged.cells.series(phase, tricks) if cell.outcome == DONE}
            for tricks in (slow, fast)
        )
        if common := slow_cells.keys() & fast_cells.keys():
            ratios[DOING[phase]] = judged.ratio(slow_cells[max(common)], fast_cells[max(common)])
    return ratios


def _gain_finding(sentence: Callable[..., str], ratios: Mapping[str, Ratio | None], **more: str) -> Finding:
    """Return a finding with the conclusive ratios, and the phases without a conclusive ratio."""
    gains = tuple(Gain(doing, ratio) for doing, ratio in ratios.items() if ratio and is_conclusive(ratio))
    unclear = tuple(doing for doing in ratios if doing not in {gain.doing for gain in gains})
    return Finding(sentence, gains=gains, unclear=unclear, **more)


def _limits(cells: MethodsCells) -> Iterator[Finding]:
    """Yield a finding for each limit of SQLite that was met, with methods that do not meet it."""
    reasons: dict[tuple[str, str, str], list[MethodsCell]] = {}
    for cell in cells.all:
        if cell.outcome == LIMIT and cell.note:
            reasons.setdefault((cell.method.phase, cell.method.name, cell.note), []).append(cell)
    for (phase, method, note), refused in reasons.items():
        yield Finding(
            sentences.method_limit,
            doing=DOING[phase],
            rows=refused[0].method.rows,
            method=method,
            drivers=tuple(dict.fromkeys(cell.driver for cell in refused)),
            reason=note,
            instead=WORKING[phase],
        )


# Table: a row for each cell.


def _rate(cell: MethodsCell) -> str:
    """Return the text of a cell's rows per second with their spread; else the reason why there are none."""
    if cell.outcome != DONE:
        return _FAILURES.get(cell.outcome, case_table.FAILED)
    return case_table.marked_cell(cell.run, count_cell(cell.rows_per_s), rates(cell.run))


def factor_cell(ratio: float) -> str:
    """Return a ratio as text of at most six characters: "1x", "1.2x", "90x", "17kx"."""
    if ratio < 0.095:
        return "<0.01x" if ratio < 0.01 else f"{ratio:.2f}x"
    if ratio < 9.95:
        return "1x" if ratio == 1 else f"{ratio:.1f}x"
    if ratio < 9999.5:
        return f"{ratio:.0f}x"
    return f"{ratio / 1000:.0f}kx" if ratio < 999_500 else f"{ratio:.0e}x"


def _relative(
    name: str, meaning: str, base_of: Callable[[MethodsCell], MethodsCell | None], leaves: int | None = None
) -> Column[MethodsCell]:
    """Return the column with a cell's rate relative to that of another cell.

    `base_of` returns the other cell, `name` and `meaning` describe it.
    """

    def cell(shown: MethodsCell) -> str | None:
        base = base_of(shown)
        known = base and base.rows_per_s and shown.rows_per_s
        return factor_cell(shown.rows_per_s / base.rows_per_s) if base and known else None

    return Column(
        f"{name} = 1", (name, "= 1"), cell=cell, meaning=f"{name} = 1: relative to {meaning}", leaves=leaves
    )


def _columns(group: Group, cells: MethodsCells) -> Iterator[Column[MethodsCell]]:
    def base(cell: MethodsCell) -> MethodsCell | None:
        return best(cells.series(cell.method.phase, BASE, cell.driver))

    def bare(cell: MethodsCell) -> MethodsCell | None:
        same = cells.series(cell.method.phase, cell.tricks, BARE)
        return next((other for other in same if other.method.scale == cell.method.scale), None)

    yield Column("phase", align="left", role=NAME, cell=lambda cell: cell.method.phase)
    yield Column(
        "method",
        align="left",
        role=NAME,
        cell=lambda cell: cell.tricks,
        meaning="WAL: journal mode WAL, otherwise DELETE; TSC: all in one transaction",
    )
    yield Column("rows", role=NAME, cell=lambda cell: format_count(cell.method.rows))
    if len(cells.drivers) > 1:
        yield Column("driver", align="left", role=NAME, cell=lambda cell: cell.driver)
    yield Column("rows/s", ("rows", "per s"), cell=_rate)
    yield _relative(BASE, f"the best figure of {BASE} in the same phase", base)
    if {BARE} < {*cells.drivers}:
        yield _relative(BARE, f"{BARE}, with the same method and as many rows", bare, leaves=20)
    yield Column("time s", cell=lambda cell: seconds_cell(cell.seconds) if cell.seconds else None, leaves=10)
    yield VERIFIED.explained(_legend(group))


def _legend(group: Group) -> Iterator[str]:
    """Yield the clauses of the legend that depend on the runs."""
    samples = next((run.case.spec.samples for run in group.runs if run.case.spec.phase == "query"), 0)
    if samples:
        rows = format_count(samples * (samples - 1) // 2)
        yield f"queries read a table of {rows} results: all pairs of {format_count(samples)} samples"
    yield from case_table.spread_legend(group, "figure")
    yield "TIMEOUT: over --timeout, and not tried at larger scales; LIMIT: SQLite rejects such a statement"
    yield from verified_legend(group, "the tables and the answers are right")


class MethodsShown(Presenter):
    """Presenter of methods: a table with a row for each cell."""

    topics = (methods, partial_proofs)

    def activity(self, group: Group) -> str:
        return "Rows are written and read one by one (1b1), in bulk (BLK), from JSON and inside SQLite (SPC)"

    def blocks(self, group: Group) -> Iterator[Block]:
        cells = MethodsCells(group)
        if cells.all:
            table = table_of(cells.by_work(), (*_columns(group, cells),))
            yield table
            yield Legend(table)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Return no plots, because the standard plots show the number of processes, which is always 1."""
        return iter(())

    def tracked_rates(self, run: Run) -> Iterator[float | None]:
        return (trial.rows_per_s for trial in run.ended)

    def tracked_unit(self, case: Case) -> str:
        return "rows"

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Return the phase, and a key: of the cases with a key, that with the largest scale has a bar."""
        return case.spec.phase, (tricks_of(case), case.driver, case.concurrency)

    def bar_name(self, case: Case) -> str:
        return f"{tricks_of(case)}, {case.driver}, {digits(case.spec.scale)}"
