"""Base classes of the presenters of experiments, with default tables, findings and plots."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Generic, TypeVar

from sqlstress.analysis.advice import figure_limits, partial_proofs
from sqlstress.analysis.comparison import ComparedTable
from sqlstress.analysis.differences import differing
from sqlstress.analysis.failed import Wait, failures_of, latency_of
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Topic
from sqlstress.analysis.study_parts import PROVED, UNPROVED, WRONG, Conclusion, ReportPart
from sqlstress.analysis.wording import failure_time, listing
from sqlstress.experiment import experiment_of, get_experiment, units_of
from sqlstress.options.option import options_of
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import Case
from sqlstress.show import at_a_rate, case_table, sweep_plots
from sqlstress.show.blocks import (
    LESS,
    MORE,
    NOTHING_LOST,
    Block,
    Column,
    Legend,
    Value,
    seconds_cell,
    table_of,
)
from sqlstress.show.case_table import (
    FAILED_SHARE,
    RATIO,
    ROWS_FIGURE,
    SHAPE,
    SPREAD,
    TPS,
    ComparisonFigure,
    FigureGroups,
    Row,
    common_blocks,
    compared_trial_cell,
    comparison_figure,
    rows_of,
)
from sqlstress.show.plots import Plot, bar_plots, line_plots

R = TypeVar("R")

TIME = ComparisonFigure(
    "{letter} time s",
    ("{letter}", "time s"),
    "time: how long the work took",
    compared_trial_cell(lambda trial: seconds_cell(trial.seconds)),
)


LOCKED = "the database was locked"
LOCKED_FOR_LONGER = f"{LOCKED} for longer than --busy-timeout"
SNAPSHOT_OUT_OF_DATE = "other transactions had changed what they had read (BUSY_SNAPSHOT)"
WHOLE_GROUP_TOPICS: tuple[Topic, ...] = (partial_proofs, figure_limits)
"""Topics that concern a whole group, not each of its parts."""


def by_part(topic: Topic, group: Group) -> Iterator[Finding]:
    """Yield the findings of a topic for each part of a group; equal findings of parts are merged."""
    values_by_finding: dict[Finding, list[str]] = {}
    for part in group.parts or (group,):
        for finding in topic(part):
            values_by_finding.setdefault(finding, []).append(group.value(part.case))
    for finding, values in values_by_finding.items():
        of_all = len(values) == max(1, len(group.parts))
        yield finding if of_all else finding.with_part(f"{group.setting} {listing(values)}")


class Presenter:
    """Presenter of an experiment: pure functions of a report. Experiments override what differs."""

    topics: ClassVar[tuple[Topic, ...]] = (partial_proofs, figure_limits)
    """Topics of a group, in order, except for wrong and missing data."""
    measures: ClassVar[FigureGroups] = ((ROWS_FIGURE, RATIO), (SPREAD,), (TIME,))
    """Figures of comparisons, for experiments whose columns do not declare them."""
    proves: ClassVar[str] = NOTHING_LOST
    """Fact about the data of a run that its proof established, as a clause."""
    together: ClassVar[int] = 1
    """Number of reports next to the first one in 80 columns; 1 if cases have long names."""

    def failure_reason(self, run: Run) -> str:
        """Return the reason why operations of a run failed, as a clause."""
        trials = [trial for trial in run.ended if trial.failed]
        latency = latency_of(failures_of([run]))
        wait = Wait(latency, run.case.settings.busy_timeout_ms) if latency else None
        # Older reports do not have the time.
        locked = (
            f"{LOCKED}, {failure_time(wait.failure_time())}"
            if wait and not run.case.server
            else LOCKED_FOR_LONGER
        )
        if not any(trial.busy_snapshot for trial in trials):
            return locked
        return (
            f"{locked}, or {SNAPSHOT_OUT_OF_DATE}"
            if any(trial.busy for trial in trials)
            else SNAPSHOT_OUT_OF_DATE
        )

    def is_doubtful(self, run: Run) -> bool:
        """Return whether the exit code reports a suspicion about a run whose data is right."""
        return False

    def activity(self, group: Group) -> str:
        """Return the activity of the processes, as the beginning of a sentence."""
        return group.case.workload

    def blocks(self, group: Group) -> Iterator[Block]:
        """Yield the tables and pictures, each with its legend."""
        return common_blocks(group)

    def columns(self, group: Group) -> Sequence[Column[Row]]:
        """Return the columns of the table of a group. The CSV and comparisons take theirs from it."""
        return ()

    def further_columns(self, group: Group) -> Sequence[Column[Any]]:
        """Return the columns of a further table. The CSV takes its columns from it, too."""
        return ()

    def comparison_figures(self, group: Group) -> FigureGroups:
        """Return the figures that a comparison shows; `group` has the runs of all reports."""
        return self.measures

    def findings(self, group: Group) -> Iterator[Finding]:
        """Yield the findings."""
        for topic in self.topics:
            yield from topic(group) if topic in WHOLE_GROUP_TOPICS else by_part(topic, group)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield the plots of a group: throughput and latency, unless the experiment has its own."""
        if group.case.rate:
            yield from at_a_rate.plots(group)
            yield from sweep_plots.over_time(group)
        else:
            yield from sweep_plots.plots(group)

    def rate(self, run: Run) -> float | None:
        """Return the rate by which a run is compared, per second; the caller has excluded invalid runs."""
        trial = run.valid_median_trial()
        return trial.rows_per_s if trial else None

    def commits(self, trial: Trial) -> int | None:
        """Return the number of commits of a trial; None if unknown."""
        return None

    def tracked_rates(self, run: Run) -> Iterator[float | None]:
        """Yield the rate of each valid trial that benchmark trackers store, per second."""
        return (trial.tps for trial in run.valid)

    def tracked_unit(self, case: Case) -> str:
        """Return the unit of these rates, in the plural."""
        return units_of(case)

    def loads(self, cases: Sequence[Case]) -> list[str]:
        """Return the differences between the loads of cases with the same work, a text for each case.

        Options that vary within a table are left out.
        """
        parts = [experiment_of(case).table_key(case).spec for case in cases]
        names = dict.fromkeys(name for part in parts for name in differing(parts[0], part))
        return [
            ", ".join(f"{name.replace('_', ' ')} {getattr(part, name)}" for name in names) for part in parts
        ]

    def compared_plots(self, compared: ComparedTable, names: Sequence[str]) -> Iterator[Plot]:
        """Yield the plots of several reports side by side: lines over the processes, or bars case by case."""
        if compared.table.sweeps:
            yield from line_plots(compared, names)
        else:
            yield from bar_plots(compared, names, self.bar, self.bar_name)

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Return the title and the key of the bar of a case. The last bar with the same two is shown."""
        return "", case

    def bar_name(self, case: Case) -> str:
        """Return the name of the bar of a case, without the number of processes."""
        return experiment_of(case).work_label(case)

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        """Return the CSV columns of the cases of this experiment: the fields of their specs."""
        columns: dict[str, Callable[[Run], Value]] = {}
        for run in runs:
            key = experiment_of(run.case).key or run.case.workload
            for field in fields(run.case.spec):
                columns.setdefault(f"{key}_{field.name}", _field(type(run.case.spec), field.name))
        return columns

    def trial_columns(self, trials: Sequence[Trial]) -> Mapping[str, Callable[[Trial], Value]]:
        """Return the CSV columns of the trials of this experiment, in addition to those of `columns`."""
        return {}


def presenter_of(case: Case) -> Presenter:
    """Return the presenter of the experiment of a case."""
    shown: Presenter = experiment_of(case).presenter()
    return shown


class LoadShown(Presenter):
    """Presenter of an experiment with two loops: closed, or open at a fixed rate."""

    failed: ClassVar[Column[Row]] = FAILED_SHARE
    """Column of failed operations."""

    def blocks(self, group: Group) -> Iterator[Block]:
        if group.case.rate:
            yield from at_a_rate.blocks(group, self.failed, self.proved(group))
        else:
            yield from self.closed_loop_table(group)
        yield from self.more_blocks(group)

    def comparison_figures(self, group: Group) -> FigureGroups:
        columns = self.columns(group)
        more, less = (
            tuple(comparison_figure(column) for column in columns if column.better == better)
            for better in (MORE, LESS)
        )
        return (TPS, RATIO), (SPREAD,), (SHAPE, *more), less

    def closed_loop_table(self, group: Group) -> Iterator[Block]:
        """Yield the table of cases in a closed loop; above it, several targets side by side."""
        yield from case_table.blocks(group)
        yield from self.table(group)

    def table(self, group: Group) -> Iterator[Block]:
        """Yield the table of the declared columns, and its legend."""
        table = table_of(rows_of(group), self.columns(group))
        yield table
        yield Legend(table)

    def more_blocks(self, group: Group) -> Iterator[Block]:
        """Yield the blocks below the table."""
        return iter(())

    def proved(self, group: Group) -> str:
        """Return the fact that the proof established, for the legend."""
        return NOTHING_LOST

    def rate(self, run: Run) -> float | None:
        return run.median_tps()


class ResultShown(Presenter, Generic[R]):
    """Presenter of the result of a study that is not a sweep of cases. R is the type of the result."""

    def part(self, result: R) -> ReportPart:
        """Return the subject of the study and its verdict."""
        raise NotImplementedError

    def result_blocks(self, report: Report, result: R) -> Iterator[Block]:
        """Yield all blocks of the result."""
        raise NotImplementedError

    def result_plots(self, result: R) -> Iterator[Plot]:
        """Yield the plots of the result."""
        return iter(())

    def tiles(self, result: R) -> Iterator[Tile]:
        """Yield the main figures, for the top of a page."""
        raise NotImplementedError

    def progress(self, result: R) -> str:
        """Return the progress of the study: "3 of 100 rounds"."""
        raise NotImplementedError


def shown_results(report: Report) -> list[tuple[ResultShown[Any], Any]]:
    """Return the results of studies, each with its presenter."""
    return [(get_experiment(name).presenter(), result) for name, result in report.results.items()]


def option_columns(runs: Sequence[Run], holder_of: Callable[[Run], Any]) -> dict[str, Callable[[Run], Value]]:
    """Return a CSV column for each option of the dataclasses that `holder_of` returns."""

    def column(name: str) -> Callable[[Run], Value]:
        def value(run: Run) -> Value:
            setting: Any = getattr(holder_of(run), name, None)
            return int(setting) if isinstance(setting, bool) else setting

        return value

    kinds: dict[Any, None] = dict.fromkeys(type(holder) for run in runs if (holder := holder_of(run)))
    return {
        option.column or name: column(name)
        for kind in kinds
        for name, option in options_of(kind).items()
        if option.column is not None
    }


def _field(kind: type, name: str) -> Callable[[Run], Value]:
    return lambda run: getattr(run.case.spec, name) if isinstance(run.case.spec, kind) else None


Tile = tuple[str, str, str]
"""Figure, its name, and its status: ok, failed, unknown, or empty."""


def verdict_tile(verdict: Conclusion, proved: str, what: str) -> Tile:
    """Return the tile of a verdict; `proved` is its text if everything was proved."""
    values = {PROVED: (proved, "ok"), UNPROVED: ("unproved", "unknown"), WRONG: ("FAILED", "failed")}
    value, kind = values[verdict.status]
    return value, what, kind
