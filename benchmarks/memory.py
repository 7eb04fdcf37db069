"""memory: memory of a worker, and time from the command to the first measured operation.

    python -m benchmarks memory --concurrency 1,8

Memory is that of the largest worker: sampled from outside, and as the report has it. A worker's share of what
several have is looked at when all are connected and wait for their window, and while they work, with the mean
of all: what it takes more then is SQLite's cache and what it was told of each key. The processes' start
is the report's: from the first one asked for until all are connected. The other time is taken from outside,
without the proof: from starting the command to its end, less the window. It therefore holds the warm-up and
the clean-up, and is never too short.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from benchmarks.bench import Bench
from benchmarks.pairs import measure
from benchmarks.ready import shares
from benchmarks.results import AT_MOST, Comparison, Plan, Row, Task
from benchmarks.tool import ToolCase
from benchmarks.watch import PeakMemory

TITLE = "memory of a worker, and time to the first measured operation"
CONCURRENCY = (1, 8, 64, 256)
READY_S = {64: 0.5, 256: 2.0}
"""Until so many processes are connected, on two cores."""
SHARE_MIB = 5.0
MIB = 1 << 20
SHARE, START = "worker's share when ready MiB", "processes' start s"


def plan(bench: Bench) -> Plan:
    """List the drivers and concurrencies to measure."""
    options = bench.options
    notes = (
        "50/50, WAL, synchronous full. Median (smallest-largest) of the repeats. Memory: the largest "
        "resident set among the workers, pages that they share included; a worker's share: each such page "
        "counted as a part (PSS), when all are connected, and later, while they work, which takes SQLite's "
        "cache and the acknowledgements besides; the mean one's beside the largest. Time: "
        f"command to end less the window, so with the warm-up ({options.warmup_s:g} s) and the clean-up.",
    )
    concurrency = options.concurrency or CONCURRENCY
    return Plan(
        TITLE, notes, tuple(_task(bench, driver, n) for driver in options.drivers for n in concurrency)
    )


def _task(bench: Bench, driver: str, concurrency: int) -> Task:
    labels = {"driver": driver, "N": str(concurrency)}
    case = bench.case(driver, bench.cell("50/50", "full", concurrency))
    return Task(labels, lambda: _row(bench, labels, case))


def _row(bench: Bench, labels: dict[str, str], case: ToolCase) -> Row:
    arms = {
        "ready": lambda index: _ready(bench, case, index),
        "memory": lambda index: _watched(bench, case, index),
        "start": lambda index: _started(bench, replace(case, verify="none"), index),
    }
    found = measure(arms, bench.options.repeats)
    values = {name: [seen[name] for seen in rounds] for rounds in found.values() for name in rounds[0]}
    start_s = READY_S.get(case.concurrency)
    targets = {START: start_s, SHARE: SHARE_MIB if start_s else None}
    comparisons = tuple(
        Comparison(name, tuple(by_round), targets.get(name), AT_MOST) for name, by_round in values.items()
    )
    return Row(labels, {}, comparisons, values)


def _ready(bench: Bench, case: ToolCase, index: int) -> dict[str, float]:
    found = shares(case, bench.seed(index), bench.folder)
    return {SHARE: max(found) / MIB, "mean share when ready MiB": fmean(found) / MIB}


def _watched(bench: Bench, case: ToolCase, index: int) -> dict[str, float]:
    memory = PeakMemory()
    outcome = bench.tool.kv(case.arguments(bench.seed(index)), memory)
    told = [worker.peak_memory_bytes or 0 for worker in outcome.trial.workers]
    return {
        "worker MiB": max(memory.workers.values()) / MIB,
        "worker's share at work MiB": max(memory.shares.values()) / MIB,
        "mean share at work MiB": fmean(memory.shares.values()) / MIB,
        "worker MiB, as reported": max(told) / MIB,
        "parent MiB": memory.parent / MIB,
    }


def _started(bench: Bench, case: ToolCase, index: int) -> dict[str, float]:
    outcome = bench.tool.measure(case, bench.seed(index))
    return {
        START: outcome.trial.start_s or 0.0,
        "to first operation s": outcome.wall_s - case.duration_s,
    }
