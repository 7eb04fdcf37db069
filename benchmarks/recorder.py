"""Cost of recording failed statements: `python -m benchmarks.recorder [FOLDER]`.

Transactions of Python's sqlite3 on a WAL file, with and without the recorder, in pairs in the order ABBA.
Prints the median ratio of the pairs with the smallest and the largest, for each durability.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from sqlstress.user_work.callers import UserFrames
from sqlstress.user_work.failed_statements import FailedStatements

PAIRS = 10
WINDOW_S = 0.5
ROWS = 1000


def rate(connect: Any, file: Path, synchronous: str, recorder: FailedStatements | None) -> float:
    """Return the transactions per second: a read, an update and a commit."""
    with closing(connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE IF NOT EXISTS t (k INTEGER PRIMARY KEY, n INTEGER)")
        connection.executemany("INSERT OR IGNORE INTO t VALUES (?, 0)", [(key,) for key in range(ROWS)])
        begun, count = perf_counter(), 0
        while perf_counter() - begun < WINDOW_S:
            key = count % ROWS
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("SELECT n FROM t WHERE k = ?", (key,)).fetchone()
            connection.execute("UPDATE t SET n = n + 1 WHERE k = ?", (key,))
            connection.execute("COMMIT")
            if recorder:
                recorder.check_left_open("transfer")
            count += 1
        return count / (perf_counter() - begun)


def main(folder: str = ".") -> None:
    """Measure and print."""
    plain = sqlite3.connect
    recorder = FailedStatements(UserFrames(Path(__file__).parent))
    recorder.install()
    watched = sqlite3.connect
    print("| synchronous | with / without the recorder | pairs |\n|---|--:|--:|")
    with TemporaryDirectory(dir=folder) as place:
        for synchronous in ("full", "normal"):
            ratios = []
            for number in range(PAIRS):
                arms = [(watched, recorder), (plain, None)]
                order = arms if number % 2 else arms[::-1]
                rates = {arm: rate(*order_of(arm, Path(place), synchronous)) for arm in order}
                ratios.append(rates[watched, recorder] / rates[plain, None])
            print(
                f"| {synchronous} | {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}) | {PAIRS} |"
            )


def order_of(arm: tuple[Any, Any], folder: Path, synchronous: str) -> tuple[Any, Path, str, Any]:
    """Return the arguments of `rate` for an arm."""
    connect, recorder = arm
    return connect, folder / f"{synchronous}.db", synchronous, recorder


if __name__ == "__main__":
    main(*sys.argv[1:])
