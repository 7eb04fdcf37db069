"""The columns of the CSV that only key-value cases have."""

from __future__ import annotations

from collections.abc import Callable

from sqlstress.display.shown import Value
from sqlstress.experiments.kv.shown.wal import most, total
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report import Run, Trial
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINT_TIME,
    CHECKPOINTS,
    LARGEST_WAL,
    LONGEST_CHECKPOINT,
    STUCK_CHECKPOINTS,
)


def _of_load(field: str) -> Callable[[Run], Value]:
    return lambda run: getattr(run.case.spec, field) if isinstance(run.case.spec, Load) else None


def _beside(figure: Callable[[Checkpointing], Value]) -> Callable[[Run], Value]:
    def value(run: Run) -> Value:
        spec = run.case.spec
        return figure(spec.checkpointing or Checkpointing()) if isinstance(spec, Load) else None

    return value


def _interval_s(run: Run) -> Value:
    beside = getattr(run.case.spec, "checkpointing", None)
    return beside.interval_s if beside else None


CASE: dict[str, Callable[[Run], Value]] = {
    "read_ratio": _of_load("read_ratio"),
    "update_ratio": _of_load("update_ratio"),
    "key_space": _of_load("key_space"),
    "distribution": _of_load("distribution"),
    "key_type": _of_load("key_type"),
    "value_size_bytes": _of_load("value_size"),
    "batch_rows": _of_load("batch"),
    "begin": _of_load("begin"),
    "checkpointer": _beside(lambda beside: beside.mode),
    "checkpoint_interval_s": _interval_s,
    "pinned_readers": _beside(lambda beside: int(beside.pinned_reader)),
}

TRIAL: dict[str, Callable[[Trial], Value]] = {
    "checkpoints": lambda trial: total(trial, CHECKPOINTS),
    "busy_checkpoints": lambda trial: total(trial, BUSY_CHECKPOINTS),
    "stuck_checkpoints_in_a_row": lambda trial: most(trial, STUCK_CHECKPOINTS),
    "checkpoints_ns": lambda trial: total(trial, CHECKPOINT_TIME),
    "longest_checkpoint_ns": lambda trial: most(trial, LONGEST_CHECKPOINT),
    "largest_wal_bytes": lambda trial: most(trial, LARGEST_WAL),
}
