"""The columns that a table of cases has whatever the experiment: a row for each run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlstress.analysis.disturbance import disturbed
from sqlstress.analysis.group import Group, longest_wait_ns
from sqlstress.analysis.wording import finite
from sqlstress.display.blocks import DETAIL, NAME, Column, Table
from sqlstress.display.clean import shortened
from sqlstress.display.figures import (
    VERIFIED,
    Figure,
    count_cell,
    layout_column,
    ms_cell,
    percent_cell,
    rate_cell,
    seconds_cell,
    share_cell,
    table_of,
    verified_legend,
    whole_cell,
)
from sqlstress.experiment import face_of
from sqlstress.report import Latency, Run, Trial
from sqlstress.statistics.ratios import spread

FAILED = "failed"
_LONGEST_CASE = 30
_BROKEN = {"synchronous": ("synchro-", "nous"), "checkpointer": ("check-", "pointer")}


@dataclass(frozen=True, slots=True)
class Row:
    """A case and the trial that stands for it. Of a table of its own an experiment may know more."""

    run: Run
    trial: Trial | None
    """The typical one of the valid trials; None when the case could not be measured."""


Cell = Callable[[Row], str | None]
"""What a column says of a row; None when it has no figure."""


def rows_of(group: Group) -> list[Row]:
    """Return a row for each run of a group."""
    return [Row(run, run.shown()) for run in group.runs]


def of_trial(figure: Callable[[Trial], str | None]) -> Cell:
    """Return the cell of a figure of the trial that stands for a case."""
    return lambda row: None if row.trial is None else figure(row.trial)


def of_latency(kind: str, figure: Callable[[Latency], float | None]) -> Cell:
    """Return the cell of a figure, in ms, of the latencies of a kind of operation in all trials."""

    def cell(row: Row) -> str | None:
        latency = row.run.latency(kind) if row.trial else None
        return None if latency is None or not latency.count else ms_cell(figure(latency))

    return cell


def apart(group: Group) -> tuple[Figure[Row], ...]:
    """Return the column of the option in which the parts of a group differ; none of one without parts."""
    if not group.setting:
        return ()
    name = group.setting.replace("-", " ")
    return (Figure(Column(name, _two_lines(name), "left", NAME), lambda row: group.value(row.run.case)),)


def _two_lines(name: str) -> tuple[str, str]:
    """Return a heading on two lines: broken at its last space, or where a long word can be."""
    before, _, after = name.rpartition(" ")
    return _BROKEN.get(name, (before, after))


def _case(row: Row) -> str:
    return shortened(face_of(row.run.case).work_of(row.run.case), _LONGEST_CASE)


def _files(row: Row) -> str | None:
    case = row.run.case
    return whole_cell(case.buckets) if face_of(case).many_files else None


def _total(row: Row) -> str | None:
    if row.trial is None:
        return FAILED
    return rate_cell(row.run.median_tps(), spread([*row.run.rates().values()]), disturbed=disturbed(row.run))


def _failed(row: Row) -> str | None:
    share = row.run.failed_share()
    return percent_cell(share) if share else None


def _per_process(row: Row) -> str | None:
    total = finite(row.run.median_tps())
    return (
        None if row.trial is None or total is None else count_cell(total / max(1, row.run.case.concurrency))
    )


def _longest_wait(row: Row) -> str | None:
    if row.trial is None or row.trial.longest_wait_ns is None:
        return None
    return ms_cell(longest_wait_ns(row.run))


CASE: Figure[Row] = Figure(Column("case", ("", "case"), "left", NAME), _case)
FILES: Figure[Row] = Figure(Column("files", ("", "files"), role=NAME), _files)


def of_layouts(group: Group, figures: Sequence[Figure[Row]]) -> tuple[Figure[Row], ...]:
    """Return columns, in which FILES is called what the buckets of a group are."""
    column = layout_column(run.case for run in group.runs)
    return tuple(replace(one, column=column) if one is FILES else one for one in figures)


PROCESSES: Figure[Row] = Figure(
    Column("processes", ("proc-", "esses"), role=NAME), lambda row: whole_cell(row.run.case.concurrency)
)
TIME: Figure[Row] = Figure(
    Column("time s", ("time", "s"), role=DETAIL), of_trial(lambda trial: seconds_cell(trial.seconds))
)
PER_PROCESS: Figure[Row] = Figure(
    Column("TPS per process", ("TPS per", "process"), role=DETAIL), _per_process
)
TOTAL: Figure[Row] = Figure(Column("TPS total", ("TPS", "total")), _total)
ROWS_PER_S: Figure[Row] = Figure(
    Column("rows/s", ("rows", "per s")), of_trial(lambda trial: count_cell(trial.rows_per_s))
)
FAILED_SHARE: Figure[Row] = Figure(Column("failed %", ("failed", "%")), _failed)
FAIRNESS: Figure[Row] = Figure(
    Column("fairness", ("fair-", "ness")), of_trial(lambda trial: share_cell(trial.fairness))
)
LONGEST_WAIT: Figure[Row] = Figure(Column("longest wait ms", ("longest", "wait ms")), _longest_wait)

COMMON = (PROCESSES, TIME, TOTAL, ROWS_PER_S, FAILED_SHARE, FAIRNESS, LONGEST_WAIT, VERIFIED)
"""What can be said of every case, beside what it is."""
_MEANINGS = {
    "failed %": "failed: operations given up, in per cent",
    "TPS total": "TPS: {units} a second",
    "fairness": "fairness (Jain's index): 1 when all processes got an equal share",
    "longest wait ms": "longest wait: the slowest operation",
}


def common_table(group: Group) -> Table:
    """Return the table of what can be said of every case."""
    first = FILES if face_of(group.case).sweeps else CASE
    return table_of(
        rows_of(group),
        (*apart(group), *of_layouts(group, (first,)), *COMMON),
        ("longest wait ms", "fairness", "rows/s"),
    )


def common_legend(group: Group, table: Table) -> str:
    """Return what its columns mean, in a sentence."""
    units = face_of(group.case).units
    told = [text.format(units=units) for name, text in _MEANINGS.items() if name in table.headers]
    told += spread_legend(group)
    return f"{'; '.join((*told, *verified_legend(group)))}."


def spread_legend(group: Group, figure: str = "TPS") -> list[str]:
    """Return what the marks beside a figure mean, where there are any."""
    found = []
    if any(spread([*run.rates().values()]) is not None for run in group.runs):
        found.append(f"±: 95% interval of the typical {figure}")
    if any(disturbed(run) for run in group.runs):
        found.append("~: other programs took processor time")
    return found
