"""where: what `--where` costs, by processor time for each operation.

    python -m benchmarks where

Two processes, one that tells where its time goes and one that does not, each with a database of its own,
run their loop in slices by turns, milliseconds apart: ABBA. Processor time is hardly touched by what
else the machine does. Target: at most 1 % more.
"""

from __future__ import annotations

import gc
import time
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.bench import LOADS, Bench
from benchmarks.loops import LoopFailure
from benchmarks.pairs import measure, ratios
from benchmarks.results import AT_MOST, Comparison, Plan, Row, Task
from sqlstress.engine.loop import FOREVER_NS, Window, work_through
from sqlstress.experiment import face_of
from sqlstress.experiments.kv.experiment import LOOPS, Load
from sqlstress.report.case import Case, Settings
from sqlstress.system.importing import named
from sqlstress.system.processes import start
from sqlstress.targets import open_place

TITLE = "what telling where the time goes costs"
TARGET = 1.01
SYNCHRONOUS = ("normal", "full")
LOADS_MEASURED = ("get-only", "replace-only")
SLICES_EACH = 20
"""Slices of each arm for every repeat that is asked for."""
SLICE_S = 0.05
"""About so long is a slice."""
PATIENCE_S = 120.0


def plan(bench: Bench) -> Plan:
    """List the drivers, loads and levels of synchronous."""
    notes = (
        "One process, WAL, 100,000 keys, each loop with its proof. Processor time for each operation, "
        f"in slices of about {SLICE_S * 1000:.0f} ms; told over untold, pair by pair.",
    )
    tasks = (
        Task(labels, lambda labels=labels: _row(bench, labels))  # type: ignore[misc]
        for driver in bench.options.drivers
        for loop in LOOPS
        for load in bench.options.loads or LOADS_MEASURED
        for synchronous in SYNCHRONOUS
        if (labels := {"driver": driver, "loop": loop, "load": load, "synchronous": synchronous})
    )
    return Plan(TITLE, notes, tuple(tasks))


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
        pipes = {name: stack.enter_context(_working(one, Path(own) / name)) for name, one in cases.items()}
        first = [_heard(pipe) for pipe in pipes.values()]
        operations = max(20, round(SLICE_S * 1e9 / max(first)))
        arms = {name: lambda _index, pipe=pipe: _slice(pipe, operations) for name, pipe in pipes.items()}
        found = measure(arms, bench.options.repeats * SLICES_EACH)
    price = Comparison("told/untold", tuple(ratios(found["told"], found["untold"])), TARGET, AT_MOST)
    figures = {f"{name} ns": median(values) for name, values in found.items()}
    return Row(labels, figures, (price,), {f"{name} ns": values for name, values in found.items()})


@contextmanager
def _working(case: Case, folder: Path) -> Iterator[Any]:
    """Start a process, and yield the pipe to it: it first says what an operation takes it, in ns."""
    folder.mkdir()
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(case, folder, theirs), daemon=True)
    start(process)
    theirs.close()
    try:
        yield ours
    finally:
        process.kill()
        process.join()


def _slice(pipe: Any, operations: int) -> float:
    pipe.send(operations)
    return float(_heard(pipe))


def _heard(pipe: Any) -> float:
    try:
        if pipe.poll(PATIENCE_S):
            return float(pipe.recv())
    except EOFError:
        pass
    raise LoopFailure("a process did not do its slice: see its message above")


def _work(case: Case, folder: Path, pipe: Any) -> None:
    """Run slices of so many operations as they are asked for; say the processor time of one, in ns."""
    place, experiment = open_place(case, folder), face_of(case)
    work = experiment.open_work(case, place, 1, {})
    work.prepare(lambda: None)
    watch = place.watch(work.trace, 1) if work.trace else None
    source = named(experiment.worker)(case, place, 1, 1, work.shared)
    work.connected()
    if watch:
        now = time.perf_counter_ns()
        watch.window(now, FOREVER_NS)
    gc.collect()
    gc.disable()
    operations = 500
    while True:
        now, used = time.perf_counter_ns(), time.process_time_ns()
        work_through(source, Window(now, now, FOREVER_NS), operations, array("q", [0]), array("q", [0]))
        pipe.send((time.process_time_ns() - used) / operations)
        operations = pipe.recv()
