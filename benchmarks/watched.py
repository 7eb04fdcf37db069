"""watched: what `sqlstress watch` costs those whom it watches.

    python -m benchmarks watched

One process commits, or reads, in slices. A watch at its default rate runs beside it, and is stopped and
continued (SIGSTOP, SIGCONT) by turns, ABBA: what is compared lies a tenth of a second apart. Targets: at most
1 % fewer transactions per second, and at most 1 % more processor time for each, which is hardly touched by
what else the machine does.
"""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from benchmarks.bench import Bench
from benchmarks.document import AT_LEAST, AT_MOST, Comparison, Plan, Row, grid, measure, ratios
from benchmarks.loops import LoopFailure
from sqlstress.statistics.compare import signed_rank_bounds

TITLE = "what a watch costs those whom it watches"
TARGET = 0.01
"""What it may cost."""
LOADS = {
    "replace-only": "REPLACE INTO t VALUES (abs(random()) % 10000, random())",
    "get-only": "SELECT b FROM t WHERE a = abs(random()) % 10000",
}
SYNCHRONOUS = ("normal", "full")
SLICES_EACH = 40
"""Slices of each arm for every repeat that is asked for."""
SLICE_S = 0.1
PATIENCE_S = 120.0


class Slice(NamedTuple):
    """What one process did in a slice of time."""

    tps: float
    ns: float
    """Processor time of a transaction."""


def plan(bench: Bench) -> Plan:
    """List the loads and levels of synchronous."""
    notes = (
        "One process, WAL, 10,000 rows, Python's sqlite3, a transaction each. TPS, and the processor time "
        f"of each transaction, in slices of {SLICE_S * 1000:.0f} ms, watched over unwatched, pair by pair. "
        "*from* and *to*: by how many per cent the watch changes TPS, with 95 % (signed ranks). "
        "*watch %*: the share of one processor that the watch takes itself.",
    )
    cells = grid(
        load=bench.options.loads or tuple(LOADS), synchronous=bench.options.synchronous or SYNCHRONOUS
    )
    return Plan(notes, [cell for cell in cells if cell["load"] in LOADS], partial(_row, bench))


def _row(bench: Bench, labels: dict[str, str]) -> Row:
    with TemporaryDirectory(dir=bench.folder) as own:
        path = Path(own) / "watched.db"
        given = (path, LOADS[labels["load"]], labels["synchronous"])
        with ProcessPoolExecutor(1, get_context("spawn"), _open, given) as pool:
            pool.submit(_slice).result(PATIENCE_S)
            with _watching(path) as watch:

                def sliced(is_watched: bool, _: int = 0) -> Slice:
                    if is_watched:
                        watch.resume()
                    else:
                        watch.suspend()
                    return pool.submit(_slice).result(PATIENCE_S)

                begun_s, used_s = time.perf_counter(), sum(watch.cpu_times()[:2])
                arms = {"unwatched": partial(sliced, False), "watched": partial(sliced, True)}
                found = measure(arms, bench.options.repeats * SLICES_EACH)
                watched_s = (time.perf_counter() - begun_s) / len(arms)
                share = (sum(watch.cpu_times()[:2]) - used_s) / watched_s
    return _compared(labels, found["unwatched"], found["watched"], share)


def _compared(labels: dict[str, str], bare: list[Slice], watched: list[Slice], share: float) -> Row:
    """Return what pairs of slices say; `share` is what the watch took of a processor itself."""
    samples = {
        f"{name} {figure}": [getattr(one, figure) for one in slices]
        for name, slices in (("unwatched", bare), ("watched", watched))
        for figure in Slice._fields
    }
    tps = ratios(samples["watched tps"], samples["unwatched tps"])
    cost = ratios(samples["watched ns"], samples["unwatched ns"])
    bounds = signed_rank_bounds([math.log(ratio) for ratio in tps], 0.025)
    changes = [100 * (math.exp(bound) - 1) for bound in bounds] if bounds else []
    figures = {
        "unwatched TPS": median(samples["unwatched tps"]),
        "watched TPS": median(samples["watched tps"]),
        **dict(zip(("from", "to"), changes, strict=False)),
        "watch %": 100 * share,
    }
    comparisons = (
        Comparison("TPS", tps, 1 - TARGET, AT_LEAST),
        Comparison("processor time", cost, 1 + TARGET, AT_MOST),
    )
    return Row(labels, figures, comparisons, samples)


@contextmanager
def _watching(path: Path) -> Iterator[psutil.Popen]:
    """Run a watch until the end, and yield it once it samples."""
    words = [sys.executable, "-m", "sqlstress", "watch", str(path), "--duration", "1h"]
    with psutil.Popen(words, stdout=subprocess.PIPE, text=True) as watch:
        try:
            if not watch.stdout.readline():
                raise LoopFailure("the watch did not begin")
            yield watch
        finally:
            watch.kill()


_connections: list[sqlite3.Connection] = []
"""Of the process that is watched."""
_statement: list[str] = []


def _open(path: Path, statement: str, synchronous: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for sql in ("PRAGMA journal_mode=wal", f"PRAGMA synchronous={synchronous}"):
        connection.execute(sql).fetchone()
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO t VALUES (?, 0)", ((key,) for key in range(10_000)))
    connection.execute("COMMIT")
    _connections[:], _statement[:] = [connection], [statement]


def _slice() -> Slice:
    (connection,), (statement,) = _connections, _statement
    begun, used_ns, done = time.perf_counter(), time.process_time_ns(), 0
    while time.perf_counter() < begun + SLICE_S or not done:
        connection.execute(statement).fetchone()
        done += 1
    return Slice(done / (time.perf_counter() - begun), (time.process_time_ns() - used_ns) / done)
