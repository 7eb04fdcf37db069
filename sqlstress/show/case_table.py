"""Columns that several experiments share, for tables with a row for each case.

A run is all trials of a case. A group is the runs in one table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from sqlstress.analysis.answers import (
    LEADERS_EQUAL,
    ONE_LEADS,
    Side,
    Size,
    group_by_durability,
    leads,
    sides_of,
    size_of,
)
from sqlstress.analysis.comparison import ComparedTable, logarithms, rate_verdict
from sqlstress.analysis.disturbances import disturbed
from sqlstress.analysis.group import Group, longest_wait_ns
from sqlstress.analysis.scaling import is_fairness_known
from sqlstress.analysis.wording import duration, percent
from sqlstress.experiment import experiment_of, units_of
from sqlstress.report import Latency, Run, Trial
from sqlstress.show.blocks import (
    BUCKETS_COLUMN,
    DETAIL,
    MISSING,
    MORE,
    NAME,
    PROCESSES_COLUMN,
    VERIFIED,
    Block,
    Column,
    Legend,
    Note,
    R,
    Table,
    clean,
    count_cell,
    ms_cell,
    percent_cell,
    rate_cell,
    ratio_cell,
    seconds_cell,
    share_cell,
    shortened,
    spread_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.show.plots import PERCENTILES as PERCENTILE_OF
from sqlstress.statistics.compare import DIFFERENT, spread
from sqlstress.statistics.units import finite
from sqlstress.target import reported

FAILED, SKIPPED = "failed", "skipped"
"""Cells of cases without figures: the case could not be measured, or was skipped."""
_LONGEST_CASE = 30
"""Maximum length of a case's name in a table, in characters."""


@dataclass(frozen=True, slots=True)
class Row:
    """Row of a table for one case. Experiments add fields in subclasses."""

    run: Run
    trial: Trial | None
    """Valid trial with the median TPS, which represents the case; None without a valid trial."""


Cell = Callable[[Row], str | None]
"""Function that returns a row's cell; None if the row lacks the figure."""


def rows_of(group: Group) -> list[Row]:
    """Return a row for each run of a group."""
    return [Row(run, run.valid_median_trial()) for run in group.runs]


def trial_cell(figure: Callable[[Trial], str | None]) -> Cell:
    """Return a function for `Column.cell`: row → `figure(row.trial)`; None for a row without a trial."""
    return lambda row: None if row.trial is None else figure(row.trial)


def kind_latency(kind: str) -> Callable[[Row], Latency | None]:
    """Return a function: row → latencies of its operations of a kind, such as "replace", in all trials.

    The function returns None if there were no such operations. Percentiles that a single slow operation would
    change are None.
    """

    def latency_of(row: Row) -> Latency | None:
        latency = row.run.latency(kind) if row.trial else None
        return latency.without_single_events() if latency and latency.count else None

    return latency_of


def percentile_column(name: str, latency_of: Callable[[R], Latency | None], **more: Any) -> Column[R]:
    """Return a column of a latency percentile, in ms. `name` ends with the percentile: "replace p99"."""
    first, _, second = f"{name} ms".partition(" ")
    percentile = PERCENTILE_OF[name.rpartition(" ")[2]]

    def cell(row: R) -> str | None:
        latency = latency_of(row)
        return ms_cell(percentile(latency)) if latency else None

    return Column(f"{name} ms", (first, second), cell=cell, **more)


def trial_column(
    name: str,
    csv: str,
    value: Callable[[Trial], float | None],
    write: Callable[[float | None], str | None],
    **more: Any,
) -> Column[Row]:
    """Return a column, called `name` in tables and `csv` in the CSV file.

    `value` returns a trial's figure, which the CSV file shows. `write` turns the figure into a table cell.
    """
    return Column(name, cell=trial_cell(lambda trial: write(value(trial))), csv=csv, value=value, **more)


def setting_columns(group: Group) -> tuple[Column[Row], ...]:
    """Return a tuple with the column of the option whose values are compared; () if none is compared."""
    if not group.setting:
        return ()
    name = group.setting.replace("-", " ")
    return (Column(name, align="left", role=NAME, cell=lambda row: group.value(row.run.case)),)


def _total_cell(row: Row) -> str | None:
    if row.trial is None:
        return SKIPPED if row.run.skipped else FAILED
    return rate_cell(row.run.median_tps(), spread([*row.run.rates().values()]), disturbed=disturbed(row.run))


def marked_cell(run: Run, figure: str | None, rates: Mapping[int, float]) -> str:
    """Return the cell `figure` with its uncertainty: "22k" → "22k ±8%". `rates` has the rate of each trial.

    A "~" at the front means that other programs, or a CPU quota, disturbed the run.
    """
    return f"{'~' * disturbed(run)}{figure or MISSING}{spread_cell(spread([*rates.values()]))}"


def _per_process(row: Row) -> str | None:
    total = finite(row.run.median_tps()) if row.trial else None
    return None if total is None else count_cell(total / max(1, row.run.case.concurrency))


def _longest_wait(row: Row) -> str | None:
    waited = row.trial is not None and row.trial.longest_wait_ns is not None
    return ms_cell(longest_wait_ns(row.run)) if waited else None


FAIRNESS_MEANING = "fairness (Jain's index): 1 if all processes got equal shares"
CASE: Column[Row] = Column(
    "case",
    align="left",
    role=NAME,
    cell=lambda row: shortened(experiment_of(row.run.case).work_label(row.run.case), _LONGEST_CASE),
)
BUCKETS: Column[Row] = replace(
    BUCKETS_COLUMN,
    cell=lambda row: whole_cell(row.run.case.buckets) if experiment_of(row.run.case).many_files else None,
    meaning="buckets: database files, or tables on a server",
)
PROCESSES: Column[Row] = replace(PROCESSES_COLUMN, cell=lambda row: whole_cell(row.run.case.concurrency))
TIME: Column[Row] = Column("time s", role=DETAIL, cell=trial_cell(lambda trial: seconds_cell(trial.seconds)))
PER_PROCESS: Column[Row] = Column("TPS per process", role=DETAIL, cell=_per_process, leaves=20)
TOTAL: Column[Row] = Column("TPS total", cell=_total_cell)
ROWS_PER_S: Column[Row] = Column(
    "rows/s", ("rows", "per s"), cell=trial_cell(lambda trial: count_cell(trial.rows_per_s)), leaves=95
)
FAILED_SHARE: Column[Row] = Column(
    "failed %",
    cell=lambda row: percent_cell(share) if (share := row.run.failed_share()) else None,
    meaning="failed: percentage of operations given up because the database was busy",
)
FAIRNESS: Column[Row] = Column(
    "fairness",
    ("", "fair"),
    cell=lambda row: (
        share_cell(row.trial.fairness) if row.trial and is_fairness_known(row.run.case) else None
    ),
    meaning=FAIRNESS_MEANING,
    leaves=90,
    better=MORE,
)
LONGEST_WAIT: Column[Row] = Column(
    "longest wait ms",
    ("longest", "wait ms"),
    cell=_longest_wait,
    meaning="longest wait: the slowest operation, including one still pending at the end",
    leaves=80,
)


def common_blocks(group: Group) -> Iterator[Block]:
    """Yield a table of the figures that all experiments have, and its legend."""
    columns = (
        *setting_columns(group),
        BUCKETS if experiment_of(group.case).sweeps else CASE,
        PROCESSES,
        TIME,
        TOTAL.explained([f"TPS: {units_of(group.case)} per second"]),
        ROWS_PER_S,
        FAILED_SHARE.explained(["failed: percentage of operations given up"]),
        FAIRNESS,
        LONGEST_WAIT.explained(["longest wait: the slowest operation"]),
        VERIFIED.explained([*spread_legend(group), *verified_legend(group)]),
    )
    table = table_of(rows_of(group), columns)
    yield table
    yield Legend(table)


def spread_legend(group: Group, figure: str = "TPS") -> list[str]:
    """Return legend clauses for the marks "±" and "~" at a figure, if the group's table has these marks."""
    disturber = "a CPU quota stopped the processes" if group.met_quota else "disturbed by other programs"
    is_spread = any(spread([*run.rates().values()]) is not None for run in group.runs)
    return [
        *([f"±: 95% interval of the typical {figure}"] if is_spread else ()),
        *([f"~: {disturber}"] if any(map(disturbed, group.runs)) else ()),
    ]


SYSTEMS = {"Darwin": "macOS"}
"""Usual names of operating systems, by the name that Python reports."""

ComparedCell = Callable[[ComparedTable, int, int], str | None]
"""Function (table, index of the row, index of the report) → cell in a comparison; None without a figure."""


@dataclass(frozen=True, slots=True)
class ComparisonFigure:
    """Figure, such as TPS, that comparisons of reports show, with a column for each report."""

    name: str
    """Name of the figure's columns. {letter} becomes the letter of the report, such as A."""
    heading: tuple[str, str]
    """Heading in two short lines. {letter} and {system} become the report's letter and operating system."""
    meaning: str
    """Explanation for the legend. {units} becomes the counted operations, such as transactions."""
    cell: ComparedCell

    def column(self, compared: ComparedTable, index: int) -> Column[int]:
        """Return the column of the figure for the report with this index."""
        part = compared.table.parts[index]
        system = part.report.environment.host.system
        names = {"letter": part.letter, "system": shortened(SYSTEMS.get(system, system), 7)}
        first, second = (line.format(**names).strip() for line in self.heading)
        return Column(
            self.name.format(**names),
            (first, second),
            cell=lambda row: self.cell(compared, row, index),
            meaning=self.meaning,
        )


FigureGroups = tuple[tuple[ComparisonFigure, ...], ...]
"""Groups of figures of a comparison. The figures of a group are shown in one table if they fit."""


def compared_rate_cell(compared: ComparedTable, row: int, index: int) -> str | None:
    """Return a report's rate of a case, or a word such as "failed"; None if the report lacks the case."""
    run = compared.run(row, index)
    if run is None:
        return None
    if rate := count_cell(compared.rate(row, index)):
        return rate
    if run.verdict.status == "failed":
        return "wrong"
    trial = run.typical()
    if trial is None or trial.error is not None:
        return SKIPPED if run.skipped else FAILED
    return trial.outcome if trial.outcome in ("timeout", "limit") else "failed"


def run_cell(figure: Callable[[Run, Trial], str | None]) -> ComparedCell:
    """Return a function for `ComparisonFigure.cell` that calls `figure` with a run and its median trial."""

    def cell(compared: ComparedTable, row: int, index: int) -> str | None:
        run, trial = compared.run(row, index), compared.trial(row, index)
        return None if run is None or trial is None else figure(run, trial)

    return cell


def compared_trial_cell(figure: Callable[[Trial], str | None]) -> ComparedCell:
    """Return a function for `ComparisonFigure.cell` that calls `figure` with the median trial of a run."""
    return run_cell(lambda _, trial: figure(trial))


_LONGEST_HEADING, _CUT = 6, 4


def comparison_figure(column: Column[Row]) -> ComparisonFigure:
    """Return a figure that shows `column`, from tables of single reports, in comparisons of reports."""
    first, second = column.heading
    brief = first if len(first) <= _LONGEST_HEADING else f"{first[:_CUT]}."
    return ComparisonFigure(
        f"{{letter}} {column.name}",
        (f"{{letter}} {brief}", second),
        column.meaning,
        run_cell(lambda run, trial: column.cell(Row(run, trial))),
    )


def _ratio_cell(compared: ComparedTable, row: int, index: int) -> str | None:
    """Return a report's rate / the first report's: "1.02", or "~1.02" if the difference may be chance."""
    ratio = compared.estimate(row, index) if compared.shows_ratio(index) else None
    cell = ratio_cell(ratio.estimate) if ratio else None
    return cell if ratio is None or cell is None or rate_verdict(ratio) == DIFFERENT else f"~{cell}"


def _spread_cell(compared: ComparedTable, row: int, index: int) -> str | None:
    """Return half the range of a case's rates, relative to the median: "±3%"; None for one trial."""
    rates = list(map(math.exp, logarithms(compared.run(row, index))))
    return f"±{percent((max(rates) - min(rates)) / 2 / median(rates))}" if len(rates) > 1 else None


RATIO = ComparisonFigure(
    "{letter}/A",
    ("{letter}/A", ""),
    "B/A: ratio of B to A, and so on; ~: may be chance (its interval includes 1, or there are too few "
    "trials)",
    _ratio_cell,
)
SPREAD = ComparisonFigure("{letter} ±", ("", "{letter} ±"), "±: half the range of the trials", _spread_cell)
TPS = ComparisonFigure(
    "{letter} TPS",
    ("{letter} {system}", "TPS"),
    "TPS: {units} per second, all processes together",
    compared_rate_cell,
)
ROWS_FIGURE = ComparisonFigure(
    "{letter} rows/s",
    ("{letter} {system}", "rows/s"),
    "rows/s: rows read or written per second, all processes together",
    compared_rate_cell,
)
SHAPE = ComparisonFigure(
    "{letter} shape",
    ("{letter}", "shape"),
    "shape: TPS relative to 1 process, comparable even if TPS is not",
    lambda compared, row, index: ratio_cell(compared.shape(row, index)),
)


# Several targets (such as SQLite and PostgreSQL) side by side: a column for each target, a row for each
# number of processes and files, and the target that leads.


INCOMPARABLE = "not comparable"
"""Cell shown instead of the leading target (such as SQLite) if commits differ in durability."""


def blocks(group: Group) -> Iterator[Block]:
    """Yield a table that compares targets (such as SQLite), with its legend; nothing for one target."""
    sides = sides_of(group)
    if not sides or group.case.rate:
        return
    comparable = len(group_by_durability(sides)) == 1
    yield _targets_table(group, sides, comparable)
    legend = [f"TPS: {units_of(group.case)} per second, all processes together", *spread_legend(group)]
    if comparable:
        legend.append("leads: which is faster beyond noise")
    else:
        legend.append(f"{INCOMPARABLE}: commits differ in durability (see above)")
    yield Note(f"{'; '.join(legend)}.")
    yield from (Note(f"{words}.") for side in sides if (words := reported(side.driver).difference))
    calls = [
        f"{clean(side.driver)} {duration(ns)}"
        + (f" ({words})" if (words := reported(side.driver).bare_call) else "")
        for side in sides
        if (ns := side.bare_call_ns) is not None
    ]
    if calls:
        yield Note(
            f"One call through the binding, without data access: {'; '.join(calls)}. Each call of an "
            "operation costs at least this much. A lead of no more than the difference between these may "
            "come from the binding."
        )


def _targets_table(group: Group, sides: tuple[Side, ...], comparable: bool) -> Table:
    """Return a table of targets: their TPS, and the leading target, or INCOMPARABLE unless `comparable`."""
    runs = {(side.name, size_of(run.case)): run for side in sides for run in side.runs}
    sizes = sorted({size for _, size in runs})
    leading: dict[Size, list[str]] = {}
    for lead in leads(group):
        words = lead.verdict
        if lead.verdict == ONE_LEADS:
            words = lead.ahead[0]
        elif lead.verdict == LEADERS_EQUAL and len(lead.ahead) < len(lead.names):
            words = " = ".join(lead.ahead)
        leading.setdefault(size_of(lead.case), []).append(words)

    def total(side: Side) -> Column[Size]:
        def cell(size: Size) -> str | None:
            run = runs.get((side.name, size))
            return TOTAL.cell(Row(run, run.valid_median_trial())) if run else None

        return Column(f"{side.name} TPS", (side.name, "TPS"), cell=cell)

    buckets = replace(BUCKETS_COLUMN, cell=lambda size: whole_cell(size[0]))
    columns: tuple[Column[Size], ...] = (
        *([buckets] if len({size[0] for size in sizes}) > 1 else ()),
        replace(PROCESSES_COLUMN, cell=lambda size: whole_cell(size[1])),
        *map(total, sides),
        Column(
            "leads",
            align="left",
            cell=lambda size: ", ".join(leading.get(size, ())) or (None if comparable else INCOMPARABLE),
        ),
    )
    return table_of(sizes, columns)
