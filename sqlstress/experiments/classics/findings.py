"""Findings of methods, keys and cycles, and figures of their tables, as pure functions of a report.

A run is all trials of a case. A group is the runs that one table of the report shows. A pass is one trial of
each case in turn. A difference of times is reported only if it is significant over the passes. Sizes of files
have no noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import median

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.answers import inconclusive_findings, is_conclusive, leaders, more_trials
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, PairwiseTests
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS, sentences
from sqlstress.experiments.classics.sentences import Checkpoint, Gain, MethodLead, Phase, TypeCost
from sqlstress.experiments.classics.spec import (
    ID_TYPES,
    METHOD_NAMES,
    PHASES,
    SCHEMAS,
    Cycling,
    Method,
    Picks,
    setting_of,
    tricks_of,
)
from sqlstress.report import Run, Space, Trial
from sqlstress.show import case_table
from sqlstress.statistics.compare import MIN_PASSES, NEAR, Ratio
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS
from sqlstress.statistics.units import NS_PER_S, finite


def _comparison_findings(
    group: Group,
    runs: Sequence[Run],
    rates: Callable[[Run], Mapping[int, float]],
    findings: Callable[[PairwiseTests], Iterable[Finding]],
) -> Iterator[Finding]:
    """Yield the findings that `findings` makes of the compared runs, or one that passes are too few."""
    tested = group.pairwise_tests(runs, rates) if runs else None
    if tested is None:
        yield Finding(shared.cannot_tell, advice=more_trials(group.case))
        return
    found = list(findings(tested))
    yield from found
    yield from inconclusive_findings(tested, found, group.case)


# Findings of `sqlstress methods`. A cell is a row of its table: a method at a scale (number of rows) by a
# driver. The tricks of a cell are its method with WAL and TSC (one transaction), if used: "1b1 + WAL".


DONE, TIMEOUT, LIMIT, FAILED, WRONG = "done", "timeout", "limit", "failed", "wrong"
"""Outcomes of a cell: completed, over the time limit, over a limit of SQLite, not measured, wrong data."""
BASE_METHOD = "1b1"
"""Method that writes or reads row by row, with which the other methods are compared."""
BARE_DRIVER = "sqlite3"
"""Driver without an object-relational mapper, with which the other drivers are compared."""
INSIDE = "SPC"
"""Method that makes the rows inside SQLite, which is only possible for some problems."""
DOING = {"insert": "inserting", "allocate": "allocating", "query": "querying"}
"""Verb of each phase."""
WORKING = {"insert": "BLK/n or JSON", "allocate": "BLK/n or JSON", "query": "VALUES or JSON"}
"""Methods that meet no limit of SQLite at any scale, by phase."""


@dataclass(frozen=True, slots=True, eq=False)
class MethodsCell:
    """A measured cell: its outcome, and the figures of the trial with the median rate."""

    run: Run
    outcome: str
    """DONE, TIMEOUT, LIMIT, FAILED or WRONG; a skipped cell takes that of a smaller scale."""
    rows_per_s: float = 0.0
    """Rows per second; 0 unless the outcome is DONE."""
    seconds: float = 0.0
    """Duration, in seconds; 0 unless the outcome is DONE."""
    note: str = ""
    """Message about the time limit, or about the limit of SQLite; empty for other outcomes."""

    @property
    def method(self) -> Method:
        spec: Method = self.run.case.spec
        return spec

    @property
    def tricks(self) -> str:
        """Name of the method, with WAL and TSC (one transaction) if used, such as "1b1 + WAL"."""
        return tricks_of(self.run.case)

    @property
    def driver(self) -> str:
        return self.run.case.driver


class MethodsCells:
    """Cells of a group."""

    def __init__(self, group: Group) -> None:
        self.all: list[MethodsCell] = []
        """All cells, in the order of the report."""
        self._series: dict[tuple[str, str, str], list[MethodsCell]] = {}
        for run in group.runs:
            method: Method = run.case.spec
            if method.name in METHOD_NAMES and method.phase in PHASES:
                series = self._series.setdefault((method.phase, tricks_of(run.case), run.case.driver), [])
                series.append(_cell(run, series))
                self.all.append(series[-1])
        self.drivers = tuple(dict.fromkeys(cell.driver for cell in self.all))
        """Names of the drivers, in the order of the report."""

    def series(self, phase: str, tricks: str, driver: str | None = None) -> list[MethodsCell]:
        """Return the cells of a phase with these tricks, at all scales. The default is the first driver."""
        return self._series.get((phase, tricks, driver or self.drivers[0]), [])

    def by_work(self) -> list[MethodsCell]:
        """Return all cells, sorted by phase, driver and number of rows."""

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


def row_rates(run: Run) -> dict[int, float]:
    """Return a run's rows per second, by number of the pass."""
    return run.by_pass(lambda trial: trial.rows_per_s)


@dataclass(frozen=True, slots=True)
class Judged:
    """All cells, and the tests of each pair of cells that completed enough passes."""

    cells: MethodsCells
    known: Sequence[MethodsCell]
    """Cells that completed enough passes for a comparison."""
    tested: PairwiseTests
    """Comparisons of the rates of the cells in `known`."""

    def ratio(self, base: MethodsCell, other: MethodsCell) -> Ratio | None:
        """Return the rate of `other` divided by the rate of `base`; None if one has too few passes."""
        known = base in self.known and other in self.known
        return self.tested.ratio(base.run, other.run) if known else None


def methods(group: Group) -> Iterator[Finding]:
    """Yield the findings of a group: for the first driver, and limits of SQLite for all drivers."""
    cells = MethodsCells(group)
    done = [cell for cell in cells.all if cell.outcome == DONE]
    known = [cell for cell in done if len(row_rates(cell.run)) >= MIN_PASSES]

    def from_tests(tested: PairwiseTests) -> Iterator[Finding]:
        judged = Judged(cells, known, tested)
        yield from _fastest_methods(judged)
        yield from _gains(judged)

    if done:
        yield from _comparison_findings(group, [cell.run for cell in known], row_rates, from_tests)
    yield from _limits(cells)


def _fastest_methods(judged: Judged) -> Iterator[Finding]:
    """Yield a finding on the fastest methods of each phase, with and without the method SPC."""
    driver = judged.cells.drivers[0]
    phases = []
    for phase in PHASES:
        known = [cell for cell in judged.known if (cell.method.phase, cell.driver) == (phase, driver)]
        if not known:
            continue
        first = max(known, key=lambda cell: judged.tested.middle(cell.run))
        general = [cell for cell in known if cell.method.name != INSIDE]
        others = _lead(judged, general) if general and first not in general else None
        phases.append(Phase(DOING[phase], _lead(judged, known), others))
    if phases:
        yield Finding(sentences.methods_fastest, driver=driver, phases=tuple(phases))


def _lead(judged: Judged, known: Sequence[MethodsCell]) -> MethodLead:
    """Return the methods of those `known` cells that are not significantly slower than the fastest."""
    lead = leaders(judged.tested, [cell.run for cell in known], divide_error_by=2)
    near = [cell for cell in known if any(cell.run is run for run in lead.runs)]
    first = next(cell for cell in near if cell.run is lead.best)
    names = tuple(dict.fromkeys(cell.tricks for cell in near))
    base = best(judged.cells.series(first.method.phase, BASE_METHOD))
    compared = base is not None and base.tricks != first.tricks
    ratio = judged.ratio(base, first) if base and compared else None
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
    together = _gain(judged, BASE_METHOD, f"{BASE_METHOD} + TSC")
    if any(ratio and ratio.is_above and not ratio.is_within(NEAR) for ratio in together.values()):
        yield _gain_finding(sentences.transaction, together)
    for how, tricks in (("with a commit per row", ""), ("in one transaction", " + TSC")):
        if changed := _gain(judged, BASE_METHOD + tricks, f"{BASE_METHOD} + WAL{tricks}"):
            yield _gain_finding(sentences.wal, changed, how=how)


def _gain(judged: Judged, slow: str, fast: str) -> dict[str, Ratio | None]:
    """Return the rate of the tricks `fast` relative to `slow`, by the verb of the phase.

    The rates are those at the largest common scale. A ratio is None if there were too few passes.
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
    """Yield a finding for each limit of SQLite that was met, with methods that avoid the limit."""
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


# Keys.


TABLE = "picks"
SPACE: Mapping[str, Callable[[Space], float | None]] = {
    "file_bytes": lambda space: space.file_bytes,
    "bytes_per_row": lambda space: space.bytes_per_row(TABLE),
    "table_share": lambda space: space.table_alone(TABLE).share,
    "indices_share": lambda space: space.indices_of(TABLE).share,
    "table_fan_out": lambda space: space.table_alone(TABLE).fan_out,
    "indices_fan_out": lambda space: space.indices_of(TABLE).fan_out,
}
"""Functions that compute a figure of file space, by the figure's column in the CSV.

Sizes are in bytes, shares of the file from 0 to 1, fan-outs in children per internal page.
"""
BASE_TYPE = "uuid4"
"""Type of id with which the other types are compared."""
ORDER = ("uuid7", "ulid", BASE_TYPE, "int")
"""Types of id in the order of preference, if time and space are equal.

uuid7, a standard, comes first. Other types with the creation time follow. "int" needs one database that
assigns all ids.
"""


def space_figure(space: Space | None, name: str) -> float | None:
    """Return a figure of a file's space, by its name in SPACE; None if it was not measured or is wrong."""
    if space is None:
        return None
    try:
        return finite(SPACE[name](space))
    except (KeyError, ZeroDivisionError):
        return None


@dataclass(frozen=True, slots=True, eq=False)
class KeyRow(case_table.Row):
    """Table row of a case of the experiment keys."""

    base: KeyRow | None = None
    """Row of the case that differs only by ids of the type uuid4; None if there is no such case."""

    @property
    def picks(self) -> Picks:
        spec: Picks = self.run.case.spec
        return spec

    def figure(self, name: str) -> float | None:
        """Return the figure "time" (in seconds) or a figure of SPACE; None if unknown or if data is wrong."""
        if self.trial is None or self.run.verdict.status == "failed":
            return None
        seconds = finite(self.trial.seconds)
        if not seconds or seconds < 0:
            return None
        return seconds if name == "time" else space_figure(self.trial.space, name)

    def ratio(self, name: str) -> float | None:
        """Return a figure divided by the figure of uuid4; None if one of them is unknown."""
        over, under = self.figure(name), self.base.figure(name) if self.base else None
        return over / under if over is not None and under else None


def key_rows(group: Group) -> list[KeyRow]:
    """Return the rows of a group, in the order of its runs."""

    def place(run: Run) -> tuple[Picks, int]:
        return replace(run.case.spec, id_type=BASE_TYPE), run.case.concurrency

    bases = {
        place(run): KeyRow(run, run.valid_median_trial())
        for run in group.runs
        if run.case.spec.id_type == BASE_TYPE
    }
    return [KeyRow(run, run.valid_median_trial(), bases.get(place(run))) for run in group.runs]


def keys(group: Group) -> Iterator[Finding]:
    """Yield advice on the type of id to use with each schema, from the cases with the most processes."""
    rows = [row for row in key_rows(group) if row.figure("time")]
    most = max((row.run.case.concurrency for row in rows), default=0)
    compared = [row for row in rows if row.run.case.concurrency == most]

    def advice(tested: PairwiseTests) -> Iterator[Finding]:
        for schema in SCHEMAS:
            by_type = {row.picks.id_type: row for row in compared if row.picks.schema == schema}
            if BASE_TYPE in by_type and len(by_type.keys() & {*ID_TYPES}) > 1:
                yield _advice(schema, by_type, tested)

    if len(compared) > 1:
        yield from _comparison_findings(group, [row.run for row in compared], Run.rates, advice)


def _advice(schema: str, by_type: Mapping[str, KeyRow], tested: PairwiseTests) -> Finding:
    """Return a finding with the type of id to use with a schema, from its rows by type of id."""
    base, integers = by_type[BASE_TYPE], by_type.get("int")
    candidates = [by_type[id_type] for id_type in ORDER if id_type in by_type and id_type != "int"]
    # Drop each type that is significantly slower than another type. Of the rest, choose the first in ORDER
    # whose file is about as small as the smallest file.
    quick = [row for row in candidates if not any(_is_quicker(rival, row, tested) for rival in candidates)]
    files = {row.picks.id_type: row.figure("file_bytes") or 0.0 for row in quick}
    least = min(filter(None, files.values()), default=0.0)
    chosen = next((row for row in quick if files[row.picks.id_type] * (1 - NEAR) <= least), quick[0])
    takes_int = integers is not None and not tested.is_less(integers.run, chosen.run)
    stays = chosen is base
    return Finding(
        sentences.id_type,
        schema=schema,
        chosen=None if stays else chosen.picks.id_type,
        cost=None if stays else _cost(chosen, base, tested),
        int_cost=_cost(integers, base, tested) if integers and takes_int else None,
        dated=not stays and not tested.is_less(base.run, chosen.run),
        unclear=tuple(
            row.picks.id_type
            for row in candidates
            if row not in (chosen, base) and not tested.adds_little(chosen.run, row.run)
        ),
    )


def _is_quicker(row: KeyRow, other: KeyRow, tested: PairwiseTests) -> bool:
    """Return whether `row` is surely quicker than `other`: by more than NEAR, in the whole interval."""
    rates = None if row is other else tested.ratio(other.run, row.run)
    return rates is not None and rates.low > 1 / (1 - NEAR)


def _cost(row: KeyRow, base: KeyRow, tested: PairwiseTests) -> TypeCost:
    """Return the time and the space of a row's case, compared with the row `base` of uuid4."""
    time, file = tested.ratio(row.run, base.run), row.ratio("file_bytes")
    if time is None or not is_conclusive(time):
        return TypeCost(unclear=True, file=file)
    equal = time.is_within(NEAR)
    return TypeCost(None if equal else time, equal=equal, file=file)


# Cycles.


FEW = 3
"""Maximum number of checkpoints, after the first one, that a finding names."""


@dataclass(frozen=True, slots=True)
class CycleTimes:
    """Times of a trial of cycles, in ns, and the cycles with a checkpoint."""

    cycles: tuple[int, ...]
    """Time of the inserts and deletes of each cycle, in ns."""
    bounds: tuple[int, ...]
    """Time of BEGIN and COMMIT, per cycle, in ns; empty if each statement is its own transaction."""
    checkpoints: tuple[int, ...]
    """Numbers, from 1, of the cycles in which a checkpoint was seen."""
    closing: int | None
    """Time of the checkpoint after the last cycle, in ns; None without such a checkpoint."""

    @property
    def total(self) -> int:
        """Time of all cycles without the closing checkpoint, in ns."""
        return sum(self.cycles) + sum(self.bounds)

    @property
    def slowest(self) -> int | None:
        """Number, from 1, of the slowest cycle except the first; None if there is only one cycle."""
        numbers = range(2, len(self.cycles) + 1)
        return max(numbers, key=lambda number: self.cycles[number - 1], default=None)

    @property
    def slowest_ns(self) -> int | None:
        """Time of the slowest cycle except the first, in ns; None if there is only one cycle."""
        return self.cycles[self.slowest - 1] if self.slowest else None


def times_of(trial: Trial) -> CycleTimes | None:
    """Return the times of a trial; None if no cycle was done."""
    known = {series.name: series.values for series in trial.series}
    cycles = known.get(STATEMENTS, ())
    if not cycles:
        return None
    wal = [known.get(figure, ()) for figure in (WAL_FRAMES, CHECKPOINTED_FRAMES, WAL_RESTARTS)]
    closing = trial.latency.get("checkpoint")
    return CycleTimes(
        cycles,
        known.get(BEGIN_AND_COMMIT, ()),
        tuple(checkpoints_in(*wal)),
        closing.max_ns if closing and closing.count else None,
    )


def checkpoints_in(
    frames: Sequence[int], checkpointed: Sequence[int], restarts: Sequence[int]
) -> Iterator[int]:
    """Yield the numbers, from 1, of the cycles that had a checkpoint, from the WAL's state after each cycle.

    A checkpoint increases the number of checkpointed frames. A restart of the WAL needs a checkpoint of all
    frames. So a cycle with a restart had a checkpoint, unless all frames were checkpointed before the cycle
    and no frame of the restarted WAL is.
    """
    before = (0, 0, 0)
    for cycle, now in enumerate(zip(frames, checkpointed, restarts, strict=False), 1):
        anew, all_done = now[2] > before[2], before[1] >= before[0]
        if (anew and (now[1] > 0 or not all_done)) or (not anew and now[1] > before[1]):
            yield cycle
        before = now


def total_ns(trial: Trial) -> float:
    """Return the time of a trial in ns, without the closing checkpoint if the time of the cycles is known."""
    times = times_of(trial)
    return times.total if times else trial.seconds * NS_PER_S


def cycle_rates(run: Run) -> dict[int, float]:
    """Return a run's cycles per second by number of the pass, for trials that completed all cycles."""

    def rate(trial: Trial) -> float:
        ns = total_ns(trial) if trial.outcome == "done" else 0.0
        return NS_PER_S * run.case.spec.cycles / ns if ns > 0 else 0.0

    return run.by_pass(rate)


def cycles(group: Group) -> Iterator[Finding]:
    """Yield the findings on all settings of a group: time-outs, the fastest settings, and checkpoints."""
    measured = [(run, trial, times_of(trial)) for run, trial in group.measured()]
    for run, trial, _ in measured:
        if trial.outcome != DONE:
            after = run.case.spec.timeout_s
            limit = after * NS_PER_S if after else None
            yield Finding(sentences.timeout, where=setting_of(run.case), limit_ns=limit, reason=trial.note)
    done = [(run, times) for run, trial, times in measured if times and trial.outcome == DONE]
    runs = [run for run, _ in done]
    totals = {id(run): times.total for run, times in done}  # By id, because a run is not hashable.

    def fastest(tested: PairwiseTests) -> Iterator[Finding]:
        lead = leaders(tested, runs)
        near = sorted((totals[id(run)], setting_of(run.case)) for run in lead.runs)
        settings = tuple(name for _, name in near)
        yield Finding(
            sentences.fastest, settings=settings, total_ns=near[0][0], equal=lead.equal, unclear=lead.unclear
        )

    if len(runs) > 1:
        yield from _comparison_findings(group, runs, cycle_rates, fastest)
    for run, trial, times in measured:
        if times:
            yield from _checkpoints(run, trial, times)


def _checkpoints(run: Run, trial: Trial, times: CycleTimes) -> Iterator[Finding]:
    """Yield a finding: the cycle in which a checkpoint was due, cycles with a checkpoint, slowest cycle."""
    cycling: Cycling = run.case.spec
    frames = _checkpoint_frames(trial)
    if run.case.settings.journal_mode != "wal" or not frames or cycling.transaction == "run":
        return
    commits = 2 * cycling.rows + 1
    due = ceil(frames / commits)
    if not times.slowest or (not times.checkpoints and due > cycling.cycles):
        return
    seen, *later = times.checkpoints or (None,)
    in_range = seen is not None and seen <= len(times.cycles)
    yield Finding(
        sentences.checkpoint,
        where=setting_of(run.case),
        commits=commits,
        frames=frames,
        due=due,
        seen=None if seen is None else Checkpoint(seen, times.cycles[seen - 1] if in_range else None),
        later=tuple(later[:FEW]),
        spike=times.slowest,
        spike_ns=times.cycles[times.slowest - 1],
        median_ns=median(times.cycles),
        is_it=times.slowest in times.checkpoints,
    )


def _checkpoint_frames(trial: Trial) -> int | None:
    """Return the number of WAL frames at which a commit runs a checkpoint; None if never or unknown."""
    answer = trial.effective.get("wal_autocheckpoint", "")
    return int(answer) or None if len(answer) < 12 and answer.isdecimal() else None
