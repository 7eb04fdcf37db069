"""One worker process: the C loop inside APSW's SQLite, or the plainest Python loop of a driver.

python -m benchmarks.loop_worker KIND PATH READ_RATIO KEY_SPACE SYNCHRONOUS WARMUP_NS DURATION_NS SEED

KIND is `sqlite3` or `apsw` for the Python loop, or the path of the C loop's extension. It says
"ready", reads the common start from its standard input and writes the number of operations that
were completed inside the window: as the stand-alone build of climit.c does.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

GET = "SELECT value FROM kv WHERE key = ?"
REPLACE = "REPLACE INTO kv (key, value) VALUES (?, ?)"
BUSY_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Load:
    """What to do; times in nanoseconds of perf_counter_ns."""

    path: str
    read_ratio: float
    key_space: int
    synchronous: str
    warmup_ns: int
    duration_ns: int
    seed: int


Operations = tuple[Callable[[int], Any], Callable[[int, int], Any]]


def stdlib_operations(load: Load) -> Operations:
    """Return get and replace through the standard library."""
    import sqlite3

    connection = sqlite3.connect(load.path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute(f"PRAGMA synchronous={load.synchronous}")
    execute = connection.cursor().execute
    return (lambda key: execute(GET, (key,)).fetchone()), (lambda key, value: execute(REPLACE, (key, value)))


def apsw_operations(load: Load) -> Operations:
    """Return get and replace through APSW."""
    import apsw

    connection = apsw.Connection(load.path)
    connection.set_busy_timeout(BUSY_TIMEOUT_S * 1000)
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute(f"PRAGMA synchronous={load.synchronous}")
    execute = connection.cursor().execute
    return (lambda key: execute(GET, (key,)).get), (lambda key, value: execute(REPLACE, (key, value)))


def bare_loop(operations: Operations, load: Load, t0: int) -> int:
    """Run the plainest loop and return the operations completed inside the window."""
    get, replace = operations
    begin = t0 + load.warmup_ns
    end = begin + load.duration_ns
    draw, clock = random.Random(load.seed).random, time.perf_counter_ns
    value = (1 << 60) | (load.seed & 0x3FFFF) << 40
    read_ratio, key_space, done = load.read_ratio, load.key_space, 0
    if clock() >= begin:
        raise SystemExit("late: the window was open before the loop began")
    wait_until(t0)
    while True:
        key = int(draw() * key_space)
        if draw() < read_ratio:
            get(key)
        else:
            value += 1
            replace(key, value)
        now = clock()
        if now >= end:
            return done
        if now >= begin:
            done += 1


def wait_until(moment: int) -> None:
    """Sleep until 2 ms before a moment, then poll."""
    time.sleep(max(0, moment - 2_000_000 - time.perf_counter_ns()) / 1e9)
    while time.perf_counter_ns() < moment:
        pass


def c_loop(extension: str, load: Load) -> Callable[[int], int]:
    """Load the extension and return a function of t0 that runs the C loop in APSW's SQLite."""
    import apsw

    connection = apsw.Connection(":memory:")
    connection.enable_load_extension(True)
    connection.load_extension(extension)
    sql = "SELECT climit(?, ?, ?, ?, ?, ?, ?, ?)"

    def run(t0: int) -> int:
        before = (load.path, load.read_ratio, load.key_space, load.synchronous)
        return int(connection.execute(sql, (*before, t0, load.warmup_ns, load.duration_ns, load.seed)).get)

    return run


def prepare(kind: str, load: Load) -> Callable[[int], int]:
    """Open what the loop needs and return the loop, a function of t0."""
    if kind not in ("sqlite3", "apsw"):
        return c_loop(kind, load)
    operations = stdlib_operations(load) if kind == "sqlite3" else apsw_operations(load)
    return lambda t0: bare_loop(operations, load, t0)


def main(arguments: list[str]) -> None:
    """Carry out the protocol."""
    kind, path, read_ratio, key_space, synchronous, *numbers = arguments
    load = Load(path, float(read_ratio), int(key_space), synchronous, *map(int, numbers))
    loop = prepare(kind, load)
    print("ready", flush=True)
    print(loop(int(sys.stdin.readline())))


if __name__ == "__main__":
    main(sys.argv[1:])
