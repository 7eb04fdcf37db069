"""A report as CSV: long, a row per trial and worker, units in the columns' names."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from sqlstress.analysis.durability import version
from sqlstress.experiment import face_of
from sqlstress.report import Arrived, Latency, Report, Run, Trial, WorkerResult
from sqlstress.show.blocks import clean
from sqlstress.show.shown import Shown, Value
from sqlstress.target import takes

# The columns of the CSV: name, and what it says of a report, a case, a trial, a latency or a worker.


REPORT: dict[str, Callable[[Report], Value]] = {
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

CASE: dict[str, Callable[[Run], Value]] = {
    "workload": lambda run: run.case.workload,
    "unit": lambda run: face_of(run.case).words.unit,
    "driver": lambda run: run.case.driver,
    "buckets": lambda run: run.case.buckets,
    "concurrency": lambda run: run.case.concurrency,
    "duration_s": lambda run: run.case.duration_s,
    "warmup_s": lambda run: run.case.warmup_s,
    "ops": lambda run: run.case.ops,
    "seed": lambda run: run.case.seed,
    "verify": lambda run: run.case.verify,
    "busy": lambda run: run.case.settings.busy if takes(run.case.driver, "busy") else None,
    "busy_timeout_ms": lambda run: (
        run.case.settings.busy_timeout_ms if takes(run.case.driver, "busy-timeout") else None
    ),
}
"""Of every case; those of its experiment follow."""

RUN: dict[str, Callable[[Run], Value]] = {
    "harness_ns": lambda run: run.harness_ns,
    "case_error": lambda run: run.error,
    "case_skipped": lambda run: run.skipped,
}

TRIAL: dict[str, Callable[[Trial], Value]] = {
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
    "throttled": lambda trial: trial.throttled,
    "outcome": lambda trial: trial.outcome,
    "note": lambda trial: trial.note,
    "verdict": lambda trial: trial.verdict.status,
    "verification_s": lambda trial: trial.verdict.seconds,
    "trial_error": lambda trial: trial.error,
}

OF_RATE: dict[str, Callable[[Run], Value]] = {
    "rate": lambda run: run.case.rate or None,
    "arrival": lambda run: own.spacing if (own := run.case.arrivals) else None,
    "latency_limit_s": lambda run: own.latency_limit_s if (own := run.case.arrivals) else None,
}
"""The columns of cases whose operations were due at a rate."""


def _of_arrived(figure: Callable[[Arrived], Value]) -> Callable[[Trial], Value]:
    return lambda trial: figure(trial.arrived) if trial.arrived else None


def _from_due(figure: Callable[[Latency], Value]) -> Callable[[Trial], Value]:
    return _of_arrived(lambda arrived: figure(whole) if (whole := arrived.whole) else None)


ARRIVED: dict[str, Callable[[Trial], Value]] = {
    "due_operations": _of_arrived(lambda arrived: arrived.due),
    "skipped_operations": _of_arrived(lambda arrived: arrived.skipped),
    "queued_operations": _of_arrived(lambda arrived: arrived.queued),
    "from_due_p50_ns": _from_due(lambda latency: latency.p50_ns),
    "from_due_p99_ns": _from_due(lambda latency: latency.p99_ns),
    "from_due_p999_ns": _from_due(lambda latency: latency.p999_ns),
    "from_due_max_ns": _from_due(lambda latency: latency.max_ns),
    "late_p99_ns": _of_arrived(lambda arrived: late.p99_ns if (late := arrived.lateness) else None),
    "polled_share": _of_arrived(lambda arrived: arrived.polled_share),
}
"""The same of their trials: latencies from the moment an operation was due."""

ARM: dict[str, Callable[[Run], Value]] = {"arm": lambda run: run.arm}
"""The column of A/B tests."""


LATENCY: dict[str, Callable[[Latency], Value]] = {
    "count": lambda latency: latency.count,
    "p50_ns": lambda latency: latency.p50_ns,
    "p90_ns": lambda latency: latency.p90_ns,
    "p99_ns": lambda latency: latency.p99_ns,
    "p999_ns": lambda latency: latency.p999_ns,
    "max_ns": lambda latency: latency.max_ns,
}

WORKER: dict[str, Callable[[WorkerResult], Value]] = {
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


_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the start of a formula; the wide forms too."""
_KINDS = ("get", "pair", "replace", "update")


@dataclass(frozen=True, slots=True)
class _Line:
    """What one row is about."""

    run: Run
    trial: Trial | None
    worker: WorkerResult | None


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns that depend on what the report holds."""

    case: dict[str, Callable[[Run], Value]]
    settings: list[str]
    trial: dict[str, Callable[[Trial], Value]]
    latencies: list[str]
    kinds: list[str]


def report_csv(*reports: Report) -> str:
    """Return reports as CSV (RFC 4180, but lines end in LF); a missing figure is an empty field.

    A trial without workers has one row, and so has a case without trials: no error is left out. Text
    that a spreadsheet would run as a formula begins with an apostrophe.
    """
    columns = _columns([run for report in reports for run in report.runs])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_field, _header(columns)))
    for report in reports:
        about = [value(report) for value in REPORT.values()]
        for number, run in enumerate(report.runs, 1):
            origin = (*about, number, _sqlite_version(report, run))
            for line in _lines(run):
                writer.writerow(map(_field, chain(origin, _values(line, columns))))
    return text.getvalue()


def _columns(runs: Sequence[Run]) -> _Columns:
    trials = [trial for run in runs for trial in run.trials]
    return _Columns(
        case={
            **CASE,
            **(OF_RATE if any(run.case.rate for run in runs) else {}),
            **_of_cases(runs),
            **RUN,
            **(ARM if any(run.arm for run in runs) else {}),
        },
        settings=_names(trial.effective for trial in trials),
        trial={**TRIAL, **(ARRIVED if any(trial.arrived for trial in trials) else {}), **_of_trials(runs)},
        latencies=_names(trial.latency for trial in trials),
        kinds=_names(worker.operations for trial in trials for worker in trial.workers),
    )


def _by_experiment(runs: Iterable[Run]) -> dict[Shown, list[Run]]:
    found: dict[Shown, list[Run]] = {}
    for run in runs:
        found.setdefault(face_of(run.case).show(), []).append(run)
    return found


def _of_cases(runs: Sequence[Run]) -> dict[str, Callable[[Run], Value]]:
    """Return the columns that only some experiments' cases have."""
    found: dict[str, Callable[[Run], Value]] = {}
    for shown, own in _by_experiment(runs).items():
        found |= shown.case_columns(own)
    return found


def _of_trials(runs: Sequence[Run]) -> dict[str, Callable[[Trial], Value]]:
    """Return the columns that only some experiments' trials have."""
    found: dict[str, Callable[[Trial], Value]] = {}
    for shown, own in _by_experiment(runs).items():
        found |= shown.trial_columns([trial for run in own for trial in run.trials])
    return found


def _names(mappings: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the keys of all mappings, the known kinds of operation first."""
    found = set(chain.from_iterable(mappings))
    return [*(kind for kind in _KINDS if kind in found), *sorted(found.difference(_KINDS))]


def _lines(run: Run) -> Iterator[_Line]:
    for trial in run.trials or (None,):
        for worker in (trial.workers if trial else ()) or (None,):
            yield _Line(run, trial, worker)


def _header(columns: _Columns) -> Iterator[str]:
    yield from REPORT
    yield from ("case", "sqlite_version")
    yield from columns.case
    yield from (f"effective_{name}" for name in columns.settings)
    yield from columns.trial
    yield from (f"{kind}_{figure}" for kind in columns.latencies for figure in LATENCY)
    yield from WORKER
    yield from (f"worker_{kind}_transactions" for kind in columns.kinds)


def _values(line: _Line, columns: _Columns) -> Iterator[Value]:
    """Yield the fields of a row from its case on, in the order of the header."""
    run, trial, worker = line.run, line.trial, line.worker
    yield from (value(run) for value in columns.case.values())
    yield from (trial.effective.get(name) if trial else None for name in columns.settings)
    yield from (value(trial) if trial else None for value in columns.trial.values())
    found = [trial.latency.get(kind) if trial else None for kind in columns.latencies]
    yield from (value(latency) if latency else None for latency in found for value in LATENCY.values())
    yield from (value(worker) if worker else None for value in WORKER.values())
    yield from (worker.operations.get(kind, 0) if worker else None for kind in columns.kinds)


def _sqlite_version(report: Report, run: Run) -> str | None:
    arms = report.ab.arms if report.ab else ()
    own = next((arm.builds for arm in arms if arm.name == run.arm), ()) or report.environment.builds
    return next((version(build) for build in own if build.driver == run.case.driver), None)


def _field(value: Value) -> Value:
    """Return what is written: numbers as they are, text in one line that is no formula."""
    if not isinstance(value, str):
        return value
    text = clean(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
