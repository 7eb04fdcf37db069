"""N processes open a new file at once: with the wrong code some are refused, with the right code none.

python examples/recipes/new_file.py
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.synchronize import Barrier
from pathlib import Path

PROCESSES, ROUNDS = 8, 5
TABLE = "CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, text TEXT)"


def wrong(path: str) -> None:
    """Migrate, then switch to WAL: SQLite refuses at once while another process writes."""
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(TABLE)
        connection.execute("INSERT INTO entry (text) VALUES ('started')")
        time.sleep(0.005)  # the rest of a migration
        connection.execute("COMMIT")
        time.sleep(0.005)  # the rest of a start
        connection.execute("PRAGMA journal_mode = WAL")


def right(path: str) -> None:
    """Do it while no other process does: a transaction on a second file is a lock that waits."""
    with closing(sqlite3.connect(f"{path}.lock", timeout=60, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        wrong(path)
        lock.execute("COMMIT")


def open_together(opening: Callable[[str], None], path: str, barrier: Barrier) -> None:
    """Exit with 1 if the file can't be opened."""
    barrier.wait()
    try:
        opening(path)
    except sqlite3.OperationalError:
        sys.exit(1)


def refused(opening: Callable[[str], None], folder: str) -> int:
    """Return the number of refused processes, in all rounds."""
    found = 0
    for number in range(ROUNDS):
        barrier = multiprocessing.Barrier(PROCESSES)
        path = str(Path(folder) / f"{opening.__name__}-{number}.db")
        started = [
            multiprocessing.Process(target=open_together, args=(opening, path, barrier))
            for _ in range(PROCESSES)
        ]
        for process in started:
            process.start()
        for process in started:
            process.join()
        found += sum(process.exitcode != 0 for process in started)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for opening in (wrong, right):
            print(f"{opening.__name__}: {refused(opening, folder)} of {PROCESSES * ROUNDS} were refused")


if __name__ == "__main__":
    main()
