"""pgbench: sqlstress on PostgreSQL against pgbench, with the same statements on the same server.

    python -m benchmarks pgbench --output benchmarks/results/pgbench.md

A server of our own, 100,000 int keys, a fresh table for each arm. pgbench runs `-M prepared`, without
pipelines, a thread for each client; sqlstress proves what it did. pgbench has no warm-up, so it runs as much
longer as sqlstress warms up, and its time without connecting counts.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlstress
from benchmarks.bench import LOADS, Bench
from benchmarks.climit_build import Unavailable
from benchmarks.document import Plan, Row, grid, measure, row_of_rates
from sqlstress.errors import SqlstressError
from sqlstress.options.dsn import Dsn, dsn
from sqlstress.report.case import Case, Server
from sqlstress.targets import open_place
from sqlstress.targets.postgres import server
from sqlstress.targets.postgres.client import GET, PUT
from sqlstress.targets.postgres.dialect import schema_of
from sqlstress.targets.postgres.server import programs

TITLE = "PostgreSQL through sqlstress against pgbench"
CONCURRENCY = (1, 2, 4)
SYNCHRONOUS = ("full",)
TARGET = 0.9
"""sqlstress's share of pgbench's throughput."""
KEYS = 100_000
DRAW = f"\\set key random(0, {KEYS - 1})\n"
SET_VALUE = f"\\set value random(0, {1 << 30})\n"
CONNECTIONS = 40
_TPS = re.compile(r"^tps = ([\d.]+) \(without initial", re.MULTILINE)


def plan(bench: Bench) -> Plan:
    """List the cells. Raises Unavailable where there is no server."""
    try:
        program = programs() / "pgbench"
        asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    except (SqlstressError, OSError, subprocess.CalledProcessError) as why:
        raise Unavailable(str(why)) from why
    options = bench.options
    cells = grid(
        load=options.loads or LOADS,
        synchronous=options.synchronous or SYNCHRONOUS,
        N=options.concurrency or CONCURRENCY,
    )
    notes = ("TPS: medians. Ratios: median of the pairs (smallest-largest).", f"{asked.stdout.strip()}.")
    return Plan(notes, cells, lambda cell: _row(bench, program, cell))


def _row(bench: Bench, program: Path, cell: dict[str, str]) -> Row:
    with (
        TemporaryDirectory(dir=bench.folder, ignore_cleanup_errors=True) as own,
        server.running(Path(own), CONNECTIONS) as dsn,
    ):
        arms = {
            "pgbench": lambda index: _pgbench(bench, program, dsn, cell, bench.seed(index)),
            "sqlstress": lambda index: _tool(bench, dsn, cell, bench.seed(index)),
        }
        return row_of_rates(cell, measure(arms, bench.options.repeats), ("sqlstress", "pgbench", TARGET))


def _tool(bench: Bench, dsn: str, cell: dict[str, str], seed: int) -> float:
    report = sqlstress.measure(
        directory=bench.folder,
        driver="psycopg",
        dsn=dsn,
        read_ratio=LOADS[cell["load"]],
        concurrency=cell["N"],
        synchronous=cell["synchronous"],
        key_space=KEYS,
        duration=f"{bench.options.duration_s}s",
        warmup=f"{bench.options.warmup_s}s",
        repeat=1,
        seed=seed,
    )
    if not report.ok:
        raise ValueError("; ".join(report.problems))
    return report.figures[0].tps or 0.0


@contextmanager
def _filled(bench: Bench, address: Dsn) -> Iterator[str]:
    """Make the table that sqlstress makes; it is dropped afterwards."""
    place = open_place(Case(driver="psycopg", server=Server(address)), bench.folder)
    table = place.table("int", 8, 0)
    assert table
    table.fill([((key, -key) for key in range(KEYS))], lambda: None)
    try:
        yield f"{schema_of(bench.folder)}.{table.name(0)}"
    finally:
        place.discard()


def _pgbench(bench: Bench, program: Path, given: str, cell: dict[str, str], seed: int) -> float:
    read_share, whole_s = round(100 * LOADS[cell["load"]]), bench.options.warmup_s + bench.options.duration_s
    commit = "on" if cell["synchronous"] == "full" else "off"
    with _filled(bench, dsn(given)) as kv:
        put = PUT.format(kv=kv).replace("$1", ":key").replace("$2", ":value")
        scripts = {
            "get.sql": (read_share, f"{DRAW}{GET.format(kv=kv).replace('$1', ':key')};"),
            "put.sql": (100 - read_share, f"{DRAW}{SET_VALUE}{put};"),
        }
        words = [str(program), "-n", "-M", "prepared", "-c", cell["N"], "-j", cell["N"]]
        words += ["-T", str(ceil(whole_s)), "--random-seed", str(seed)]
        for name, (weight, text) in scripts.items():
            script = bench.folder / name
            script.write_text(text, encoding="ascii")
            words += ["-f", f"{script}@{weight}"] if weight else []
        environment = {**os.environ, "PGOPTIONS": f"-c synchronous_commit={commit}"}
        done = subprocess.run([*words, given], capture_output=True, text=True, env=environment)
    found = _TPS.search(done.stdout)
    if done.returncode or not found:
        raise ValueError(f"pgbench failed: {done.stderr.strip()}")
    return float(found[1])
