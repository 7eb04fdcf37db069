"""What every experiment is asked for when a report is shown, and what those show that say nothing else."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Generic, TypeVar

from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.comparison import Compared
from sqlstress.analysis.differences import differing
from sqlstress.analysis.failed import Wait, failures_of, latency_of
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Topic
from sqlstress.analysis.study_parts import PROVED, UNPROVED, WRONG, Conclusion, Part
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
    seconds_cell,
    table_of,
)
from sqlstress.show.blocks import Value as Value
from sqlstress.show.case_table import (
    FAILED_SHARE,
    RATIO,
    ROWS_MEASURE,
    SHAPE,
    SPREAD,
    TPS,
    Measure,
    Measures,
    Row,
    common_blocks,
    compared_trial,
    measure_of,
    rows_of,
)
from sqlstress.show.plots import Plot, bar_plots, line_plots

R = TypeVar("R")

TIME = Measure(
    "{letter} time s",
    ("{letter}", "time s"),
    "time: how long the work took",
    compared_trial(lambda trial: seconds_cell(trial.seconds)),
)


LOCKED = "the database was locked"
LONGER = f"{LOCKED} for longer than --busy-timeout"
OUT_OF_DATE = "other transactions had changed what they had read (BUSY_SNAPSHOT)"
OF_ALL: tuple[Topic, ...] = (partial_proofs, trust)
"""What is said of all parts of a group together."""


def by_part(topic: Topic, group: Group) -> Iterator[Finding]:
    """Yield what is said of each part of a group, once where it is the same of all."""
    said: dict[Finding, list[str]] = {}
    for part in group.parts or (group,):
        for finding in topic(part):
            said.setdefault(finding, []).append(group.value(part.case))
    for finding, values in said.items():
        of_all = len(values) == max(1, len(group.parts))
        yield finding if of_all else finding.of_part(f"{group.setting} {listing(values)}")


class Shown:
    """How an experiment is shown: pure functions of a report. One of its own overrides what differs."""

    topics: ClassVar[tuple[Topic, ...]] = (partial_proofs, trust)
    """What there is to say of a group, beside what is wrong or missing."""
    measures: ClassVar[Measures] = ((ROWS_MEASURE, RATIO), (SPREAD,), (TIME,))
    """The figures that a comparison shows."""
    proves: ClassVar[str] = NOTHING_LOST
    """What is known of the data of a run that is proved."""
    together: ClassVar[int] = 1
    """How many reports stand beside the first one in 80 columns; one where a case has a long name."""

    def why_failed(self, run: Run) -> str:
        """Return why operations of a run failed, in words."""
        trials = [trial for trial in run.ended if trial.failed]
        latency = latency_of(failures_of([run]))
        wait = Wait(latency, run.case.settings.busy_timeout_ms) if latency else None
        # Older reports do not have the time.
        locked = f"{LOCKED}, {failure_time(wait.failure_time())}" if wait and not run.case.server else LONGER
        if not any(trial.busy_snapshot for trial in trials):
            return locked
        return f"{locked}, or {OUT_OF_DATE}" if any(trial.busy for trial in trials) else OUT_OF_DATE

    def is_doubtful(self, run: Run) -> bool:
        """Return whether something about a run is to be seen in the exit code, though nothing is wrong."""
        return False

    def what(self, group: Group) -> str:
        """Return what the processes did, as the beginning of a sentence."""
        return group.case.workload

    def blocks(self, group: Group) -> Iterator[Block]:
        """Yield the tables and pictures, each with a sentence that says what it means."""
        return common_blocks(group)

    def columns(self, group: Group) -> Sequence[Column[Row]]:
        """Return the columns of the table of a group. The CSV and comparisons take theirs from it."""
        return ()

    def further_columns(self, group: Group) -> Sequence[Column[Row]]:
        """Return the columns of a further table. The CSV takes its columns from it, too."""
        return ()

    def compared(self, group: Group) -> Measures:
        """Return the figures that a comparison shows; `group` has the runs of all reports."""
        return self.measures

    def findings(self, group: Group) -> Iterator[Finding]:
        """Yield what there is to say."""
        for topic in self.topics:
            yield from topic(group) if topic in OF_ALL else by_part(topic, group)

    def plots(self, group: Group) -> Iterator[Plot]:
        """Yield the plots of a group: throughput and latency, unless the experiment has its own."""
        if group.case.rate:
            yield from at_a_rate.plots(group)
            yield from sweep_plots.over_time(group)
        else:
            yield from sweep_plots.plots(group)

    def rate(self, run: Run) -> float | None:
        """Return what a run is compared by, a second: of one that was done, and whose data is right."""
        trial = run.shown()
        return trial.rows_per_s if trial else None

    def commits(self, trial: Trial) -> int | None:
        """Return how many commits a trial made; None where that is not known."""
        return None

    def tracked(self, run: Run) -> Iterator[float | None]:
        """Yield what trackers keep of each trial that counts: what it did a second."""
        return (trial.tps for trial in run.valid)

    def tracked_unit(self, case: Case) -> str:
        """Return what that counts, in the plural."""
        return units_of(case)

    def loads(self, cases: Sequence[Case]) -> list[str]:
        """Return what differs in the loads of cases that do the same work, but for what varies in a table."""
        parts = [experiment_of(case).table_key(case).spec for case in cases]
        names = dict.fromkeys(name for part in parts for name in differing(parts[0], part))
        return [
            ", ".join(f"{name.replace('_', ' ')} {getattr(part, name)}" for name in names) for part in parts
        ]

    def compared_plots(self, compared: Compared, names: Sequence[str]) -> Iterator[Plot]:
        """Yield the plots of several reports side by side: lines over the processes, or bars case by case."""
        if compared.table.sweeps:
            yield from line_plots(compared, names)
        else:
            yield from bar_plots(compared, names, self.bar, self.bar_name)

    def bar(self, case: Case) -> tuple[str, Hashable]:
        """Return under which title a case has its bar there; of the same title and key only the last one."""
        return "", case

    def bar_name(self, case: Case) -> str:
        """Return what a bar is called, but for the number of processes."""
        return experiment_of(case).work_label(case)

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        """Return the columns of the CSV that only its cases have: the fields of their specs."""
        columns: dict[str, Callable[[Run], Value]] = {}
        for run in runs:
            key = experiment_of(run.case).key or run.case.workload
            for field in fields(run.case.spec):
                columns.setdefault(f"{key}_{field.name}", _field(type(run.case.spec), field.name))
        return columns

    def trial_columns(self, trials: Sequence[Trial]) -> Mapping[str, Callable[[Trial], Value]]:
        """Return the columns of the CSV that only its trials have, in addition to `columns`."""
        return {}


def presenter_of(case: Case) -> Shown:
    """Return what shows the experiment of a case."""
    shown: Shown = experiment_of(case).presenter()
    return shown


class LoadShown(Shown):
    """How an experiment is shown that has both loops: closed, or open at a rate."""

    failed: ClassVar[Column[Row]] = FAILED_SHARE
    """Column of failed operations."""

    def blocks(self, group: Group) -> Iterator[Block]:
        if group.case.rate:
            yield from at_a_rate.blocks(group, self.failed, self.proved(group))
        else:
            yield from self.closed_loop_table(group)
        yield from self.more_blocks(group)

    def compared(self, group: Group) -> Measures:
        columns = self.columns(group)
        more, less = (
            tuple(measure_of(column) for column in columns if column.better == better)
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
        """Yield what stands below the table."""
        return iter(())

    def proved(self, group: Group) -> str:
        """Return what was proved where the data is right."""
        return NOTHING_LOST

    def rate(self, run: Run) -> float | None:
        return run.median_tps()


class ResultShown(Shown, Generic[R]):
    """How what a study has found is shown, which is no sweep of cases: R is its type."""

    def part(self, result: R) -> Part:
        """Return what was tried, and its verdict."""
        raise NotImplementedError

    def result_blocks(self, report: Report, result: R) -> Iterator[Block]:
        """Yield everything that it shows."""
        raise NotImplementedError

    def result_plots(self, result: R) -> Iterator[Plot]:
        """Yield the plots of it."""
        return iter(())

    def tiles(self, result: R) -> Iterator[Tile]:
        """Yield the figures that are looked for first."""
        raise NotImplementedError

    def progress(self, result: R) -> str:
        """Return how far it has come: "3 of 100 rounds"."""
        raise NotImplementedError


def shown_results(report: Report) -> list[tuple[ResultShown[Any], Any]]:
    """Return the results of studies, each with what shows it."""
    return [(get_experiment(name).presenter(), result) for name, result in report.results.items()]


def option_columns(runs: Sequence[Run], holder_of: Callable[[Run], Any]) -> dict[str, Callable[[Run], Value]]:
    """Return a CSV column for each option of the dataclasses that `holder_of` returns."""

    def column(name: str) -> Callable[[Run], Value]:
        def value(run: Run) -> Value:
            found: Any = getattr(holder_of(run), name, None)
            return int(found) if isinstance(found, bool) else found

        return value

    kinds: dict[Any, None] = dict.fromkeys(type(holder) for run in runs if (holder := holder_of(run)))
    return {
        found.column or name: column(name)
        for kind in kinds
        for name, found in options_of(kind).items()
        if found.column is not None
    }


def _field(kind: type, name: str) -> Callable[[Run], Value]:
    return lambda run: getattr(run.case.spec, name) if isinstance(run.case.spec, kind) else None


Tile = tuple[str, str, str]
"""A figure, what it is, and how it stands: ok, failed, unknown, or neither."""


def came_of(verdict: Conclusion, proved: str, what: str) -> Tile:
    """Return the tile of a verdict; `proved` is what it says when all is well."""
    values = {PROVED: (proved, "ok"), UNPROVED: ("unproved", "unknown"), WRONG: ("FAILED", "failed")}
    value, kind = values[verdict.status]
    return value, what, kind
