"""published: `sqlstress kv --preset classic` against the published loop started with `spawn`.

    python -m benchmarks published --concurrency 1,8

Both do the same work on files that were just created: N processes, 5,000 set and get pairs each,
timed from the first process's start to the last one's end.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.bench import Bench
from benchmarks.loops import CHECKOUT, LoopFailure
from benchmarks.pairs import measure, ratios
from benchmarks.published_loop import PAIRS
from benchmarks.results import Comparison, Plan, Row, Task

TITLE = "the published script's work against the published loop"
CONCURRENCY = tuple(range(1, 9))
TARGET = 1.0


def plan(bench: Bench) -> Plan:
    """List the concurrencies to measure."""
    notes = (
        "TPS: set and get pairs a second of all processes. sqlite3 driver, settings left to the library.",
    )
    tasks = tuple(_task(bench, concurrency) for concurrency in bench.options.concurrency or CONCURRENCY)
    return Plan(TITLE, notes, tasks)


def _task(bench: Bench, concurrency: int) -> Task:
    labels = {"N": str(concurrency)}
    arms: dict[str, Callable[[int], float]] = {
        "published": lambda index: _published(bench, concurrency),
        "sqlstress": lambda index: _classic(bench, concurrency, index),
    }
    return Task(labels, lambda: _row(bench, labels, arms))


def _published(bench: Bench, concurrency: int) -> float:
    with TemporaryDirectory(dir=bench.folder, prefix="published-") as own:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.published_loop", str(concurrency), own],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            text=True,
        )
    if done.returncode:
        raise LoopFailure("the published loop failed: see its message above")
    return PAIRS * concurrency / float(done.stdout)


def _classic(bench: Bench, concurrency: int, index: int) -> float:
    arguments = ["--preset", "classic", "--concurrency", str(concurrency), "--seed", str(bench.seed(index))]
    return bench.tool.kv(arguments).trial.tps


def _row(bench: Bench, labels: dict[str, str], arms: dict[str, Callable[[int], float]]) -> Row:
    found = measure(arms, bench.options.repeats)
    comparison = Comparison(
        "sqlstress/published", tuple(ratios(found["sqlstress"], found["published"])), TARGET
    )
    samples = {f"{name} TPS": values for name, values in found.items()}
    return Row(labels, {name: median(values) for name, values in samples.items()}, (comparison,), samples)
