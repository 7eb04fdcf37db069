"""limit: both loops of sqlstress against a C loop on the driver's own SQLite library.

    python -m benchmarks limit
    python -m benchmarks limit --driver apsw --load replace-only --synchronous normal --concurrency 1,8

The C loop (climit.c) does the same work with the same settings and the same number of processes: for
`sqlite3` a program linked to the library of Python's sqlite3, for `apsw` an extension that runs inside
APSW's own SQLite. `native` and `python` are the loops of sqlstress, acknowledgements and checks included;
`bare` is the plainest Python loop. All processes of a cell are there at once, on one database, and work in
turns, slice by slice, milliseconds apart: so what else happens on the machine meets all arms alike. The
processor time of an operation is what such noise hardly touches. Each repeat has processes and a database of
its own: what memory a process was given stays with it, and gets differ by several per cent for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from statistics import median

from benchmarks.bench import LOADS, Bench
from benchmarks.climit_build import Unavailable, build_extension, build_program
from benchmarks.loops import Cell, Crew, Sample, database, python_worker
from benchmarks.pairs import measure, ratios
from benchmarks.results import Comparison, Plan, Row, Task

TITLE = "throughput against a C loop on the same SQLite library"
CONCURRENCY = (1, 2, 4, 8)
SYNCHRONOUS = ("full", "normal")
ARMS = ("native", "python")
EVERY_ARM = (*ARMS, "bare")
TARGET = 0.95
"""What the native loop is to reach of the C loop's throughput, in every cell; and the inverse of it in
processor time for an operation."""
SEEDS = 16
"""Between the seeds of two arms: more than there are processes."""
SLICES = 4
"""Slices of each arm for a repeat: there and back, twice."""


def plan(bench: Bench) -> Plan:
    """List the cells that can be measured here, and say why others cannot."""
    options = bench.options
    notes = [
        "TPS and processor time for an operation: medians. Ratios: median of the pairs (smallest-largest). "
        "cpu: the C loop's processor time for an operation over this one's; it is what the target is set for "
        "where the machine is noisy."
    ]
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
    return Task(labels, lambda: _row(labels, _measured(bench, _commands(bench, command, driver), cell)))


def _commands(bench: Bench, command: list[str], driver: str) -> dict[str, list[str]]:
    """Return what starts a worker of each arm."""
    chosen = bench.options.arms or ARMS
    own = {name: python_worker(f"{name}:{driver}") for name in ARMS}
    every = {"C": command, **own, "bare": python_worker(driver)}
    return {name: words for name, words in every.items() if name == "C" or name in chosen}


def _measured(bench: Bench, commands: dict[str, list[str]], cell: Cell) -> dict[str, list[Sample]]:
    """Measure all arms in turns, repeat by repeat."""
    found: dict[str, list[Sample]] = {name: [] for name in commands}
    for repeat in range(bench.options.repeats):
        for name, samples in _repeated(bench, commands, cell, repeat).items():
            found[name] += samples
    return found


def _repeated(
    bench: Bench, commands: dict[str, list[str]], cell: Cell, repeat: int
) -> dict[str, list[Sample]]:
    """Measure all arms with processes of their own, on one database."""
    with database(cell, bench.folder) as path, ExitStack() as stack:
        crews = {
            name: stack.enter_context(Crew(words, cell, path, bench.seed(repeat) + place * SEEDS))
            for place, (name, words) in enumerate(commands.items())
        }
        for crew in crews.values():
            crew.sample()  # fills its caches; the first statements are prepared
        arms = {name: partial(_sample, crew) for name, crew in crews.items()}
        return measure(arms, SLICES)


def _sample(crew: Crew, index: int) -> Sample:
    return crew.sample()


def _row(labels: dict[str, str], found: dict[str, list[Sample]]) -> Row:
    tps = {name: [sample.tps for sample in samples] for name, samples in found.items()}
    cpu = {name: [sample.cpu_ns or 0.0 for sample in samples] for name, samples in found.items()}
    jain = {name: [sample.jain or 0.0 for sample in samples] for name, samples in found.items()}
    comparisons = []
    for name in (name for name in tps if name != "C"):
        target = TARGET if name == "native" else None
        comparisons.append(Comparison(f"{name}/C", tuple(ratios(tps[name], tps["C"])), None))
        comparisons.append(Comparison(f"{name}/C cpu", tuple(ratios(cpu["C"], cpu[name])), target))
    figures = {f"{name} TPS": median(values) for name, values in tps.items()}
    figures |= {f"{name} µs": median(values) / 1000 for name, values in cpu.items()}
    samples = {
        f"{name} {what}": values for what, own in _KEPT.items() for name, values in own(tps, cpu, jain)
    }
    return Row(labels, figures, tuple(comparisons), samples)


_KEPT: dict[str, Callable[..., Iterable[tuple[str, list[float]]]]] = {
    "TPS": lambda tps, cpu, jain: tps.items(),
    "cpu ns": lambda tps, cpu, jain: cpu.items(),
    "Jain": lambda tps, cpu, jain: jain.items(),
}
