"""Table, plot and findings of the experiment cycles, as pure functions of a report.

A cycle inserts rows, deletes all of them, and inserts rows again. A setting is the journal mode, the extent
of a transaction, and the frames that trigger a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
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
"""Maximum number of characters of a setting's name that are shown."""
FEW = 3
"""Maximum number of checkpoints, after the first one, that a finding names."""


# Times of a trial, from its series.


@dataclass(frozen=True, slots=True)
class CycleTimes:
    """Times of a trial, in ns, and the cycles with a checkpoint."""

    statements: tuple[int, ...]
    """Time of the inserts and deletes, per cycle, in ns."""
    bounds: tuple[int, ...]
    """Time of BEGIN and COMMIT, per cycle, in ns; empty if each statement is its own transaction."""
    cycles: tuple[int, ...]
    """Time of each cycle, in ns. If each cycle is a transaction, its BEGIN and COMMIT are included."""
    checkpoints: tuple[int, ...]
    """Numbers, from 1, of the cycles in which a checkpoint was seen."""
    closing: int | None
    """Time of the checkpoint after the last cycle, in ns; None without such a checkpoint."""

    @property
    def total(self) -> int:
        """Time of everything except the closing checkpoint, in ns."""
        return sum(self.statements) + sum(self.bounds)

    @property
    def slowest(self) -> int | None:
        """Number, from 1, of the slowest cycle except the first; None if there is only one cycle."""
        numbers = range(2, len(self.cycles) + 1)
        return max(numbers, key=lambda number: self.cycles[number - 1], default=None)

    @property
    def slowest_ns(self) -> int | None:
        """Time of the slowest cycle except the first, in ns; None if there is only one cycle."""
        return self.cycles[self.slowest - 1] if self.slowest else None


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
    """Yield the numbers, from 1, of the cycles with a checkpoint.

    The parameters are the state of the WAL at the end of each cycle: the number of its frames, the number of
    checkpointed frames, and the number of its restarts so far. A cycle has a checkpoint if the number of
    checkpointed frames has increased. If the WAL was restarted, which needs a checkpoint of all its frames,
    the cycle had that checkpoint, unless all frames were checkpointed before the cycle.
    """
    before = (0, 0, 0)
    for cycle, now in enumerate(zip(frames, checkpointed, restarts, strict=False), 1):
        anew, all_done = now[2] > before[2], before[1] >= before[0]
        if (anew and (now[1] > 0 or not all_done)) or (not anew and now[1] > before[1]):
            yield cycle
        before = now


def total_ns(case: Case, trial: Trial) -> float:
    """Return the time of a trial without the closing checkpoint, in ns: the sum of the cycles, if known.

    Otherwise it is the duration of the trial, which also includes reading the state of the WAL.
    """
    times = times_of(case, trial)
    return times.total if times else trial.seconds * NS_PER_S


def rates(run: Run) -> dict[int, float]:
    """Return the cycles per second by pass (trial of a case), for passes that completed all cycles."""

    def rate(trial: Trial) -> float:
        ns = total_ns(run.case, trial) if trial.outcome == "done" else 0.0
        return NS_PER_S * run.case.spec.cycles / ns if ns > 0 else 0.0

    return run.by_pass(rate)


def _times(row: case_table.Row) -> CycleTimes | None:
    """Return the times of the trial with the median rate; None if unknown."""
    return times_of(row.run.case, row.trial) if row.trial else None


def _name(run: Run) -> str:
    """Return the name of the setting of a run, shortened."""
    return setting_of(run.case)[:LONGEST_NAME]


# Findings: the fastest settings, and whether a checkpoint explains the slowest cycle.


def cycles(group: Group) -> Iterator[Finding]:
    """Yield the findings on all settings of a group."""
    measured = [(run, trial, times_of(run.case, trial)) for run, trial in group.measured()]
    for run, trial, _ in measured:
        if trial.outcome != "done":
            after = run.case.spec.timeout_s
            limit = after * NS_PER_S if after else None
            yield Finding(sentences.timeout, where=_name(run), limit_ns=limit, reason=trial.note)
    done = [(run, times) for run, trial, times in measured if times and trial.outcome == "done"]
    yield from _fastest(group, done)
    for run, trial, times in measured:
        if times:
            yield from _checkpoints(run, trial, times)


def _fastest(group: Group, compared: Sequence[tuple[Run, CycleTimes]]) -> Iterator[Finding]:
    """Yield a finding on the fastest settings: all that do not differ significantly from the fastest one."""
    if len(compared) < 2:
        return
    tested = group.pairwise_tests([run for run, _ in compared], rates)
    if tested is None:
        yield Finding(shared.cannot_tell, advice=more_trials(group.case))
        return
    lead = leaders(tested, [run for run, _ in compared])
    leading = {*map(id, lead.runs)}  # The ids, because runs are not hashable.
    near = sorted((times.total, _name(run)) for run, times in compared if id(run) in leading)
    finding = Finding(
        sentences.fastest,
        settings=tuple(name for _, name in near),
        total_ns=near[0][0],
        equal=lead.equal,
        unclear=lead.unclear,
    )
    yield finding
    yield from inconclusive_findings(tested, [finding], group.case)


def _checkpoints(run: Run, trial: Trial, times: CycleTimes) -> Iterator[Finding]:
    """Yield a finding on the cycle in which a checkpoint was due, the cycles with one, and the slowest."""
    cycling: Cycling = run.case.spec
    frames = _checkpoint_frames(trial)
    if run.case.settings.journal_mode != "wal" or not frames or cycling.transaction == "run":
        return
    commits = 2 * cycling.rows + 1 if cycling.transaction == "none" else 1
    due = ceil(frames / max(1, commits))
    if not times.slowest or (not times.checkpoints and due > cycling.cycles):
        return
    seen, *later = times.checkpoints or (None,)
    in_range = seen is not None and seen <= len(times.cycles)
    yield Finding(
        sentences.checkpoint,
        where=_name(run),
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
    """Return the number of WAL frames from which on a commit runs a checkpoint; None if never or unknown."""
    answer = trial.effective.get("wal_autocheckpoint", "")
    return int(answer) or None if len(answer) < 12 and answer.isdecimal() else None


# Table: a row for each setting.


def _ms(figure: Callable[[CycleTimes], float | None]) -> case_table.Cell:
    return lambda row: ms_cell(figure(times)) if (times := _times(row)) else None


def _done(row: case_table.Row) -> str | None:
    """Return the number of completed cycles of a run that was stopped by the time-out; else None."""
    if row.trial is None or row.trial.outcome == "done" or row.run.case.concurrency > 1:
        return None
    return whole_cell(len(times.cycles) if (times := _times(row)) else 0)


def _total(row: case_table.Row) -> str | None:
    if row.trial is None:
        return case_table.FAILED
    if row.trial.outcome != "done":
        return "TIMEOUT"
    return case_table.marked_cell(row.run, ms_cell(total_ns(row.run.case, row.trial)), rates(row.run))


def _slowest_cycle(row: case_table.Row) -> str | None:
    times = _times(row)
    return whole_cell(times.slowest) if times and times.slowest else None


SETTING: Column[case_table.Row] = Column("setting", align="left", cell=lambda row: _name(row.run))
SLOWEST: tuple[Column[case_table.Row], ...] = (
    Column(
        "slowest ms",
        ("slowest", "ms"),
        cell=_ms(lambda times: times.slowest_ns),
        meaning="slowest: the slowest cycle except the first",
    ),
    Column("slowest cycle", ("in", "cycle"), cell=_slowest_cycle),
)
FIGURES: tuple[Column[case_table.Row], ...] = (
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
    *SLOWEST,
)
_SETTINGS = {
    "tx": "one transaction over the whole run",
    "cycle": "one transaction per cycle",
    "off": "no automatic checkpoints",
}
"""Meanings of the words in the name of a setting."""


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


class CyclesShown(Presenter):
    """Presenter of cycles: a table row per setting, and a plot of each cycle with the checkpoints."""

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
            *map(case_table.comparison_figure, SLOWEST),
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
        table = table_of(case_table.rows_of(group), columns)
        yield table
        yield Legend(table)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield a plot with the time of each cycle: a line for each setting, with its checkpoints marked."""
        data: list[Plain] = []
        for number, (run, trial) in enumerate(group.measured()):
            if times := times_of(run.case, trial):
                data += _traces(name(_name(run)), times, number)
        if data:
            note = "The time of each cycle. Diamonds: a checkpoint was seen in it."
            axes = {"xaxis": axis("cycle", whole=True), "yaxis": axis("ms", type="log")}
            yield Plot("Each cycle", note, (View("", data, {**axes, **small_multiples(data)}),), wide=True)

    def rate(self, run: Run) -> float | None:
        trial = run.valid_median_trial()
        total = total_ns(run.case, trial) if trial else 0
        return NS_PER_S * run.case.spec.cycles / total if total > 0 else None


def _traces(label: str, times: CycleTimes, number: int) -> Iterator[Plain]:
    """Yield the line of a setting in the plot, and the marks of its checkpoints.

    `label` is the name of the setting, and `number` selects the colour.
    """
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
