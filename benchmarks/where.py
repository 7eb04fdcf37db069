"""Cost of `--where`, by processor time for each operation.

    python -m benchmarks where

Two processes, with and without the recording, each with a separate database, run their loop in slices by
turns (ABBA), within milliseconds. Other load on the machine hardly affects processor time. Target: at most
1 % more.
"""

from __future__ import annotations

import gc
import time
from array import array
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.bench import LOADS, Bench
from benchmarks.document import AT_MOST, Comparison, Plan, Row, grid, measure, ratios
from benchmarks.loops import LoopFailure
from sqlstress.engine.loop import FOREVER_NS, Window, work_through
from sqlstress.experiment import experiment_of
from sqlstress.experiments.kv.spec import LOOPS, Load
from sqlstress.report.case import Case, Settings
from sqlstress.targets import open_place

TITLE = "what telling where the time goes costs"
TARGET = 1.01
SYNCHRONOUS = ("normal", "full")
LOADS_MEASURED = ("get-only", "replace-only")
SLICES_EACH = 20
"""Slices of each arm in a repeat."""
SLICE_S = 0.05
"""Approximate length of a slice, in seconds."""
PATIENCE_S = 120.0


def plan(bench: Bench) -> Plan:
    """List the drivers, loads and levels of synchronous."""
    notes = (
        "One process, WAL, 100,000 keys, each loop with its proof. Processor time for each operation, "
        f"in slices of about {SLICE_S * 1000:.0f} ms; told over untold, pair by pair.",
    )
    loads = bench.options.loads or LOADS_MEASURED
    cells = grid(driver=bench.options.drivers, loop=LOOPS, load=loads, synchronous=SYNCHRONOUS)
    return Plan(notes, cells, lambda cell: _row(bench, cell))


def _row(bench: Bench, labels: dict[str, str]) -> Row:
    load = Load(read_ratio=LOADS[labels["load"]], loop=labels["loop"])
    case = Case(
        driver=labels["driver"],
        concurrency=1,
        spec=load,
        settings=Settings(synchronous=labels["synchronous"]),
        seed=bench.options.seed,
    )
    cases = {"untold": case, "told": replace(case, spec=replace(load, where=True))}
    with TemporaryDirectory(dir=bench.folder) as own, ExitStack() as stack:
        pools = {}
        for name, arm_case in cases.items():
            (folder := Path(own) / name).mkdir()
            pool = ProcessPoolExecutor(1, get_context("spawn"), _open, (arm_case, folder))
            pools[name] = stack.enter_context(pool)

        def sliced(name: str, operations: int, _: int = 0) -> float:
            return pools[name].submit(_slice, operations).result(PATIENCE_S)

        try:
            operations = max(20, round(SLICE_S * 1e9 / max(sliced(name, 500) for name in pools)))
            arms = {name: partial(sliced, name, operations) for name in pools}
            found = measure(arms, bench.options.repeats * SLICES_EACH)
        except (BrokenExecutor, TimeoutError) as error:
            raise LoopFailure("a process did not do its slice: see its message above") from error
    price = Comparison("told/untold", ratios(found["told"], found["untold"]), TARGET, AT_MOST)
    figures = {f"{name} ns": median(values) for name, values in found.items()}
    return Row(labels, figures, (price,), {f"{name} ns": values for name, values in found.items()})


_sources: list[Any] = []
"""The source of operations of this process, and its recorder of time by cause, or None."""


def _open(case: Case, folder: Path) -> None:
    place, experiment = open_place(case, folder), experiment_of(case)
    work = experiment.open_work(case, place, 1, {})
    work.prepare(lambda: None)
    watch = place.watch(work.trace, 1) if work.trace else None
    _sources[:] = [experiment.worker_half()(case, place, 1, 1, work.shared), watch]
    work.release()
    if watch:
        watch.window(time.perf_counter_ns(), FOREVER_NS)
    gc.collect()
    gc.disable()


def _slice(operations: int) -> float:
    """Run `operations` operations; return the processor time of an operation, in ns."""
    now, used = time.perf_counter_ns(), time.process_time_ns()
    work_through(_sources[0], Window(now, now, FOREVER_NS), operations, array("q", [0]), array("q", [0]))
    return (time.process_time_ns() - used) / operations
