"""Cost of recording failed statements: `python -m benchmarks.recorder [FOLDER]`.

Two connections of Python's sqlite3 to a WAL file, with and without the recorder, run transactions in turns;
chance decides which is first. A pair takes a fraction of a millisecond, so the disk is the same for both.
Prints for each durability the median time of a transaction, and the median difference of a pair, with the
range of five parts. The difference of the medians would contain changes of the disk.
"""

from __future__ import annotations

import random
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from sqlstress.recording.call_costs import CallCosts
from sqlstress.recording.callers import UserFrames
from sqlstress.recording.failed_statements import FailedStatements

PAIRS, PARTS = 8000, 5
ROWS = 1000
US = 1e6


def opened(connect: Callable[..., Any], file: Path, synchronous: str) -> Any:
    """Return a connection to a table with rows."""
    connection = connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE IF NOT EXISTS t (k INTEGER PRIMARY KEY, n INTEGER)")
    connection.executemany("INSERT OR IGNORE INTO t VALUES (?, 0)", [(key,) for key in range(ROWS)])
    return connection


def seconds(connection: Any, after_each: Callable[[], None]) -> float:
    """Return the time of a transaction: a read, an update and a commit."""
    key, begun = random.randrange(ROWS), perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("SELECT n FROM t WHERE k = ?", (key,)).fetchone()
    connection.execute("UPDATE t SET n = n + 1 WHERE k = ?", (key,))
    connection.execute("COMMIT")
    after_each()
    return perf_counter() - begun


def after_call(recorder: FailedStatements) -> None:
    """Run the recorder's part of a call of the user's function."""
    recorder.end_call("transfer")
    recorder.costs.begin()


def medians(recorded: Callable[[], float], plain: Callable[[], float]) -> tuple[float, float]:
    """Return medians of PAIRS pairs, in µs: the time without the recorder, and the difference of a pair."""
    times: dict[Callable[[], float], list[float]] = {recorded: [], plain: []}
    for _ in range(PAIRS):
        for call in random.sample((recorded, plain), 2):
            times[call].append(call())
    costs = (with_it - without for with_it, without in zip(times[recorded], times[plain], strict=True))
    return median(times[plain]) * US, median(costs) * US


def measured(
    plain_connect: Callable[..., Any], file: Path, synchronous: str, recorder: FailedStatements
) -> list[tuple[float, float]]:
    """Return the results of `medians` for a database, one for each part."""
    with (
        closing(opened(sqlite3.connect, file, synchronous)) as recorded,
        closing(opened(plain_connect, file, synchronous)) as plain,
    ):
        calls = (
            partial(seconds, recorded, partial(after_call, recorder)),
            partial(seconds, plain, lambda: None),
        )
        return [medians(*calls) for _ in range(PARTS)]


def main(folder: str = ".") -> None:
    """Measure and print."""
    plain_connect = sqlite3.connect
    recorder = FailedStatements(UserFrames(Path(__file__).parent), CallCosts())
    recorder.install()
    print("| synchronous | plain, µs | cost of recording, µs | plain / recorded |\n|---|--:|--:|--:|")
    with TemporaryDirectory(dir=folder) as directory:
        for synchronous in ("full", "normal"):
            parts = measured(plain_connect, Path(directory) / f"{synchronous}.db", synchronous, recorder)
            without, cost = (median(column) for column in zip(*parts, strict=True))
            costs = sorted(cost for _, cost in parts)
            ratios = sorted(without / (without + cost) for without, cost in parts)
            print(
                f"| {synchronous} | {without:.1f} | {cost:.1f} ({costs[0]:.1f} to {costs[-1]:.1f}) | "
                f"{without / (without + cost):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}) |"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
