"""The table of the main job: a row per case, a column per figure; columns without a figure fall away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite
from sqlstress.display import verified
from sqlstress.display.blocks import Column, Table
from sqlstress.display.columns import Figure, table_of
from sqlstress.display.figures import count_cell, ms_cell, seconds_cell, share_cell, whole_cell
from sqlstress.experiments.kv.shown.waiting import longest_wait_ns
from sqlstress.report import Latency, Run, Trial

FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Row:
    """A case and the trial that stands for it."""

    run: Run
    trial: Trial | None
    """The typical one of the valid trials; None when the case could not be measured."""


Cell = Callable[[Row], str | None]
"""What a column says of a row; None when it has no figure."""


def build(group: Group) -> Table:
    """Return the table of a group's runs."""
    return table_of(rows_of(group), FIGURES, _leaving(group))


def rows_of(group: Group) -> list[Row]:
    """Return a row for each run of a group."""
    return [Row(run, run.shown()) for run in group.runs]


def _leaving(group: Group) -> tuple[str, ...]:
    # A window's length stands in the heading, the time of a fixed count nowhere else.
    time = () if group.case.ops is not None or group.case.workload == "classic" else ("time s",)
    return (*time, "rows/s", *_LEAVING)


def _of_trial(figure: Callable[[Trial], str | None]) -> Cell:
    return lambda row: None if row.trial is None else figure(row.trial)


def _latency(kind: str, figure: Callable[[Latency], float | None]) -> Cell:
    def cell(trial: Trial) -> str | None:
        latency = trial.latency.get(kind)
        return None if latency is None or not latency.count else ms_cell(figure(latency))

    return _of_trial(cell)


def _total(row: Row) -> str | None:
    return FAILED if row.trial is None else count_cell(row.run.median_tps())


def _per_process(row: Row) -> str | None:
    total = finite(row.run.median_tps())
    return (
        None if row.trial is None or total is None else count_cell(total / max(1, row.run.case.concurrency))
    )


def _rows_per_s(row: Row) -> str | None:
    if row.trial is None or row.run.case.load.batch == 1:
        return None
    return count_cell(row.trial.rows_per_s)


def _longest_wait(row: Row) -> str | None:
    if row.trial is None or row.trial.longest_wait_ns is None:
        return None
    return ms_cell(longest_wait_ns(row.run))


def _p50(latency: Latency) -> float | None:
    return latency.p50_ns


def _p99(latency: Latency) -> float | None:
    return latency.p99_ns


FILES: Figure[Row] = Figure(Column("files", ("", "files")), lambda row: whole_cell(row.run.case.buckets))
PROCESSES: Figure[Row] = Figure(
    Column("processes", ("proc-", "esses")), lambda row: whole_cell(row.run.case.concurrency)
)
FIGURES: tuple[Figure[Row], ...] = (
    FILES,
    PROCESSES,
    Figure(Column("time s", ("time", "s")), _of_trial(lambda trial: seconds_cell(trial.seconds))),
    Figure(Column("TPS per process", ("TPS per", "process")), _per_process),
    Figure(Column("TPS total", ("TPS", "total")), _total),
    Figure(Column("rows/s", ("rows", "per s")), _rows_per_s),
    Figure(Column("replace p50 ms", ("replace", "p50 ms")), _latency("replace", _p50)),
    Figure(Column("replace p99 ms", ("replace", "p99 ms")), _latency("replace", _p99)),
    Figure(Column("update p99 ms", ("update", "p99 ms")), _latency("update", _p99)),
    Figure(Column("get p99 ms", ("get", "p99 ms")), _latency("get", _p99)),
    Figure(Column("fairness", ("fair-", "ness")), _of_trial(lambda trial: share_cell(trial.fairness))),
    Figure(Column("longest wait ms", ("longest", "wait ms")), _longest_wait),
    Figure(verified.COLUMN, lambda row: verified.verified_cell(row.run)),
)
_LEAVING = (
    "replace p50 ms",
    "update p99 ms",
    "get p99 ms",
    "replace p99 ms",
    "TPS per process",
    "longest wait ms",
    "time s",
    "fairness",
)
