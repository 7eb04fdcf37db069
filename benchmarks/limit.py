"""limit: throughput against a C loop on the driver's own SQLite library.

    python -m benchmarks limit
    python -m benchmarks limit --driver apsw --load replace-only --synchronous normal --concurrency 1,8

The C loop (climit.c) does the same work with the same settings and the same number of processes: for
`sqlite3` a program linked to the library of Python's sqlite3, for `apsw` an extension that runs inside
APSW's own SQLite. `bare` is the plainest Python loop: what lies between C and bare is the binding and
the interpreter, what lies between bare and sqlstress is the harness, its proof included.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from benchmarks.bench import LOADS, Bench
from benchmarks.climit_build import Unavailable, build_extension, build_program
from benchmarks.loops import Cell, Sample, python_worker
from benchmarks.pairs import measure, ratios
from benchmarks.results import Comparison, Plan, Row, Task

TITLE = "throughput against a C loop on the same SQLite library"
CONCURRENCY = (1, 2, 4, 8)
SYNCHRONOUS = ("full", "normal")
ARMS = ("bare", "sqlstress")

TARGETS = {
    ("full", "replace-only"): {"apsw": 0.90, "sqlite3": 0.80},
    ("full", "50/50"): {"apsw": 0.90, "sqlite3": 0.80},
    ("normal", "replace-only"): {"apsw": 0.80, "sqlite3": 0.65},
    ("normal", "50/50"): {"apsw": 0.70, "sqlite3": 0.60},
    ("full", "get-only"): {"apsw": 0.50, "sqlite3": 0.42},
    ("normal", "get-only"): {"apsw": 0.50, "sqlite3": 0.42},
}
"""sqlstress's share of the C loop's throughput, at every concurrency."""


def plan(bench: Bench) -> Plan:
    """List the cells that can be measured here, and say why others cannot."""
    options = bench.options
    notes = ["TPS: medians. Ratios: median of the pairs (smallest-largest)."]
    tasks: list[Task] = []
    for driver in options.drivers:
        try:
            command, library = _c_command(driver, bench)
        except Unavailable as why:
            notes.append(f"{driver} is left out: {why}.")
            continue
        notes.append(f"C for {driver}: {library}.")
        for synchronous in options.synchronous or SYNCHRONOUS:
            for load in options.loads or tuple(LOADS):
                for concurrency in options.concurrency or CONCURRENCY:
                    tasks.append(_task(bench, command, driver, load, synchronous, concurrency))
    return Plan(TITLE, tuple(notes), tuple(tasks))


def _c_command(driver: str, bench: Bench) -> tuple[list[str], str]:
    if driver == "sqlite3":
        program = build_program(bench.folder)
        return [str(program.path)], program.library
    try:
        import apsw
    except ImportError as error:
        raise Unavailable("apsw is not installed") from error
    if "OMIT_LOAD_EXTENSION" in apsw.compile_options:
        raise Unavailable("this apsw loads no extensions")
    extension = build_extension(bench.folder)
    return python_worker(
        str(extension)
    ), f"the loop runs inside APSW's own SQLite {apsw.sqlite_lib_version()}"


def _task(
    bench: Bench, command: list[str], driver: str, load: str, synchronous: str, concurrency: int
) -> Task:
    labels = {"driver": driver, "synchronous": synchronous, "load": load, "N": str(concurrency)}
    cell = bench.cell(load, synchronous, concurrency)
    target = TARGETS[synchronous, load][driver]
    return Task(labels, lambda: _row(bench, labels, _arms(bench, command, driver, cell), target))


def _arms(bench: Bench, command: list[str], driver: str, cell: Cell) -> dict[str, Callable[[int], Sample]]:
    chosen = bench.options.arms or ARMS
    arms: dict[str, Callable[[int], Sample]] = {"C": lambda index: bench.loops(command, cell, index)}
    if "bare" in chosen:
        arms["bare"] = lambda index: bench.loops(python_worker(driver), cell, index)
    if "sqlstress" in chosen:
        arms["sqlstress"] = lambda index: (
            bench.tool.measure(bench.case(driver, cell), bench.seed(index)).sample
        )
    return arms


def _row(
    bench: Bench, labels: dict[str, str], arms: dict[str, Callable[[int], Sample]], target: float
) -> Row:
    found = measure(arms, bench.options.repeats)
    tps = {name: [sample.tps for sample in samples] for name, samples in found.items()}
    fairness = {name: [sample.jain or 0.0 for sample in samples] for name, samples in found.items()}
    comparisons = tuple(
        Comparison(f"{name}/C", tuple(ratios(tps[name], tps["C"])), target if name == "sqlstress" else None)
        for name in tps
        if name != "C"
    )
    figures = {f"{name} TPS": median(values) for name, values in tps.items()}
    figures |= {f"{name} Jain": median(fairness[name]) for name in fairness if name != "bare"}
    samples = {f"{name} TPS": values for name, values in tps.items()}
    samples |= {f"{name} Jain": values for name, values in fairness.items()}
    return Row(labels, figures, comparisons, samples)
