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
from pathlib import Path
from statistics import fmean

import psutil

from benchmarks.bench import Bench, ToolCase, ToolFailure
from benchmarks.document import AT_MOST, Comparison, Plan, Row, grid, measure
from benchmarks.watch import Watch, largest_shares, taken
from sqlstress.engine import pool as preload
from sqlstress.engine.folder import RunFolder
from sqlstress.engine.pool import Pool
from sqlstress.engine.trial import READY_EACH_S, READY_S
from sqlstress.experiment import face_of
from sqlstress.plan import cases_of
from sqlstress.report.case import Case
from sqlstress.system.processes import starting
from sqlstress.targets import open_place

TITLE = "memory of a worker, and time to the first measured operation"
CONCURRENCY = (1, 8, 64, 256)
READY_WITHIN_S = {64: 0.5, 256: 2.0}
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
    cells = grid(driver=options.drivers, N=options.concurrency or CONCURRENCY)
    return Plan(notes, cells, lambda cell: _row(bench, cell))


def _row(bench: Bench, labels: dict[str, str]) -> Row:
    case = bench.case(labels["driver"], bench.cell("50/50", "full", int(labels["N"])))
    arms = {
        "ready": lambda index: _ready(case, bench.seed(index), bench.folder),
        "memory": lambda index: _watched(bench, case, index),
        "start": lambda index: _started(bench, replace(case, verify="none"), index),
    }
    found = measure(arms, bench.options.repeats)
    values = {name: [seen[name] for seen in rounds] for rounds in found.values() for name in rounds[0]}
    start_s = READY_WITHIN_S.get(case.concurrency)
    targets = {START: start_s, SHARE: SHARE_MIB if start_s else None}
    comparisons = tuple(
        Comparison(name, tuple(by_round), targets.get(name), AT_MOST) for name, by_round in values.items()
    )
    return Row(labels, {}, comparisons, values)


def _ready(case: ToolCase, seed: int, directory: Path) -> dict[str, float]:
    """Start a case's workers as a measurement does, and look when all are ready. Raises ToolFailure."""
    (planned,) = cases_of(case.options(seed), "kv")
    found = _shares_when_ready(planned, directory)
    return {SHARE: max(found) / MIB, "mean share when ready MiB": fmean(found) / MIB}


def _shares_when_ready(case: Case, directory: Path) -> list[int]:
    def nobody_stops() -> None:
        """Go on."""

    with RunFolder(directory, keep=False) as folder, starting(preload.modules([case])) as starter:
        place = open_place(case, folder.path)
        work = face_of(case).open_work(case, place, 1, {})
        work.prepare(nobody_stops)
        try:
            with Pool(case, place, 1, work.shared, work.companions, starter=starter) as pool:
                pool.start(nobody_stops)
                pool.call()
                if failed := pool.wait_ready(READY_S + READY_EACH_S * case.concurrency, nobody_stops):
                    raise ToolFailure(f"a worker could not start: {failed[0].reason}")
                return [taken(psutil.Process(pid), shares=True).share for pid in pool.process_ids()]
        finally:
            work.discard()


def _watched(bench: Bench, case: ToolCase, index: int) -> dict[str, float]:
    watch = Watch(0.1, shares=True)
    outcome = bench.tool.kv(case.options(bench.seed(index)), watch.watching)
    told = [worker.peak_memory_bytes or 0 for worker in outcome.trial.workers]
    shares = largest_shares(watch.moments)
    return {
        "worker MiB": max(one.memory for at in watch.moments for one in at.workers.values()) / MIB,
        "worker's share at work MiB": max(shares) / MIB,
        "mean share at work MiB": fmean(shares) / MIB,
        "worker MiB, as reported": max(told) / MIB,
        "parent MiB": max(moment.parent.memory for moment in watch.moments) / MIB,
    }


def _started(bench: Bench, case: ToolCase, index: int) -> dict[str, float]:
    outcome = bench.tool.measure(case, bench.seed(index))
    return {
        START: outcome.trial.start_s or 0.0,
        "to first operation s": outcome.wall_s - case.duration_s,
    }
