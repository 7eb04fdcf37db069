"""Figures of reports as CSV, with a row for each worker of a trial, or as a dict for each case.

A run is all trials of a case.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from sqlstress.analysis.durability import version
from sqlstress.analysis.group import group_runs, longest_wait_ns
from sqlstress.experiment import experiment_of, unit_of
from sqlstress.report import Arrived, Latency, Report, Run, Trial, WorkerResult
from sqlstress.show.blocks import Value, clean
from sqlstress.show.shown import presenter_of
from sqlstress.statistics.compare import spread
from sqlstress.statistics.units import finite
from sqlstress.target import takes

T = TypeVar("T")
Getter = Callable[[T], Value]
"""Function that returns a column's value from an object, such as a report or a trial."""

REPORT: dict[str, Getter[Report]] = {
    "created": lambda report: report.created,
    "tool_version": lambda report: report.tool_version,
    "system": lambda report: report.environment.host.system,
    "release": lambda report: report.environment.host.release,
    "machine": lambda report: report.environment.host.machine,
    "cores": lambda report: report.environment.host.cores,
    "python": lambda report: report.environment.host.python,
    "file_system": lambda report: report.environment.file_system.kind,
    "sync_primitive": lambda report: sync.primitive if (sync := report.environment.sync) else None,
    "sync_append_p50_ns": lambda report: sync.append_p50_ns if (sync := report.environment.sync) else None,
    "published": lambda report: report.published,
}
CASE: dict[str, Getter[Run]] = {
    "workload": lambda run: run.case.workload,
    "unit": lambda run: unit_of(run.case),
    "driver": lambda run: run.case.driver,
    "buckets": lambda run: run.case.buckets,
    "concurrency": lambda run: run.case.concurrency,
    "duration_s": lambda run: run.case.duration_s,
    "warmup_s": lambda run: run.case.warmup_s,
    "ops": lambda run: run.case.ops,
    "seed": lambda run: run.case.seed,
    "verify": lambda run: run.case.verify,
    "busy_timeout_ms": lambda run: (
        run.case.settings.busy_timeout_ms if takes(run.case.driver, "busy-timeout") else None
    ),
}
"""Columns with the options of a case that all experiments have."""
RUN: dict[str, Getter[Run]] = {
    "harness_ns": lambda run: run.harness_ns,
    "case_error": lambda run: run.error,
    "case_skipped": lambda run: run.skipped,
}
ARM: dict[str, Getter[Run]] = {"arm": lambda run: run.arm}
TRIAL: dict[str, Getter[Trial]] = {
    "trial": lambda trial: trial.index,
    "seconds": lambda trial: trial.seconds,
    "transactions": lambda trial: trial.transactions,
    "rows": lambda trial: trial.rows,
    "tps": lambda trial: trial.tps,
    "rows_per_s": lambda trial: trial.rows_per_s,
    "fairness_jain": lambda trial: trial.fairness,
    "min_max_share": lambda trial: trial.min_max_share,
    "longest_wait_ns": lambda trial: trial.longest_wait_ns,
    "busy_answers": lambda trial: trial.busy,
    "busy_snapshot_answers": lambda trial: trial.busy_snapshot,
    "failed_operations": lambda trial: trial.failed,
    "half_ratio": lambda trial: trial.half_ratio,
    "start_s": lambda trial: trial.start_s,
    "attempts": lambda trial: trial.attempts,
    "foreign_share": lambda trial: trial.foreign_share,
    "stolen_share": lambda trial: trial.stolen_share,
    "disk_share": lambda trial: trial.disk_share,
    "throttled": lambda trial: trial.throttled,
    "outcome": lambda trial: trial.outcome,
    "note": lambda trial: trial.note,
    "verdict": lambda trial: trial.verdict.status,
    "verification_s": lambda trial: trial.verdict.seconds,
    "trial_error": lambda trial: trial.error,
}
OF_RATE: dict[str, Getter[Run]] = {
    "rate": lambda run: run.case.rate or None,
    "arrival": lambda run: arrivals.spacing if (arrivals := run.case.arrivals) else None,
    "latency_limit_s": lambda run: arrivals.latency_limit_s if (arrivals := run.case.arrivals) else None,
}
"""Columns of a case at a fixed rate."""
ARRIVED: dict[str, Getter[Arrived]] = {
    "due_operations": lambda arrived: arrived.due,
    "skipped_operations": lambda arrived: arrived.skipped,
    "queued_operations": lambda arrived: arrived.queued,
    "from_due_p50_ns": lambda arrived: whole.p50_ns if (whole := arrived.all_kinds) else None,
    "from_due_p99_ns": lambda arrived: whole.p99_ns if (whole := arrived.all_kinds) else None,
    "from_due_p999_ns": lambda arrived: whole.p999_ns if (whole := arrived.all_kinds) else None,
    "from_due_max_ns": lambda arrived: whole.max_ns if (whole := arrived.all_kinds) else None,
    "late_p99_ns": lambda arrived: arrived.lateness.p99_ns if arrived.lateness else None,
    "polled_share": lambda arrived: arrived.polled_share,
}
"""Columns of a trial at a fixed rate. Latencies begin at the due time of an operation."""
LATENCY: dict[str, Getter[Latency]] = {
    "count": lambda latency: latency.count,
    "p50_ns": lambda latency: latency.p50_ns,
    "p90_ns": lambda latency: latency.p90_ns,
    "p99_ns": lambda latency: latency.p99_ns,
    "p999_ns": lambda latency: latency.p999_ns,
    "max_ns": lambda latency: latency.max_ns,
}
"""Columns for each kind of operation. In the file, their names begin with the kind: "replace_p99_ns"."""
WORKER: dict[str, Getter[WorkerResult]] = {
    "worker": lambda worker: worker.worker,
    "worker_transactions": lambda worker: worker.transactions,
    "worker_rows": lambda worker: worker.rows,
    "worker_seconds": lambda worker: worker.seconds,
    "worker_longest_wait_ns": lambda worker: worker.longest_wait_ns,
    "worker_busy_answers": lambda worker: worker.busy,
    "worker_busy_snapshot_answers": lambda worker: worker.busy_snapshot,
    "worker_failed_operations": lambda worker: worker.failed,
    "worker_harness_share": lambda worker: worker.harness_share,
    "worker_proof_share": lambda worker: worker.proof_share,
    "worker_peak_memory_bytes": lambda worker: worker.peak_memory_bytes,
    "worker_error": lambda worker: worker.error,
}


_OF_ONE_TRIAL = frozenset({"trial", "attempts", "note", "trial_error"})
"""Columns of TRIAL that `case_rows` leaves out, because a whole case has no such value."""
_OF_CASE: dict[str, Getter[Run]] = {
    "trials": lambda run: len(run.valid),
    "tps": lambda run: run.median_tps(),
    "tps_spread": lambda run: spread([*run.rates().values()]),
    "longest_wait_ns": lambda run: longest_wait_ns(run) or None,
    "failed_share": lambda run: run.failed_share() if run.valid else None,
    "verdict": lambda run: run.verdict.status,
    "verification_s": lambda run: run.verdict.seconds,
}
"""Columns in which `case_rows` shows the figures of all trials of a case."""


_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters that start a formula in a spreadsheet, with their full-width forms."""
_KINDS = ("get", "pair", "replace", "update")
"""Kinds of operations of the experiment kv. Their columns precede those of other kinds."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Source of the values in a row, which is for a worker of a trial, or for a whole case."""

    report: Report
    case: int
    """Number of the case in the report, from 1."""
    run: Run
    trial: Trial | None
    """Trial of the row; the median trial in a row for a whole case; None without a trial."""
    worker: WorkerResult | None
    """Worker of the row; None if the trial has no workers, and in a row for a whole case."""
    latency: Callable[[str], Latency | None]
    """Function from a kind of operation to its latencies, in the trial or in the whole case."""


_Columns = dict[str, Getter[_Row]]
"""Functions that return a column's value from a row, by name of the column."""


def report_csv(*reports: Report) -> str:
    """Return reports as CSV (RFC 4180, but lines end in LF), with a row for each worker of each trial.

    A trial without workers has one row, and so has a case without trials. A missing figure is an empty field.
    An apostrophe precedes a text that a spreadsheet would run as a formula.
    """
    runs = [run for report in reports for run in report.runs]
    columns = [*_trial_columns(runs), *_worker_columns(runs).items()]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_csv_value(name) for name, _ in columns)
    for report in reports:
        for number, run in enumerate(report.runs, 1):
            for trial in run.trials or (None,):
                latency = trial.latency if trial else {}
                for worker in (trial.workers if trial else ()) or (None,):
                    row = _Row(report, number, run, trial, worker, latency.get)
                    writer.writerow(_csv_value(value(row)) for _, value in columns)
    return text.getvalue()


def case_rows(report: Report) -> list[dict[str, Value]]:
    """Return a dict for each case: the values by name of the CSV column; None for a missing figure."""
    columns = {name: value for name, value in _trial_columns(report.runs) if name not in _OF_ONE_TRIAL}
    columns |= _columns_of(lambda row: row.run, _OF_CASE)
    rows = [
        _Row(report, number, run, run.valid_median_trial(), None, run.latency)
        for number, run in enumerate(report.runs, 1)
    ]
    return [{name: _json_value(value(row)) for name, value in columns.items()} for row in rows]


def _json_value(value: object) -> Value:
    """Return a value that JSON can hold: a text in one line, a number, or None for NaN and infinity."""
    if isinstance(value, float):
        return finite(value)
    return value if value is None or isinstance(value, int) else clean(str(value))


def _trial_columns(runs: Sequence[Run]) -> list[tuple[str, Getter[_Row]]]:
    """Return the columns of cases and trials, as pairs (name, function).

    The result is no dict, because a name may occur twice. For example, if the user calls a transaction
    "sync_append", the transaction has a column "sync_append_p50_ns", which REPORT also has.
    """
    trials = [trial for run in runs for trial in run.trials]
    by_table: dict[str, list[Run]] = {}
    for run in runs:
        by_table.setdefault(experiment_of(run.case).table(), []).append(run)
    of_cases: dict[str, Getter[Run]] = {}
    of_trials: dict[str, Getter[Trial]] = {}
    for members in by_table.values():
        presenter = presenter_of(members[0].case)
        of_cases |= presenter.case_columns(members)
        declared = (
            column
            for group in group_runs(members)
            for column in (*presenter.columns(group), *presenter.further_columns(group))
        )
        of_trials |= {column.csv: column.value for column in declared if column.csv}
    settings = _all_keys(trial.effective for trial in trials)
    rate = OF_RATE if any(run.case.rate for run in runs) else {}
    arm = ARM if any(run.arm for run in runs) else {}
    arrived = ARRIVED if any(trial.arrived for trial in trials) else {}
    columns: _Columns = {
        **_columns_of(lambda row: row.report, REPORT),
        "case": lambda row: row.case,
        "sqlite_version": _sqlite_version,
        **_columns_of(lambda row: row.run, {**CASE, **rate, **of_cases, **RUN, **arm}),
        **_columns_of(lambda row: row.trial, {f"effective_{name}": _effective(name) for name in settings}),
        **_columns_of(lambda row: row.trial, TRIAL),
        **_columns_of(lambda row: row.trial.arrived if row.trial else None, arrived),
        **_columns_of(lambda row: row.trial, of_trials),
    }
    latencies = (
        (f"{kind}_{figure}", _latency_value(kind, value))
        for kind in _all_keys(trial.latency for trial in trials)
        for figure, value in LATENCY.items()
    )
    return [*columns.items(), *latencies]


def _worker_columns(runs: Sequence[Run]) -> _Columns:
    workers = [worker for run in runs for trial in run.trials for worker in trial.workers]
    kinds = _all_keys(worker.operations for worker in workers)
    counts = {f"worker_{kind}_transactions": _operations(kind) for kind in kinds}
    return _columns_of(lambda row: row.worker, {**WORKER, **counts})


def _columns_of(part: Callable[[_Row], T | None], columns: Mapping[str, Getter[T]]) -> _Columns:
    """Convert `columns` from functions of an object, such as a trial, to functions of a row.

    `part` returns the object of a row. If `part` returns None, the field is empty.
    """

    def getter(value: Getter[T]) -> Getter[_Row]:
        return lambda row: None if (holder := part(row)) is None else value(holder)

    return {name: getter(value) for name, value in columns.items()}


def _latency_value(kind: str, value: Getter[Latency]) -> Getter[_Row]:
    return lambda row: value(latency) if (latency := row.latency(kind)) else None


def _effective(setting: str) -> Getter[Trial]:
    return lambda trial: trial.effective.get(setting)


def _operations(kind: str) -> Getter[WorkerResult]:
    return lambda worker: worker.operations.get(kind, 0)


def _all_keys(mappings: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the distinct keys of all mappings: first those in _KINDS, then the others, sorted."""
    keys = set(chain.from_iterable(mappings))
    return [*(kind for kind in _KINDS if kind in keys), *sorted(keys.difference(_KINDS))]


def _sqlite_version(row: _Row) -> str | None:
    report, run = row.report, row.run
    arms = report.ab.arms if report.ab else ()
    builds = next((arm.builds for arm in arms if arm.name == run.arm), ()) or report.environment.builds
    return next((version(build) for build in builds if build.driver == run.case.driver), None)


def _csv_value(value: Value) -> Value:
    """Return a value for the file: a number, or a text in one line that no spreadsheet runs as a formula."""
    if not isinstance(value, str):
        return value
    text = clean(value)
    if not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
