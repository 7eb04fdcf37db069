"""The published measurement's loop, in our words: the work that `--preset classic` is compared with.

python -m benchmarks.published_loop CONCURRENCY FOLDER

N processes are started with `spawn`. Each draws 5,000 random keys, sets every one with an implicit
BEGIN and a commit, and gets the same keys in another order. The parent looks every 10 ms whether all
have ended, as the published script does. It writes the seconds from the first start to the last end.
This module imports no more than the published script, because every process imports it.
"""

from __future__ import annotations

import multiprocessing
import random
import sqlite3
import sys
import time

PAIRS = 5_000


def run_worker(path: str) -> None:
    """Set and get the keys."""
    keys = [random.randint(0, 1 << 31) for _ in range(PAIRS)]
    connection = sqlite3.connect(path, timeout=60)
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute("CREATE TABLE IF NOT EXISTS kv (key INTEGER PRIMARY KEY, value INTEGER) WITHOUT ROWID")
    connection.commit()
    for key in keys:
        connection.execute("REPLACE INTO kv (key, value) VALUES (?, ?)", (key, key))
        connection.commit()
    random.shuffle(keys)
    for key in keys:
        next(connection.execute("SELECT value FROM kv WHERE key = ?", (key,)))


def create(path: str) -> None:
    """Create the database, as the sweep's first case has done for all that follow.

    Processes that turn one fresh file to WAL mode at the same moment can fail with "database is
    locked" in spite of their time-out.
    """
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute("CREATE TABLE kv (key INTEGER PRIMARY KEY, value INTEGER) WITHOUT ROWID")
    connection.close()


def run(concurrency: int, path: str) -> float:
    """Return the seconds that the processes took, their start included."""
    create(path)
    context = multiprocessing.get_context("spawn")
    begun = time.perf_counter()
    processes = [context.Process(target=run_worker, args=(path,)) for _ in range(concurrency)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        time.sleep(0.01)
    seconds = time.perf_counter() - begun
    if any(process.exitcode for process in processes):
        raise SystemExit("a process of the published loop failed: see its message above")
    return seconds


if __name__ == "__main__":
    print(run(int(sys.argv[1]), f"{sys.argv[2]}/kv.db"))
