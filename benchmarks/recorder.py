"""Cost of recording failed statements: `python -m benchmarks.recorder [FOLDER]`.

The first table is the cost in a single process. Two connections of Python's sqlite3 to a WAL file, with and
without the recorder, run transactions in turns; chance decides which is first. A pair takes a fraction of a
millisecond, so the disk is the same for both. The table has for each durability the median time of a
transaction, and the median difference of a pair, with the range of five parts. The difference of the medians
would contain changes of the disk.

The second table is the cost under load: several processes write one file with fully synced commits, in short
windows with and without the recorder in turns. It has the median of the ratios of TPS.
"""

from __future__ import annotations

import multiprocessing
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
PROCESSES, WINDOW_S, WINDOW_PAIRS = (2, 4), 0.2, 100
ROWS = 1000
US = 1e6


def opened(connect: Callable[..., Any], file: Path, synchronous: str) -> Any:
    """Return a connection to a table with rows."""
    connection = connect(file, isolation_level=None, timeout=60)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE IF NOT EXISTS t (k INTEGER PRIMARY KEY, n INTEGER)")
    connection.executemany("INSERT OR IGNORE INTO t VALUES (?, 0)", [(key,) for key in range(ROWS)])
    return connection


def seconds(connection: Any, after_each: Callable[[], object]) -> float:
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


def new_recorder() -> FailedStatements:
    """Return a recorder of the connections that this process opens from now on."""
    recorder = FailedStatements(UserFrames(Path(__file__).parent), CallCosts())
    recorder.install()
    return recorder


def work(folder: Path, orders: list[tuple[str, str]], barrier: Any, results: Any) -> None:
    """Run the windows of `orders` in a process; put the list of its numbers of transactions in `results`.

    A window is "recorded" or "plain". All processes begin each window together.
    """
    plain = opened(sqlite3.connect, folder / "plain.db", "full")
    recorder = new_recorder()
    recorded = opened(sqlite3.connect, folder / "recorded.db", "full")
    kinds = {"recorded": partial(seconds, recorded, partial(after_call, recorder))}
    kinds["plain"] = partial(seconds, plain, lambda: None)
    counts = []
    for name in (name for order in orders for name in order):
        barrier.wait()
        end_s, count = perf_counter() + WINDOW_S, 0
        while perf_counter() < end_s:
            kinds[name]()
            count += 1
        counts.append(count)
    results.put(counts)
    recorded.close()
    plain.close()


def ratios_under_load(folder: Path, processes: int) -> list[float]:
    """Return TPS with the recorder divided by TPS without it, for each pair of windows."""
    orders = [tuple(random.sample(("recorded", "plain"), 2)) for _ in range(WINDOW_PAIRS)]
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    for name in ("recorded", "plain"):  # Processes that set WAL mode at the same moment could be refused.
        opened(sqlite3.connect, folder / f"{name}.db", "full").close()
    workers = [
        context.Process(target=work, args=(folder, orders, barrier, results)) for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    totals = [sum(counts) for counts in zip(*(results.get() for _ in workers), strict=True)]
    for worker in workers:
        worker.join()
    ratios = []
    for order, first, second in zip(orders, totals[::2], totals[1::2], strict=True):
        ratios.append(first / second if order[0] == "recorded" else second / first)
    return ratios


def print_under_load(folder: str) -> None:
    """Measure and print the cost under load."""
    print("\n| processes | TPS recorded / plain, median of pairs | range of five parts |\n|--:|--:|--:|")
    for processes in PROCESSES:
        with TemporaryDirectory(dir=folder) as directory:
            ratios = ratios_under_load(Path(directory), processes)
        size = WINDOW_PAIRS // PARTS
        parts = sorted(median(ratios[start : start + size]) for start in range(0, WINDOW_PAIRS, size))
        print(f"| {processes} | {median(ratios):.3f} | {parts[0]:.3f} to {parts[-1]:.3f} |")


def main(folder: str = ".") -> None:
    """Measure and print."""
    plain_connect = sqlite3.connect
    recorder = new_recorder()
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
    print_under_load(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
