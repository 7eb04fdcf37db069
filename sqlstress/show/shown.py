"""Base classes of presenters: objects that show the results of an experiment.

A run is all trials of a case. A group is the runs in one table; it may be split into parts, each with one
value of an option. A topic is a function that yields the findings on one subject for a group. A study is an
experiment that decides itself what to measure, such as a crash test. A spec is the options that only one
experiment has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Generic, TypeVar

from sqlstress.analysis.advice import figure_limits, partial_proofs
from sqlstress.analysis.differences import differing
from sqlstress.analysis.failed import failure_time_of, failures_of
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
from sqlstress.show.plots import Plot

R = TypeVar("R")
"""Type of the result of a study."""

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
"""Topics (functions that yield findings) on a whole group. Others are called for each part of a group."""


def by_part(topic: Topic, group: Group) -> Iterator[Finding]:
    """Yield the findings of a topic for each part of a group (each value of the compared option).

    A finding gets a label with the values to which it applies, unless it applies to all values.
    """
    values_by_finding: dict[Finding, list[str]] = {}
    for part in group.parts or (group,):
        for finding in topic(part):
            values_by_finding.setdefault(finding, []).append(group.value(part.case))
    for finding, values in values_by_finding.items():
        of_all = len(values) == max(1, len(group.parts))
        yield finding if of_all else finding.with_part(f"{group.setting} {listing(values)}")


class Presenter:
    """Object that shows the results of an experiment. Subclasses override the methods that differ."""

    topics: ClassVar[tuple[Topic, ...]] = (partial_proofs, figure_limits)
    """Functions that yield this experiment's findings, in order. Callers add findings on wrong data."""
    measures: ClassVar[FigureGroups] = ((ROWS_FIGURE, RATIO), (SPREAD,), (TIME,))
    """Figures that a comparison of reports shows by default, in groups that share a table if they fit."""
    proves: ClassVar[str] = NOTHING_LOST
    """Fact that the checks of the data prove, such as "no acknowledged write was lost"."""
    together: ClassVar[int] = 1
    """Number of reports in a table of a comparison, in addition to the first, that fit into 80 characters."""

    def failure_reason(self, run: Run) -> str:
        """Return the reason why operations of a run failed, as a clause."""
        trials = [trial for trial in run.all_valid if trial.failed]
        time = failure_time_of(failures_of([run]), run.case.settings.busy_timeout_ms)
        # Reports of older versions lack the times of failed operations.
        locked = f"{LOCKED}, {failure_time(time)}" if time and not run.case.server else LOCKED_FOR_LONGER
        if not any(trial.busy_snapshot for trial in trials):
            return locked
        return (
            f"{locked}, or {SNAPSHOT_OUT_OF_DATE}"
            if any(trial.busy for trial in trials)
            else SNAPSHOT_OUT_OF_DATE
        )

    def is_doubtful(self, run: Run) -> bool:
        """Return whether the user's code looks wrong, which is a problem even if the data is right."""
        return False

    def activity(self, group: Group) -> str:
        """Return a clause on the work of the processes, which begins a sentence of the report."""
        return group.case.workload

    def blocks(self, group: Group) -> Iterator[Block]:
        """Yield the tables and pictures of a group, each with its legend."""
        return common_blocks(group)

    def columns(self, group: Group) -> Sequence[Column[Row]]:
        """Return the columns of a group's table, which also appear in the CSV file and in comparisons."""
        return ()

    def further_columns(self, group: Group) -> Sequence[Column[Any]]:
        """Return the columns of a group's second table, which also appear in the CSV file."""
        return ()

    def comparison_figures(self, group: Group) -> FigureGroups:
        """Return the groups of figures that a comparison shows. `group` has the runs of all reports."""
        return self.measures

    def findings(self, group: Group) -> Iterator[Finding]:
        """Yield the findings on a group, from all `topics`."""
        for topic in self.topics:
            yield from topic(group) if topic in WHOLE_GROUP_TOPICS else by_part(topic, group)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield the plots of a group: by default, throughput and latency."""
        if group.case.rate:
            yield from at_a_rate.plots(group)
            yield from sweep_plots.over_time(group)
        else:
            yield from sweep_plots.plots(group)

    def rate(self, run: Run) -> float | None:
        """Return the rate of a run per second, by which runs are compared; None without a valid trial."""
        trial = run.valid_median_trial()
        return trial.rows_per_s if trial else None

    def commits(self, trial: Trial) -> int | None:
        """Return the number of commits in the measured time of a trial; None if unknown."""
        return None

    def tracked_rates(self, run: Run) -> Iterator[float | None]:
        """Yield the rate per second of each valid trial, for benchmark trackers."""
        return (trial.tps for trial in run.valid)

    def tracked_unit(self, case: Case) -> str:
        """Return the unit of `tracked_rates` in the plural, such as "transactions"."""
        return units_of(case)

    def loads(self, cases: Sequence[Case]) -> list[str]:
        """Return a text such as "batch 10" for each case: options of its work in which the cases differ."""
        parts = [experiment_of(case).table_key(case).spec for case in cases]
        names = dict.fromkeys(name for part in parts for name in differing(parts[0], part))
        return [
            ", ".join(f"{name.replace('_', ' ')} {getattr(part, name)}" for name in names) for part in parts
        ]

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Return (view's title, key) of a case's bar in a bar plot. Cases with equal keys share a bar."""
        return "", case

    def bar_name(self, case: Case) -> str:
        """Return the name of a case's bar in a bar plot, without the number of processes."""
        return experiment_of(case).work_label(case)

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        """Return the CSV columns of options that only this experiment has, by name."""
        columns: dict[str, Callable[[Run], Value]] = {}
        for run in runs:
            key = experiment_of(run.case).key or run.case.workload
            for field in fields(run.case.spec):
                columns.setdefault(f"{key}_{field.name}", _spec_field(type(run.case.spec), field.name))
        return columns


def presenter_of(case: Case) -> Presenter:
    shown: Presenter = experiment_of(case).presenter()
    return shown


class LoadShown(Presenter):
    """Presenter of an experiment whose processes run operations back to back, or at a fixed rate."""

    failed: ClassVar[Column[Row]] = FAILED_SHARE
    """Column of failed operations, for the table of cases at a fixed rate."""

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
        """Yield a table of targets (such as SQLite) if a group compares targets, and a table of cases."""
        yield from case_table.blocks(group)
        yield from self.table(group)

    def table(self, group: Group) -> Iterator[Block]:
        """Yield the table of cases, with the columns from `columns`, and its legend."""
        table = table_of(rows_of(group), self.columns(group))
        yield table
        yield Legend(table)

    def more_blocks(self, group: Group) -> Iterator[Block]:
        """Yield the blocks below the table of cases; none by default."""
        return iter(())

    def proved(self, group: Group) -> str:
        """Return the fact that the checks prove, for the legend, such as "no acknowledged write was lost"."""
        return NOTHING_LOST

    def rate(self, run: Run) -> float | None:
        return run.median_tps()


class ResultShown(Presenter, Generic[R]):
    """Presenter of a study without cases, such as a crash test. R is the type of its result."""

    def part(self, result: R) -> ReportPart:
        """Return the part of the report that shows the study, with its verdict."""
        raise NotImplementedError

    def result_blocks(self, report: Report, result: R) -> Iterator[Block]:
        raise NotImplementedError

    def result_plots(self, result: R) -> Iterator[Plot]:
        return iter(())

    def tiles(self, result: R) -> Iterator[Tile]:
        """Yield the main figures for the top of an HTML page."""
        raise NotImplementedError

    def progress(self, result: R) -> str:
        """Return the progress of the study, such as "3 of 100 rounds"."""
        raise NotImplementedError


def shown_results(report: Report) -> list[tuple[ResultShown[Any], Any]]:
    """Return a tuple (presenter of the study, result) for each study of a report."""
    return [(get_experiment(name).presenter(), result) for name, result in report.results.items()]


def option_columns(runs: Sequence[Run], holder_of: Callable[[Run], Any]) -> dict[str, Callable[[Run], Value]]:
    """Return the CSV columns of options, by name. `holder_of` returns the run's object with the options."""

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


def _spec_field(kind: type, name: str) -> Callable[[Run], Value]:
    return lambda run: getattr(run.case.spec, name) if isinstance(run.case.spec, kind) else None


Tile = tuple[str, str, str]
"""Main figure at the top of an HTML page: (figure, its name, status: ok, failed, unknown or "")."""


def verdict_tile(verdict: Conclusion, proved: str, what: str) -> Tile:
    """Return a tile with a verdict. `proved` is its text if the verdict is PROVED, `what` its caption."""
    values = {PROVED: (proved, "ok"), UNPROVED: ("unproved", "unknown"), WRONG: ("FAILED", "failed")}
    value, kind = values[verdict.status]
    return value, what, kind
