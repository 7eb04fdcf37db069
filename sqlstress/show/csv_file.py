"""A report as rows of figures, units in their names: as CSV a row per trial and worker, or one per case."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sqlstress.analysis.durability import version
from sqlstress.analysis.group import group_runs, longest_wait_ns
from sqlstress.experiment import experiment_of, unit_of
from sqlstress.report import Latency, Report, Run, Trial, WorkerResult
from sqlstress.show.blocks import Value, clean
from sqlstress.show.shown import presenter_of
from sqlstress.statistics.compare import spread
from sqlstress.statistics.units import finite
from sqlstress.target import takes

# The columns of the CSV: name, and what it says of a report, a case, a trial, a latency or a worker.

Getter = Callable[[Any], Value]


def _fields(*names: str, **paths: str) -> dict[str, Getter]:
    """Return the columns of fields that are called so, and of those that lie at a path, in other words."""
    return {name: _at(path) for name, path in (*zip(names, names, strict=True), *paths.items())}


def _at(path: str) -> Getter:
    """Return what gets the field at a path of names; None where one on the way is None."""

    def get(holder: Any) -> Value:
        for name in path.split("."):
            holder = None if holder is None else getattr(holder, name)
        return holder  # type: ignore[no-any-return]

    return get


REPORT = _fields(
    "created",
    "tool_version",
    system="environment.host.system",
    release="environment.host.release",
    machine="environment.host.machine",
    cores="environment.host.cores",
    python="environment.host.python",
    file_system="environment.file_system.kind",
    sync_primitive="environment.sync.primitive",
    sync_append_p50_ns="environment.sync.append_p50_ns",
    published="published",
)
CASE: dict[str, Getter] = {
    "workload": lambda run: run.case.workload,
    "unit": lambda run: unit_of(run.case),
    **{
        name: _at(f"case.{name}")
        for name in ("driver", "buckets", "concurrency", "duration_s", "warmup_s", "ops", "seed", "verify")
    },
    "busy_timeout_ms": lambda run: (
        run.case.settings.busy_timeout_ms if takes(run.case.driver, "busy-timeout") else None
    ),
}
"""Of every case; those of its experiment follow."""
RUN = _fields("harness_ns", case_error="error", case_skipped="skipped")
TRIAL = {
    **_fields(trial="index"),
    **_fields("seconds", "transactions", "rows", "tps", "rows_per_s", fairness_jain="fairness"),
    **_fields("min_max_share", "longest_wait_ns", busy_answers="busy", busy_snapshot_answers="busy_snapshot"),
    **_fields(failed_operations="failed"),
    **_fields(
        "half_ratio",
        "start_s",
        "attempts",
        "foreign_share",
        "stolen_share",
        "disk_share",
        "throttled",
        "outcome",
    ),
    **_fields("note", verdict="verdict.status", verification_s="verdict.seconds", trial_error="error"),
}
OF_RATE: dict[str, Getter] = {
    "rate": lambda run: run.case.rate or None,
    "arrival": _at("case.arrivals.spacing"),
    "latency_limit_s": _at("case.arrivals.latency_limit_s"),
}
"""The columns of cases whose operations were due at a rate."""
ARRIVED = _fields(
    due_operations="arrived.due",
    skipped_operations="arrived.skipped",
    queued_operations="arrived.queued",
    from_due_p50_ns="arrived.whole.p50_ns",
    from_due_p99_ns="arrived.whole.p99_ns",
    from_due_p999_ns="arrived.whole.p999_ns",
    from_due_max_ns="arrived.whole.max_ns",
    late_p99_ns="arrived.lateness.p99_ns",
    polled_share="arrived.polled_share",
)
"""The same of their trials: latencies from the moment an operation was due."""
LATENCY = _fields("count", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns")
WORKER = _fields(
    worker="worker",
    worker_transactions="transactions",
    worker_rows="rows",
    worker_seconds="seconds",
    worker_longest_wait_ns="longest_wait_ns",
    worker_busy_answers="busy",
    worker_busy_snapshot_answers="busy_snapshot",
    worker_failed_operations="failed",
    worker_harness_share="harness_share",
    worker_proof_share="proof_share",
    worker_peak_memory_bytes="peak_memory_bytes",
    worker_error="error",
)


_OF_ONE_TRIAL = frozenset({"trial", "attempts", "note", "trial_error"})
"""Columns of a trial that say nothing of its case."""
_OF_CASE: dict[str, Getter] = {
    "trials": lambda run: len(run.valid),
    "tps": lambda run: run.median_tps(),
    "tps_spread": lambda run: spread([*run.rates().values()]),
    "longest_wait_ns": lambda run: longest_wait_ns(run) or None,
    "failed_share": lambda run: run.failed_share() if run.valid else None,
    "verdict": lambda run: run.verdict.status,
    "verification_s": lambda run: run.verdict.seconds,
}
"""What all trials of a case say together, as its table does."""


_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the start of a formula; the wide forms too."""
_KINDS = ("get", "pair", "replace", "update")


@dataclass(frozen=True, slots=True)
class _Row:
    """What a row is about."""

    report: Report
    case: int
    """The number of the run in its report."""
    run: Run
    trial: Trial | None
    """In a row per case, the one that is shown."""
    worker: WorkerResult | None
    latency: Callable[[str], Latency | None]
    """The latencies of a kind of operation: of the trial, or in a row per case of all its trials together."""


def report_csv(*reports: Report) -> str:
    """Return reports as CSV (RFC 4180, but lines end in LF); a missing figure is an empty field.

    A trial without workers has one row, and so has a case without trials: no error is left out. Text
    that a spreadsheet would run as a formula begins with an apostrophe.
    """
    runs = [run for report in reports for run in report.runs]
    columns = [*_of_trials(runs), *_of_workers(runs).items()]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_field(name) for name, _ in columns)
    for report in reports:
        for number, run in enumerate(report.runs, 1):
            for trial in run.trials or (None,):
                latency = trial.latency if trial else {}
                for worker in (trial.workers if trial else ()) or (None,):
                    row = _Row(report, number, run, trial, worker, latency.get)
                    writer.writerow(_field(value(row)) for _, value in columns)
    return text.getvalue()


def case_rows(report: Report) -> list[dict[str, Value]]:
    """Return a flat dict for each case, by the names of the CSV's columns, with values of JSON's types.

    Every dict has the same keys; a missing figure is None.
    """
    columns = {name: value for name, value in _of_trials(report.runs) if name not in _OF_ONE_TRIAL}
    columns |= _of("run", _OF_CASE)
    rows = [
        _Row(report, number, run, run.shown(), None, run.latency) for number, run in enumerate(report.runs, 1)
    ]
    return [{name: _plain(value(row)) for name, value in columns.items()} for row in rows]


def _plain(value: object) -> Value:
    """Return a value in JSON's types: text in one line, and None for what is no number."""
    if isinstance(value, float):
        return finite(value)
    return value if value is None or isinstance(value, int) else clean(str(value))


def _of_trials(runs: Sequence[Run]) -> list[tuple[str, Getter]]:
    """Return what is said of a row's case and trial, by column: some depend on what all the runs hold.

    Who names a transaction "sync_append" has two columns of one name.
    """
    trials = [trial for run in runs for trial in run.trials]
    by_table: dict[str, list[Run]] = {}
    for run in runs:
        by_table.setdefault(experiment_of(run.case).table(), []).append(run)
    of_cases: dict[str, Getter] = {}
    of_trials: dict[str, Getter] = {}
    for own in by_table.values():
        shown = presenter_of(own[0].case)
        of_cases |= shown.case_columns(own)
        of_trials |= shown.trial_columns([trial for run in own for trial in run.trials])
        declared = (
            column
            for group in group_runs(own)
            for column in (*shown.columns(group), *shown.further_columns(group))
        )
        of_trials |= {column.csv: column.value for column in declared if column.csv}
    settings = _names(trial.effective for trial in trials)
    in_effect = {f"effective_{name}": _entry("effective", name) for name in settings}
    rate = OF_RATE if any(run.case.rate for run in runs) else {}
    arm = _fields("arm") if any(run.arm for run in runs) else {}
    arrived = ARRIVED if any(trial.arrived for trial in trials) else {}
    columns = {
        **_of("report", REPORT),
        "case": _at("case"),
        "sqlite_version": _sqlite_version,
        **_of("run", {**CASE, **rate, **of_cases, **RUN, **arm}),
        **_of("trial", {**in_effect, **TRIAL, **arrived, **of_trials}),
    }
    latencies = (
        (f"{kind}_{figure}", _of_latency(kind, value))
        for kind in _names(trial.latency for trial in trials)
        for figure, value in LATENCY.items()
    )
    return [*columns.items(), *latencies]


def _of_workers(runs: Sequence[Run]) -> dict[str, Getter]:
    """Return what is said of a row's worker, by column."""
    workers = [worker for run in runs for trial in run.trials for worker in trial.workers]
    kinds = _names(worker.operations for worker in workers)
    counts = {f"worker_{kind}_transactions": _entry("operations", kind, 0) for kind in kinds}
    return _of("worker", {**WORKER, **counts})


def _of(part: str, columns: Mapping[str, Getter]) -> dict[str, Getter]:
    """Return columns of a part of a row as those of the row: None where it has no such part."""

    def of_row(value: Getter) -> Getter:
        return lambda row: None if (found := getattr(row, part)) is None else value(found)

    return {name: of_row(value) for name, value in columns.items()}


def _of_latency(kind: str, value: Getter) -> Getter:
    return lambda row: value(found) if (found := row.latency(kind)) else None


def _entry(mapping: str, key: str, missing: Value = None) -> Getter:
    """Return what gets the entry of a mapping that is a field."""
    return lambda holder: getattr(holder, mapping).get(key, missing)


def _names(mappings: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the keys of all mappings, the known kinds of operation first."""
    known = set(chain.from_iterable(mappings))
    return [*(kind for kind in _KINDS if kind in known), *sorted(known.difference(_KINDS))]


def _sqlite_version(row: _Row) -> str | None:
    report, run = row.report, row.run
    arms = report.ab.arms if report.ab else ()
    builds = next((arm.builds for arm in arms if arm.name == run.arm), ()) or report.environment.builds
    return next((version(build) for build in builds if build.driver == run.case.driver), None)


def _field(value: Value) -> Value:
    """Return what is written: numbers as they are, text in one line that is no formula."""
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
