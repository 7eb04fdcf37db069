"""The columns of the CSV: name, and what it says of a report, a case, a trial, a latency or a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields

from sqlstress.experiments.keys.shown.cells import space_figure
from sqlstress.experiments.kv.shown.wal import most, total
from sqlstress.report import Latency, Report, Run, Trial, WorkerResult
from sqlstress.report.parts import Checkpointing
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINT_TIME,
    CHECKPOINTS,
    LARGEST_WAL,
    LONGEST_CHECKPOINT,
    STUCK_CHECKPOINTS,
)

Value = str | float | None


def _beside(run: Run) -> Checkpointing:
    return run.case.checkpointing or Checkpointing()


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
    "unit": lambda run: run.case.unit,
    "driver": lambda run: run.case.driver,
    "buckets": lambda run: run.case.buckets,
    "concurrency": lambda run: run.case.concurrency,
    "duration_s": lambda run: run.case.duration_s,
    "warmup_s": lambda run: run.case.warmup_s,
    "ops": lambda run: run.case.ops,
    "seed": lambda run: run.case.seed,
    "verify": lambda run: run.case.verify,
    "read_ratio": lambda run: run.case.load.read_ratio,
    "update_ratio": lambda run: run.case.load.update_ratio,
    "key_space": lambda run: run.case.load.key_space,
    "distribution": lambda run: run.case.load.distribution,
    "key_type": lambda run: run.case.load.key_type,
    "value_size_bytes": lambda run: run.case.load.value_size,
    "batch_rows": lambda run: run.case.load.batch,
    "begin": lambda run: run.case.load.begin,
    "busy": lambda run: run.case.settings.busy,
    "busy_timeout_ms": lambda run: run.case.settings.busy_timeout_ms,
    "checkpointer": lambda run: _beside(run).mode,
    "checkpoint_interval_s": lambda run: _beside(run).interval_s if run.case.checkpointing else None,
    "pinned_readers": lambda run: int(_beside(run).pinned_reader),
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
    "checkpoints": lambda trial: total(trial, CHECKPOINTS),
    "busy_checkpoints": lambda trial: total(trial, BUSY_CHECKPOINTS),
    "stuck_checkpoints_in_a_row": lambda trial: most(trial, STUCK_CHECKPOINTS),
    "checkpoints_ns": lambda trial: total(trial, CHECKPOINT_TIME),
    "longest_checkpoint_ns": lambda trial: most(trial, LONGEST_CHECKPOINT),
    "largest_wal_bytes": lambda trial: most(trial, LARGEST_WAL),
    "half_ratio": lambda trial: trial.half_ratio,
    "start_s": lambda trial: trial.start_s,
    "attempts": lambda trial: trial.attempts,
    "outcome": lambda trial: trial.outcome,
    "note": lambda trial: trial.note,
    "verdict": lambda trial: trial.verdict.status,
    "verification_s": lambda trial: trial.verdict.seconds,
    "trial_error": lambda trial: trial.error,
}

PARTS = ("method", "picks", "cycling")
"""Parts of a case that only some experiments have: a column for each of their fields, if a case has them."""


def of_parts(runs: Iterable[Run]) -> dict[str, Callable[[Run], Value]]:
    """Return the columns of those parts that the cases of some runs have."""
    cases = [run.case for run in runs]
    found = ((name, next((part for case in cases if (part := getattr(case, name))), None)) for name in PARTS)
    return {
        f"{name}_{field.name}": _of_part(name, field.name)
        for name, part in found
        if part is not None
        for field in fields(part)
    }


ARM: dict[str, Callable[[Run], Value]] = {"arm": lambda run: run.arm}
"""The column of A/B tests."""


def _of_part(name: str, field: str) -> Callable[[Run], Value]:
    return lambda run: getattr(getattr(run.case, name), field, None)


def _space(name: str) -> Callable[[Trial], Value]:
    def value(trial: Trial) -> Value:
        figure = space_figure(trial.space, name)
        return int(figure) if figure is not None and figure.is_integer() else figure

    return value


SPACE: dict[str, Callable[[Trial], Value]] = {
    "file_bytes": _space("file"),
    "bytes_per_row": _space("bytes per row"),
    "table_share": _space("table's share"),
    "indices_share": _space("indices' share"),
    "table_fan_out": _space("table's fan-out"),
    "indices_fan_out": _space("indices' fan-out"),
}
"""Columns of the space that a database takes, if a trial has it measured."""

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
