"""The columns of the CSV: name, and what it says of a report, a case, a trial, a latency or a worker."""

from __future__ import annotations

from collections.abc import Callable

from sqlstress.display.shown import Value
from sqlstress.experiment import face_of
from sqlstress.report import Arrived, Latency, Report, Run, Trial, WorkerResult
from sqlstress.target import takes

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
    "unit": lambda run: face_of(run.case).unit,
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
    "rate": lambda run: own.rate if (own := run.case.arrivals) else None,
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
