"""The table, the plot and the findings of cycles, as pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from operator import itemgetter
from statistics import median

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.advice import partial_proofs
from sqlstress.analysis.answers import inconclusive_findings, leaders, more_trials
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS, sentences
from sqlstress.experiments.classics.sentences import Checkpoint
from sqlstress.experiments.classics.spec import Cycling, setting_of
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.show import case_table
from sqlstress.show.blocks import (
    VERIFIED,
    Block,
    Column,
    Legend,
    ms_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.show.plots import Plain, Plot, View, axis, colour, line, name, small_multiples
from sqlstress.show.shown import Presenter
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S, format_count, format_duration

LONGEST_NAME = 24
"""Characters of a setting's name."""
FEW = 3
"""Maximum number of later checkpoints that are named."""


# The times of a trial, from its series.


@dataclass(frozen=True, slots=True)
class CycleTimes:
    """The times of a trial, in ns, and the cycles with a checkpoint."""

    statements: tuple[int, ...]
    """Inserts and deletes of each cycle."""
    bounds: tuple[int, ...]
    """BEGIN and COMMIT, in the cycle in which they fell; empty if each statement includes its own."""
    cycles: tuple[int, ...]
    """Time of each cycle, with BEGIN and COMMIT if each cycle has its own."""
    checkpoints: tuple[int, ...]
    """Cycles, counted from 1, in which a checkpoint was seen."""
    closing: int | None
    """The closing checkpoint; None if there is none."""

    @property
    def total(self) -> int:
        """Time of everything except the closing checkpoint."""
        return sum(self.statements) + sum(self.bounds)

    @property
    def slowest(self) -> tuple[int, int] | None:
        """Time and number of the slowest cycle except the first; None if there is no other."""
        later = ((ns, number) for number, ns in enumerate(self.cycles[1:], 2))
        return max(later, key=itemgetter(0), default=None)


def times_of(case: Case, trial: Trial) -> CycleTimes | None:
    """Return the times of a trial; None if no cycle was done, or if an old report has several processes."""
    known = {series.name: series.values for series in trial.series if series.worker == 1}
    statements = known.get(STATEMENTS, ())
    if case.concurrency > 1 or not statements:
        return None
    bounds, cycles = known.get(BEGIN_AND_COMMIT, ()), statements
    if case.spec.transaction == "cycle" and len(bounds) == len(statements):
        cycles = tuple(map(sum, zip(statements, bounds, strict=True)))
    wal = [known.get(figure, ()) for figure in (WAL_FRAMES, CHECKPOINTED_FRAMES, WAL_RESTARTS)]
    closing = trial.latency.get("checkpoint")
    return CycleTimes(
        statements,
        bounds,
        cycles,
        tuple(checkpoints_in(*wal)),
        closing.max_ns if closing and closing.count else None,
    )


def checkpoints_in(
    frames: Sequence[int], checkpointed: Sequence[int], restarts: Sequence[int]
) -> Iterator[int]:
    """Yield the cycles (from 1) with a checkpoint, from the state of the WAL at the end of each cycle.

    A checkpoint increases the number of checkpointed frames. Or the WAL was restarted, which needs a
    checkpoint of all its frames: in this cycle, unless all frames were checkpointed before it.
    """
    before = (0, 0, 0)
    for cycle, now in enumerate(zip(frames, checkpointed, restarts, strict=False), 1):
        anew, all_done = now[2] > before[2], before[1] >= before[0]
        if (anew and (now[1] > 0 or not all_done)) or (not anew and now[1] > before[1]):
            yield cycle
        before = now


def total_ns(case: Case, trial: Trial) -> float:
    """Return the time without the closing checkpoint: the sum of the cycles, if known.

    The duration of the trial also includes the looks at the WAL.
    """
    times = times_of(case, trial)
    return times.total if times else trial.seconds * NS_PER_S


def rates(run: Run) -> dict[int, float]:
    """Return the cycles per second in each pass that reached its end."""

    def rate(trial: Trial) -> float:
        ns = total_ns(run.case, trial) if trial.outcome == "done" else 0.0
        return NS_PER_S * run.case.spec.cycles / ns if ns > 0 else 0.0

    return run.by_pass(rate)


@dataclass(frozen=True, slots=True, eq=False)
class CycleRow(case_table.Row):
    """A case, its typical trial, and the times of that trial."""

    times: CycleTimes | None

    @property
    def setting(self) -> str:
        """Name of the setting."""
        return setting_of(self.run.case)[:LONGEST_NAME]


def rows_of(group: Group) -> list[CycleRow]:
    """Return a row for each run of a group."""
    shown = [(run, run.valid_median_trial()) for run in group.runs]
    return [CycleRow(run, trial, times_of(run.case, trial) if trial else None) for run, trial in shown]


# The findings: the fastest settings, and whether the slowest cycle is a checkpoint.


def cycles(group: Group) -> Iterator[Finding]:
    """Yield the findings of a group."""
    rows = [row for row in rows_of(group) if row.trial]
    for row in rows:
        if row.trial and row.trial.outcome != "done":
            after = row.run.case.spec.timeout_s
            limit = after * NS_PER_S if after else None
            yield Finding(sentences.timeout, where=row.setting, limit_ns=limit, reason=row.trial.note)
    yield from _fastest(group, rows)
    for row in rows:
        if row.trial and row.times:
            yield from _checkpoints(row, row.trial, row.times)


def _fastest(group: Group, rows: Sequence[CycleRow]) -> Iterator[Finding]:
    """Yield the fastest settings, as far as the passes tell them apart."""
    compared = [row for row in rows if row.times and row.trial and row.trial.outcome == "done"]
    if len(compared) < 2:
        return
    tested = group.pairwise_tests([row.run for row in compared], rates)
    if tested is None:
        yield Finding(shared.cannot_tell, advice=more_trials(group.case))
        return
    lead = leaders(tested, [row.run for row in compared])
    totals = {row.setting: row.times.total for row in lead.among(compared) if row.times}
    near = sorted(totals, key=totals.__getitem__)
    finding = Finding(
        sentences.fastest,
        settings=tuple(near),
        total_ns=totals[near[0]],
        equal=lead.equal,
        unclear=lead.unclear,
    )
    yield finding
    yield from inconclusive_findings(tested, [finding], group.case)


def _checkpoints(row: CycleRow, trial: Trial, times: CycleTimes) -> Iterator[Finding]:
    """Yield the cycle in which a checkpoint was due, those in which it was seen, and the slowest cycle."""
    case = row.run.case
    cycling: Cycling = case.spec
    frames = _checkpoint_frames(trial)
    slowest = times.slowest
    if case.settings.journal_mode != "wal" or not frames or not slowest or cycling.transaction == "run":
        return
    commits = 2 * cycling.rows + 1 if cycling.transaction == "none" else 1
    due = ceil(frames / max(1, commits))
    ns, number = slowest
    if not times.checkpoints and due > cycling.cycles:
        return
    seen, *later = times.checkpoints or (None,)
    in_range = seen is not None and seen <= len(times.cycles)
    yield Finding(
        sentences.checkpoint,
        where=row.setting,
        commits=commits,
        frames=frames,
        due=due,
        seen=None if seen is None else Checkpoint(seen, times.cycles[seen - 1] if in_range else None),
        later=tuple(later[:FEW]),
        spike=number,
        spike_ns=ns,
        median_ns=median(times.cycles),
        is_it=number in times.checkpoints,
    )


def _checkpoint_frames(trial: Trial) -> int | None:
    """Return the frames after which a commit does a checkpoint; None if it never does, or if unknown."""
    answer = trial.effective.get("wal_autocheckpoint", "")
    return int(answer) or None if len(answer) < 12 and answer.isdecimal() else None


# The table: a row for each setting.


def _ms(figure: Callable[[CycleTimes], float | None]) -> Callable[[CycleRow], str | None]:
    return lambda row: ms_cell(figure(row.times)) if row.times else None


def _done(row: CycleRow) -> str | None:
    """Return the number of completed cycles of a run that met its time-out."""
    if row.trial is None or row.trial.outcome == "done":
        return None
    return whole_cell(len(row.times.cycles) if row.times else 0)


def _total(row: CycleRow) -> str | None:
    if row.trial is None:
        return case_table.FAILED
    if row.trial.outcome != "done":
        return "TIMEOUT"
    return case_table.marked_cell(row.run, ms_cell(total_ns(row.run.case, row.trial)), rates(row.run))


def _slowest_ms(times: CycleTimes | None) -> str | None:
    return ms_cell(times.slowest[0]) if times and times.slowest else None


def _slowest_cycle(times: CycleTimes | None) -> str | None:
    return whole_cell(times.slowest[1]) if times and times.slowest else None


SETTING: Column[CycleRow] = Column("setting", align="left", cell=lambda row: row.setting)
FIGURES: tuple[Column[CycleRow], ...] = (
    Column("cycles done", cell=_done),
    Column(
        "statements ms",
        ("statements", "ms"),
        cell=_ms(lambda times: sum(times.statements)),
        meaning="statements: the inserts and deletes of all cycles, including commits if each row has "
        "its own",
    ),
    Column(
        "BEGIN, COMMIT ms",
        ("BEGIN,", "COMMIT"),
        cell=_ms(lambda times: sum(times.bounds) if times.bounds else None),
        meaning="BEGIN, COMMIT: time of these, counted separately",
    ),
    Column("total ms", cell=_total, meaning="total: all of this, without the closing checkpoint"),
    Column("closing checkpoint ms", ("closing", "ckpt ms"), cell=_ms(lambda times: times.closing), leaves=30),
    Column("first ms", cell=_ms(lambda times: times.cycles[0]), leaves=20),
    Column("median ms", cell=_ms(lambda times: median(times.cycles)), leaves=10),
    Column(
        "slowest ms",
        ("slowest", "ms"),
        cell=lambda row: _slowest_ms(row.times),
        meaning="slowest: the slowest cycle except the first",
    ),
    Column("slowest cycle", ("in", "cycle"), cell=lambda row: _slowest_cycle(row.times)),
)
_SETTINGS = {
    "tx": "one transaction over the whole run",
    "cycle": "one transaction per cycle",
    "off": "no automatic checkpoints",
}
"""Meanings of the parts of a setting's name."""


def _setting_legend(group: Group) -> Iterator[str]:
    parts = {part for run in group.runs for part in setting_of(run.case).split("-")}
    yield from (f"{part}: {text}" for part, text in _SETTINGS.items() if part in parts)
    if any(part.isdecimal() for part in parts):
        yield "a number: WAL frames that trigger a checkpoint"


def _legend(group: Group) -> Iterator[str]:
    """Yield the clauses of the legend that concern several columns."""
    if any(run.case.spec.transaction == "cycle" for run in group.runs):
        yield "the time of a cycle includes its BEGIN and COMMIT"
    yield from case_table.spread_legend(group, "total")
    yield from verified_legend(group, "the table holds what the last acknowledged commit left")


def _trial_cell(figure: Callable[[CycleTimes | None], str | None]) -> case_table.ComparedCell:
    return case_table.run_cell(lambda run, trial: figure(times_of(run.case, trial)))


class CyclesShown(Presenter):
    """Settings, each cycle, and the checkpoints among them."""

    topics = (cycles, partial_proofs)
    measures = (
        (
            case_table.ComparisonFigure(
                "{letter} cycles/s",
                ("{letter} {system}", "cycles/s"),
                "cycles/s: cycles per second, without the closing checkpoint",
                case_table.compared_rate_cell,
            ),
            case_table.RATIO,
        ),
        (case_table.SPREAD,),
        (
            case_table.ComparisonFigure(
                "{letter} total ms",
                ("{letter}", "total ms"),
                "total: time of all cycles",
                case_table.run_cell(lambda run, trial: ms_cell(total_ns(run.case, trial))),
            ),
            case_table.ComparisonFigure(
                "{letter} slowest ms",
                ("{letter}", "slowest ms"),
                "slowest: the slowest cycle except the first",
                _trial_cell(_slowest_ms),
            ),
            case_table.ComparisonFigure(
                "{letter} slowest cycle", ("{letter} in", "cycle"), "", _trial_cell(_slowest_cycle)
            ),
        ),
    )

    def activity(self, group: Group) -> str:
        work: Cycling = group.case.spec
        rows = format_count(work.rows)
        limits = [run.case.spec.timeout_s for run in group.runs if run.case.spec.timeout_s]
        limit = f"; given up after {format_duration(max(limits))}" if limits else ""
        return (
            f"{format_count(work.cycles)} cycles: insert {rows} rows one by one, delete all with one "
            f"statement, insert {rows}{limit}"
        )

    def blocks(self, group: Group) -> Iterator[Block]:
        columns = (SETTING.explained(_setting_legend(group)), *FIGURES, VERIFIED.explained(_legend(group)))
        table = table_of(rows_of(group), columns)
        yield table
        yield Legend(table)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield the time of each cycle, a line for each setting, with its checkpoints marked."""
        data: list[Plain] = []
        for number, row in enumerate(row for row in rows_of(group) if row.times):
            data += _traces(row, number)
        if data:
            note = "The time of each cycle. Diamonds: a checkpoint was seen in it."
            axes = {"xaxis": axis("cycle", whole=True), "yaxis": axis("ms", type="log")}
            yield Plot("Each cycle", note, (View("", data, {**axes, **small_multiples(data)}),), wide=True)

    def rate(self, run: Run) -> float | None:
        trial = run.valid_median_trial()
        total = total_ns(run.case, trial) if trial else 0
        return NS_PER_S * run.case.spec.cycles / total if total > 0 else None


def _traces(row: CycleRow, number: int) -> Iterator[Plain]:
    """Yield the line of a setting, and the marks of its checkpoints; `number` chooses the colour."""
    times, label = row.times, name(row.setting)
    if times is None:
        return
    ms = [ns / NS_PER_MS for ns in times.cycles]
    hover = f"{label}, cycle %{{x}}: %{{y:.3g}} ms"
    trace = line(label, range(1, len(ms) + 1), ms, number, hover)
    yield {**trace, "mode": "lines", "legendgroup": label}
    if marked := [cycle for cycle in times.checkpoints if cycle <= len(ms)]:
        yield {
            "type": "scatter",
            "mode": "markers",
            "name": f"{label}: checkpoint",
            "legendgroup": label,
            "showlegend": False,
            "x": marked,
            "y": [ms[cycle - 1] for cycle in marked],
            "marker": {"color": colour(number), "size": 10, "symbol": "diamond"},
            "hovertemplate": f"{hover}, with a checkpoint",
        }
