"""limit: both loops of sqlstress against a C loop on the driver's own SQLite library.

    python -m benchmarks limit
    python -m benchmarks limit --driver apsw --load replace-only --synchronous normal --concurrency 1,8

The C loop (climit.c) does the same work with the same settings and the same number of processes: for
`sqlite3` a program linked to the library of Python's sqlite3, for `apsw` an extension that runs inside
APSW's own SQLite. `native` and `python` are the loops of sqlstress, acknowledgements and checks included;
`bare` is the plainest Python loop. All processes of a cell exist at the same time, on one database, and
work in turns of slices of milliseconds, so that other load on the machine affects all arms equally. Such
noise hardly affects the processor time of an operation. Each repeat has new processes and a new database,
because the speed of gets depends on a process's memory, by several per cent.
"""

from __future__ import annotations

from contextlib import ExitStack
from statistics import median

from benchmarks.bench import LOADS, Bench
from benchmarks.climit_build import Unavailable, build_extension, build_program
from benchmarks.document import Comparison, Plan, Row, grid, measure, ratios
from benchmarks.loops import Crew, Sample, database, python_worker

TITLE = "throughput against a C loop on the same SQLite library"
CONCURRENCY = (1, 2, 4, 8)
SYNCHRONOUS = ("full", "normal")
ARMS = ("native", "python")
EVERY_ARM = (*ARMS, "bare")
TARGET = 0.95
"""Target of the native loop's throughput as a share of the C loop's, in every cell. The target of the
processor time for an operation is its inverse."""
SEEDS = 16
"""Distance between the seeds of two arms; more than the number of processes."""
SLICES = 4
"""Slices of each arm in a repeat: forwards and backwards, twice."""


def plan(bench: Bench) -> Plan:
    """List the cells that can be measured here, and say why others cannot."""
    options = bench.options
    notes = [
        "TPS and processor time for an operation: medians. Ratios: median of the pairs (smallest-largest). "
        "cpu: the C loop's processor time for an operation over this one's; it is what the target is set for "
        "where the machine is noisy."
    ]
    commands: dict[str, list[str]] = {}
    for driver in options.drivers:
        try:
            commands[driver], library = _c_command(driver, bench)
        except Unavailable as why:
            notes.append(f"{driver} is left out: {why}.")
        else:
            notes.append(f"C for {driver}: {library}.")
    cells = grid(
        driver=commands,
        synchronous=options.synchronous or SYNCHRONOUS,
        load=options.loads or LOADS,
        N=options.concurrency or CONCURRENCY,
    )
    return Plan(tuple(notes), cells, lambda cell: _row(bench, commands[cell["driver"]], cell))


def _c_command(driver: str, bench: Bench) -> tuple[list[str], str]:
    if driver == "sqlite3":
        program, library = build_program(bench.folder)
        return [str(program)], library
    try:
        import apsw
    except ImportError as error:
        raise Unavailable("apsw is not installed") from error
    if "OMIT_LOAD_EXTENSION" in apsw.compile_options:
        raise Unavailable("this apsw loads no extensions")
    library = f"the loop runs inside APSW's own SQLite {apsw.sqlite_lib_version()}"
    return python_worker(str(build_extension(bench.folder))), library


def _row(bench: Bench, c_command: list[str], labels: dict[str, str]) -> Row:
    driver, cell = labels["driver"], bench.cell(labels["load"], labels["synchronous"], int(labels["N"]))
    ours = {**{name: python_worker(f"{name}:{driver}") for name in ARMS}, "bare": python_worker(driver)}
    commands = {"C": c_command, **{name: ours[name] for name in bench.options.arms or ARMS}}
    found: dict[str, list[Sample]] = {name: [] for name in commands}
    for repeat in range(bench.options.repeats):
        with database(bench.folder, cell.key_space) as path, ExitStack() as stack:
            crews = {
                name: stack.enter_context(Crew(words, cell, path, bench.seed(repeat) + place * SEEDS))
                for place, (name, words) in enumerate(commands.items())
            }
            for crew in crews.values():
                crew.sample()  # fills its caches; the first statements are prepared
            arms = {name: lambda _, crew=crew: crew.sample() for name, crew in crews.items()}
            for name, samples in measure(arms, SLICES).items():
                found[name] += samples
    return _comparison_row(labels, found)


def _comparison_row(labels: dict[str, str], found: dict[str, list[Sample]]) -> Row:
    tps = {name: [sample.tps for sample in samples] for name, samples in found.items()}
    cpu = {name: [sample.cpu_ns for sample in samples] for name, samples in found.items()}
    comparisons = []
    for name in (name for name in tps if name != "C"):
        target = TARGET if name == "native" else None
        comparisons.append(Comparison(f"{name}/C", ratios(tps[name], tps["C"])))
        comparisons.append(Comparison(f"{name}/C cpu", ratios(cpu["C"], cpu[name]), target))
    figures = {f"{name} TPS": median(values) for name, values in tps.items()}
    figures |= {f"{name} µs": median(values) / 1000 for name, values in cpu.items()}
    samples = {f"{name} TPS": values for name, values in tps.items()}
    samples |= {f"{name} cpu ns": values for name, values in cpu.items()}
    samples |= {f"{name} Jain": [sample.jain for sample in its] for name, its in found.items()}
    return Row(labels, figures, tuple(comparisons), samples)
