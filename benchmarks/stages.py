"""profile: where the time of one operation goes, when one process has the store to itself.

    python -m benchmarks profile

The binding's call alone, in a tight loop over prepared parameters, with synchronous=NORMAL; then the
stages of the harness around it, each timed for whole chunks over a store that does nothing. C, the
call and the stages together are what a cell of `limit` with N = 1 is made of.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.bench import LOADS, Bench
from benchmarks.document import Plan, Row, grid
from sqlstress.engine.loop import FOREVER_NS, Tally, Window, closed_loop
from sqlstress.engine.protocols import Source
from sqlstress.experiment import face_of
from sqlstress.experiments.kv.experiment import Load
from sqlstress.report.case import Case, Settings
from sqlstress.system.importing import named
from sqlstress.targets import open_place
from sqlstress.targets.dry import DryPlace

TITLE = "where the time of one operation goes, in one process"
CHUNKS = 300
CALLS = 20_000
STAGES = ("draw ns", "loop and stamp ns", "count ns", "prove ns")
clock = time.perf_counter_ns


def plan(bench: Bench) -> Plan:
    """List the drivers and loads."""
    notes = (
        "Nanoseconds for one operation, the least of many repetitions. The binding's call is that of a "
        "get, a replace, or the mean of both; the stages were timed over a store that does nothing.",
    )
    cells = grid(driver=bench.options.drivers, load=bench.options.loads or LOADS)
    return Plan(notes, cells, lambda cell: _row(bench.folder, cell))


def _row(folder: Path, labels: dict[str, str]) -> Row:
    ratio = LOADS[labels["load"]]
    case = Case(driver=labels["driver"], spec=Load(read_ratio=ratio), settings=Settings(synchronous="normal"))
    gc.collect()
    gc.disable()
    try:
        with TemporaryDirectory(dir=folder) as own:
            call = call_ns(case, Path(own))
        stages = stages_ns(case)
    finally:
        gc.enable()
    figures = {"binding's call ns": call, **dict(zip(STAGES, stages, strict=True)), "harness ns": sum(stages)}
    return Row(labels, figures, (), {name: [value] for name, value in figures.items()})


def call_ns(case: Case, folder: Path) -> float:
    """Return the least time of one call into the store, weighed by the share of gets."""
    place = open_place(case, folder)
    work = face_of(case).open_work(case, place, 1, {})
    work.prepare(lambda: None)
    store = place.keyvalue(1, case.spec.begin, None)
    work.ended()
    try:
        keys = [number * 7919 % case.spec.key_space for number in range(CALLS)]
        ratio: float = case.spec.read_ratio
        get = _least(store.gets[0], [[(key,) for key in keys]] * 5) if ratio else 0.0
        rounds = [[(key, (1 << 62) + place * CALLS + key) for key in keys] for place in range(5)]
        put = _least(store.puts[0], rounds) if ratio < 1 else 0.0
        return ratio * get + (1 - ratio) * put
    finally:
        store.close()
        work.discard()


def _least(call: Callable[[Any], object], rounds: Sequence[Sequence[Any]]) -> float:
    best = float("inf")
    for params in rounds:
        begun = clock()
        for each in params:
            call(each)
        best = min(best, (clock() - begun) / len(params))
    return best


def stages_ns(case: Case) -> list[float]:
    """Return the least time of each stage of the timed loop, for one operation on nothing."""
    nowhere, experiment = DryPlace(case, Path()), face_of(case)
    work = experiment.open_work(case, nowhere, 1, {})
    work.prepare(lambda: None)
    source: Source = named(experiment.worker)(case, nowhere, 1, 1, work.shared)
    run = closed_loop(source)
    size = source.largest_chunk
    tally = Tally(Window(0, 0, FOREVER_NS), source.kinds, source.row_weights)
    best = [float("inf")] * len(STAGES)
    for _ in range(CHUNKS):
        moments = [clock()]
        chunk = source.next_chunk(size)
        assert chunk is not None
        moments.append(clock())
        results, stamps = run(source, chunk, moments[-1], FOREVER_NS, clock)
        moments.append(clock())
        tally.add(chunk.kinds, stamps)
        moments.append(clock())
        source.settle(chunk, len(results), results, stamps)
        moments.append(clock())
        for stage, (begin, end) in enumerate(pairwise(moments)):
            best[stage] = min(best[stage], (end - begin) / size)
    return best
