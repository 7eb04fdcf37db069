"""published: `sqlstress kv --preset classic` against the published loop started with `spawn`.

    python -m benchmarks published --concurrency 1,8

Both do the same work on files that were just created: N processes, 5,000 set and get pairs each,
timed from the first process's start to the last one's end.
"""

from __future__ import annotations

import subprocess
import sys
from tempfile import TemporaryDirectory

from benchmarks.bench import Bench
from benchmarks.document import CHECKOUT, Plan, Row, grid, measure, row_of_rates
from benchmarks.loops import LoopFailure
from benchmarks.published_loop import PAIRS

TITLE = "the published script's work against the published loop"
CONCURRENCY = tuple(range(1, 9))
TARGET = 1.0


def plan(bench: Bench) -> Plan:
    """List the concurrencies to measure."""
    notes = (
        "TPS: set and get pairs a second of all processes. sqlite3 driver, settings left to the library.",
    )
    cells = grid(N=bench.options.concurrency or CONCURRENCY)
    return Plan(notes, cells, lambda cell: _row(bench, cell))


def _row(bench: Bench, cell: dict[str, str]) -> Row:
    concurrency = int(cell["N"])

    def published(_: int) -> float:
        with TemporaryDirectory(dir=bench.folder, prefix="published-") as own:
            command = [sys.executable, "-m", "benchmarks.published_loop", str(concurrency), own]
            done = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise LoopFailure("the published loop failed: see its message above")
        return PAIRS * concurrency / float(done.stdout)

    def classic(index: int) -> float:
        options = {"preset": "classic", "concurrency": str(concurrency), "seed": str(bench.seed(index))}
        return bench.tool.kv(options).trial.tps

    tps = measure({"published": published, "sqlstress": classic}, bench.options.repeats)
    return row_of_rates(cell, tps, ("sqlstress", "published", TARGET))
