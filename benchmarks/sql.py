"""sql: TPC-B's transaction through `sqlstress sql`, against a C loop and a plain Python loop.

    python -m benchmarks sql

One process. The C loop (tpcb.c) is linked to the library of Python's sqlite3 and does the same statements;
`bare` is the plainest Python loop over them. All begin with fresh tables of scale 1.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlstress
from benchmarks.bench import Bench
from benchmarks.climit_build import build_beside
from benchmarks.document import Plan, Row, grid, measure, row_of_rates
from sqlstress.experiments.sql.builtin import ACCOUNTS, TELLERS, setup

TITLE = "TPC-B's transaction against a C loop over the same statements"
SYNCHRONOUS = ("full", "normal", "off")
TARGET = 0.6
"""sqlstress's share of the C loop's throughput."""
NOTE = "TPS: medians. Ratios: median of the pairs (smallest-largest)."
SOURCE = Path(__file__).with_name("tpcb.c")
STATEMENTS = (
    "BEGIN",
    "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid",
    "SELECT abalance FROM pgbench_accounts WHERE aid = :aid",
    "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid",
    "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1",
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) "
    "VALUES (:tid, 1, :aid, :delta, CURRENT_TIMESTAMP)",
    "COMMIT",
)


def plan(bench: Bench) -> Plan:
    """List the levels of synchronous. Raises Unavailable."""
    program, library = build_beside(bench.folder, SOURCE)
    which = f"SQLite {sqlite3.sqlite_version}" if library else "the system's SQLite"
    cells = grid(synchronous=bench.options.synchronous or SYNCHRONOUS, N=[1])
    return Plan((NOTE, f"C: {which}."), cells, lambda cell: _row(bench, program, cell))


def _row(bench: Bench, program: Path, cell: dict[str, str]) -> Row:
    synchronous = cell["synchronous"]
    arms = {
        "C": lambda index: _c(bench, program, synchronous, bench.seed(index)),
        "bare": lambda index: _bare(bench, synchronous, bench.seed(index)),
        "sqlstress": lambda index: _tool(bench, synchronous, bench.seed(index)),
    }
    tps = measure(arms, bench.options.repeats)
    return row_of_rates(cell, tps, ("sqlstress", "C", TARGET), ("bare", "C", None))


@contextmanager
def _tables(folder: Path) -> Iterator[Path]:
    """Make a database with the tables of scale 1; it is removed afterwards."""
    with TemporaryDirectory(dir=folder, prefix="tpcb-") as own:
        path = Path(own) / "kv.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=wal")
            connection.execute("PRAGMA synchronous=off")
            for sql in setup(["tpcb"], 1):
                connection.execute(sql)
        yield path


def _c(bench: Bench, program: Path, synchronous: str, seed: int) -> float:
    options = bench.options
    times = [str(round(seconds * 1e9)) for seconds in (options.warmup_s, options.duration_s)]
    with _tables(bench.folder) as path:
        command = [str(program), str(path), synchronous, *times, str(seed + 1)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"the C loop failed: {done.stderr.strip()}")
    return int(done.stdout) / options.duration_s


def _bare(bench: Bench, synchronous: str, seed: int) -> float:
    draw, clock = random.Random(seed).randint, time.perf_counter
    with (
        _tables(bench.folder) as path,
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
    ):
        connection.execute(f"PRAGMA synchronous={synchronous}")
        execute, count = connection.cursor().execute, 0
        opens = clock() + bench.options.warmup_s
        closes = opens + bench.options.duration_s
        while (now := clock()) < closes:
            count += now >= opens
            values = {"delta": draw(-5000, 5000), "aid": draw(1, ACCOUNTS), "tid": draw(1, TELLERS)}
            for sql in STATEMENTS:
                execute(sql, values).fetchall()
    return count / bench.options.duration_s


def _tool(bench: Bench, synchronous: str, seed: int) -> float:
    report = sqlstress.measure(
        "sql",
        directory=bench.folder,
        builtin=["tpcb-like"],
        concurrency=1,
        synchronous=synchronous,
        duration=bench.options.duration_s,
        warmup=bench.options.warmup_s,
        repeat=1,
        seed=seed,
    )
    if not report.ok:
        raise ValueError("; ".join(report.problems))
    return report.figures[0].tps or 0.0
