"""One worker process: the C loop inside APSW's SQLite, the plainest Python loop, or one of sqlstress's own.

python -m benchmarks.loop_worker KIND PATH READ_RATIO KEY_SPACE SYNCHRONOUS WARMUP_NS DURATION_NS SEED

KIND is `sqlite3` or `apsw` for the plainest Python loop, `native:DRIVER` or `python:DRIVER` for those of
sqlstress, or the path of the C loop's extension. It says "ready", and for each common start that it reads
it writes how many operations were completed inside the window, how many in all, and the processor time
that those took, in ns: as the stand-alone build of climit.c does.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from sqlstress.engine.values import Values

GET = "SELECT value FROM kv WHERE key = ?"
REPLACE = "REPLACE INTO kv (key, value) VALUES (?, ?)"
BUSY_TIMEOUT_S = 60
SALT = 0
"""Number of the trial for which sqlstress's own loops take the preloaded values."""
WORKERS = 64
"""Number of consecutive seeds that write distinct values."""

Result = tuple[int, int, int]
"""Operations completed inside the window; all operations; processor time of all operations, in ns."""


@dataclass(frozen=True, slots=True)
class Load:
    """A worker's load; times in nanoseconds."""

    path: str
    read_ratio: float
    key_space: int
    synchronous: str
    warmup_ns: int
    duration_ns: int
    seed: int


Operations = tuple[Callable[[int], Any], Callable[[int, int], Any]]


def operations_of(driver: str, load: Load) -> Operations:
    """Return get and replace through the standard library or APSW."""
    if driver == "sqlite3":
        import sqlite3

        connection: Any = sqlite3.connect(load.path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    else:
        import apsw

        connection = apsw.Connection(load.path)
        connection.set_busy_timeout(BUSY_TIMEOUT_S * 1000)
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute(f"PRAGMA synchronous={load.synchronous}")
    execute = connection.cursor().execute
    replace = lambda key, value: execute(REPLACE, (key, value))  # noqa: E731 - as plain as the other one
    if driver == "sqlite3":
        return (lambda key: execute(GET, (key,)).fetchone()), replace
    return (lambda key: execute(GET, (key,)).get), replace


def bare_loop(operations: Operations, load: Load, values: Iterator[int], t0: int) -> Result:
    """Run the plainest loop, and return what was done."""
    get, replace = operations
    begin = t0 + load.warmup_ns
    end = begin + load.duration_ns
    draw, clock = random.Random(load.seed).random, time.perf_counter_ns
    read_ratio, key_space, counted, done = load.read_ratio, load.key_space, 0, 0
    if clock() >= begin:
        raise SystemExit("late: the window was open before the loop began")
    wait_until(t0)
    cpu_ns = time.process_time_ns()
    while True:
        key = int(draw() * key_space)
        if draw() < read_ratio:
            get(key)
        else:
            replace(key, next(values))
        now = clock()
        done += 1
        if now >= end:
            return counted, done, time.process_time_ns() - cpu_ns
        if now >= begin:
            counted += 1


def wait_until(moment: int) -> None:
    """Sleep until 2 ms before a moment, then poll."""
    time.sleep(max(0, moment - 2_000_000 - time.perf_counter_ns()) / 1e9)
    while time.perf_counter_ns() < moment:
        pass


def own_loop(kind: str, load: Load) -> Callable[[int], Result]:
    """Open a worker of sqlstress, and return a function of t0 that runs its timed loop, proof included."""
    from sqlstress.engine.loop import Window, work_through
    from sqlstress.experiments.kv.acks import shape_of
    from sqlstress.experiments.kv.spec import Load as Spec
    from sqlstress.experiments.kv.worker import open_source
    from sqlstress.report.case import Case, Settings
    from sqlstress.system.sharing import shared_array
    from sqlstress.targets import open_place

    loop, _, driver = kind.partition(":")
    worker = load.seed % WORKERS + 1
    spec = Spec(read_ratio=load.read_ratio, key_space=load.key_space, loop=loop)
    case = Case(driver=driver, settings=Settings(synchronous=load.synchronous), seed=load.seed, spec=spec)
    words = shared_array("q", shape_of(case).words * worker)
    source: Any = open_source(
        case, open_place(case, Path(load.path).parent), worker, SALT, (words, None, None)
    )
    gc.freeze()
    gc.disable()

    def worked(window: Window, progress: Any) -> tuple[Any, int]:
        cpu_ns = time.process_time_ns()
        totals = work_through(source, window, None, progress, array("q", [0]))
        return totals, time.process_time_ns() - cpu_ns

    # What a window costs once is no cost of an operation, however few of them a busy machine lets through.
    once_ns = median(worked(Window(0, 0, 1), array("q", [0]))[1] for _ in range(5))

    def run(t0: int) -> Result:
        opens = t0 + load.warmup_ns
        progress = array("q", [0])
        wait_until(t0)
        totals, cpu_ns = worked(Window(t0, opens, opens + load.duration_ns), progress)
        if found := source.findings().bad_read_examples:
            raise SystemExit(f"a value was read that nobody wrote: {found[0]}")
        return sum(totals.operations.values()), progress[0], max(0, cpu_ns - int(once_ns))

    return run


def c_loop(extension: str, load: Load) -> Callable[[int], Result]:
    """Load the extension and return a function of t0 that runs the C loop in APSW's SQLite."""
    import apsw

    connection = apsw.Connection(":memory:")
    connection.enable_load_extension(True)
    connection.load_extension(extension)
    sql = "SELECT climit(?, ?, ?, ?, ?, ?, ?, ?)"

    before = (load.path, load.read_ratio, load.key_space, load.synchronous)

    def run(t0: int) -> Result:
        said = connection.execute(sql, (*before, t0, load.warmup_ns, load.duration_ns, load.seed)).get
        counted, done, cpu_ns = map(int, said.split())
        return counted, done, cpu_ns

    run(0)
    return run


def prepare(kind: str, load: Load) -> Callable[[int], Result]:
    """Open what the loop needs and return the loop, a function of t0."""
    if kind.startswith(("native:", "python:")):
        return own_loop(kind, load)
    if kind not in ("sqlite3", "apsw"):
        return c_loop(kind, load)
    operations = operations_of(kind, load)
    values = count(Values(SALT, 8).base(load.seed % WORKERS + 1) + 1)
    return lambda t0: bare_loop(operations, load, values, t0)


def main(arguments: list[str]) -> None:
    """Run the worker's protocol: for each start time on standard input, print a result."""
    kind, path, read_ratio, key_space, synchronous, *numbers = arguments
    load = Load(path, float(read_ratio), int(key_space), synchronous, *map(int, numbers))
    loop = prepare(kind, load)
    print("ready", flush=True)
    for line in sys.stdin:
        print(*loop(int(line)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
