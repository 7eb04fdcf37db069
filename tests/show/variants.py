"""Reports that differ from the example in one thing each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from sqlstress.experiment import case_label
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report import Check, Environment, FileSystem, Host, Latency, Report, Run, Trial, Verdict
from sqlstress.report.case import Settings
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINT_TIME,
    CHECKPOINTS,
    LARGEST_WAL,
    LONGEST_CHECKPOINT,
    STUCK_CHECKPOINTS,
    WAL_SIZE,
    Series,
)
from sqlstress.statistics.units import NS_PER_S
from tests.example_report import example_report, failed_report

EXAMPLE = example_report()
UNKNOWN = Environment(
    Host("Darwin", "", "", "", None, None, "", None), FileSystem("", "", ""), builds=(), sync=None
)
"""Surroundings of which the system is known and nothing else."""
TRIAL = EXAMPLE.runs[0].trials[0]


def each_run(change: Callable[[Run], Run], report: Report = EXAMPLE) -> Report:
    """Return the report with every run changed."""
    return replace(report, runs=tuple(map(change, report.runs)))


def each_trial(change: Callable[[Trial], Trial], report: Report = EXAMPLE) -> Report:
    """Return the report with every trial changed."""
    return each_run(lambda run: replace(run, trials=tuple(map(change, run.trials))), report)


def with_case(report: Report = EXAMPLE, **fields: Any) -> Report:
    """Return the report with fields of every case changed."""
    return each_run(lambda run: replace(run, case=replace(run.case, **fields)), report)


def with_one(run: Run) -> Report:
    """Return the report with its first run replaced."""
    return replace(EXAMPLE, runs=(run, *EXAMPLE.runs[1:]))


def passes_report() -> Report:
    """Return five passes, noisy at eight processes, where others took a core and operations were given up."""

    def passes(run: Run) -> Run:
        draw, crowded = Random(f"{case_label(run.case)}"), run.case.concurrency == 8
        trials = tuple(
            replace(
                run.trials[0],
                index=index,
                tps=run.trials[0].tps * math.exp(draw.gauss(0, 0.3 if crowded else 0.03)),
                failed=900 if crowded and run.case.buckets == 1 else 0,
                foreign_share=0.25 + index / 50 if crowded else 0.02,
            )
            for index in range(5)
        )
        return replace(run, case=replace(run.case, repeat=5), trials=trials)

    return each_run(passes)


def classic_report() -> Report:
    """Return a sweep of the published script: a fixed count of pairs, no harness cost."""
    fixed = with_case(workload="classic", ops=5000, settings=Settings(synchronous=None))

    def whole_script(run: Run) -> Run:
        processes = run.case.concurrency
        seconds = 5000 * processes / run.trials[0].tps
        trial = replace(run.trials[0], seconds=seconds, transactions=5000 * processes, half_ratio=None)
        return replace(run, trials=(trial,), harness_ns=None, warnings=())

    return each_run(whole_script, fixed)


def troubled_report() -> Report:
    """Return a case not measured, one undecided, one proved in part, and an interruption."""
    one, two, three, four = EXAMPLE.runs[:4]
    died = replace(two, trials=(), error="worker 2 was killed (signal 9)")
    unknown = _judged(three, Check("last write", "unknown", note="worker 3 died in the middle of a write"))
    partial = _judged(four, Check("last write", "ok", 9_000, note="12% of the keys were tracked"))
    return replace(EXAMPLE, runs=(one, died, unknown, partial), planned=8, interrupted=True)


def _judged(run: Run, check: Check) -> Run:
    return replace(run, trials=(replace(run.trials[0], verdict=Verdict((check,))),))


def update_report() -> Report:
    """Return three trials of each case, with batches and deferred updates: the table's widest."""
    load = Load(read_ratio=0.3, update_ratio=0.1, batch=10, begin="deferred")

    def repeated(run: Run) -> Run:
        trial = run.trials[0]
        changed = replace(
            trial,
            latency={**trial.latency, "update": trial.latency["replace"]},
            rows=5 * trial.rows,
            rows_per_s=5 * trial.rows_per_s,
            busy_snapshot=120 * run.case.concurrency,
        )
        factors = (1.0, 0.97, 1.04)
        trials = tuple(replace(changed, index=i, tps=factor * trial.tps) for i, factor in enumerate(factors))
        return replace(run, trials=trials, warnings=())

    return each_run(repeated, with_case(repeat=3, spec=load, settings=Settings(page_size=4096)))


def beside_report() -> Report:
    """Return PASSIVE checkpoints beside the load, and a reader that holds them up from the middle on."""
    settings = Settings(synchronous="normal", wal_autocheckpoint=0)
    asked = Checkpointing("passive", 0.1, pinned_reader=True)
    report = with_case(
        replace(EXAMPLE, runs=EXAMPLE.runs[:4]), settings=settings, spec=Load(checkpointing=asked), buckets=1
    )
    return each_run(lambda run: replace(run, trials=(_watched(run),), warnings=()), report)


def _watched(run: Run) -> Trial:
    """Return a run's trial with a look at the WAL and a checkpoint in each tenth of a second."""
    times = tuple(range(0, 2 * NS_PER_S, NS_PER_S // 10))
    half, each_bytes = len(times) // 2, 4_000_000 * run.case.concurrency
    sizes = [each_bytes] * half + [each_bytes * (2 + place) for place in range(half)]
    took = [9_000_000] * half + [200_000] * half
    figures = {
        CHECKPOINTS: ("checkpoints", [1] * len(times)),
        BUSY_CHECKPOINTS: ("checkpoints", [0] * len(times)),
        STUCK_CHECKPOINTS: ("checkpoints", [0] * half + list(range(1, half + 1))),
        CHECKPOINT_TIME: ("ns", took),
        LONGEST_CHECKPOINT: ("ns", took),
        WAL_SIZE: ("bytes", sizes),
        LARGEST_WAL: ("bytes", sizes),
    }
    return replace(
        run.trials[0],
        series=tuple(Series(name, unit, tuple(values), times) for name, (unit, values) in figures.items()),
        effective={**run.trials[0].effective, "synchronous": "normal", "wal_autocheckpoint": "0"},
        half_ratio=None,
    )


def widest_report() -> Report:
    """Return figures as large as the table must hold."""

    def large(latency: Latency) -> Latency:
        return replace(latency, p50_ns=6e10, p99_ns=6e10)

    def huge(trial: Trial) -> Trial:
        latency = {kind: large(found) for kind, found in trial.latency.items()}
        return replace(
            trial, tps=1_234_567.0 * len(trial.workers), longest_wait_ns=60_000_000_000, latency=latency
        )

    report = each_trial(huge, with_case(replace(EXAMPLE, runs=EXAMPLE.runs[:1]), buckets=10_000))
    wrong = Verdict((Check("last write", "failed", 10, 1),))
    return each_trial(lambda trial: replace(trial, verdict=wrong), report)


VARIANTS: dict[str, Callable[[], Report]] = {
    "report": example_report,
    "failed": failed_report,
    "passes": passes_report,
    "classic": classic_report,
    "troubled": troubled_report,
    "updates": update_report,
    "beside": beside_report,
    "widest": widest_report,
}
"""All of them, and the example itself."""
