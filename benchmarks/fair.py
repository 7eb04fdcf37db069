"""fair: `--busy fair` against SQLite's own busy handler: how evenly, at what price, with how many.

    python -m benchmarks fair --concurrency 8
    python -m benchmarks fair --driver apsw --concurrency 32,64,256
    python -m benchmarks fair --arm native --repeats 21 --concurrency 8

Both loops are measured, each against itself. At N = 8 the price and Jain's index have their targets.
With more processes the question is whether the total collapses: fair at N against fair at 8, measured in
the same round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median

from benchmarks.bench import Bench
from benchmarks.pairs import measure, ratios
from benchmarks.results import Comparison, Plan, Row, Task
from benchmarks.tool import Outcome
from sqlstress.experiments.kv.experiment import LOOPS

TITLE = "fair waiting against SQLite's busy handler"
BASE = 8
CONCURRENCY = (BASE, 32, 64, 256)
LOADS_MEASURED = ("replace-only", "50/50")
TPS_TARGET = 0.95
"""Fair's share of the default's throughput, at N = 8."""
JAIN_TARGET = 0.98
COLLAPSE = 0.5
"""Less than this share of fair at 8 is called a collapse."""


def plan(bench: Bench) -> Plan:
    """List the drivers, loads and concurrencies to measure."""
    options = bench.options
    tasks = tuple(
        _task(bench, driver, loop, load, concurrency)
        for driver in options.drivers
        for loop in options.arms or LOOPS
        for load in options.loads or LOADS_MEASURED
        for concurrency in options.concurrency or CONCURRENCY
    )
    notes = (
        "WAL, synchronous full. Medians; a wait is the longest of a trial, one still pending at its end "
        "included. The price is what fairness costs of the default's TPS. "
        f"Under {COLLAPSE} of fair at {BASE} is a collapse.",
    )
    return Plan(TITLE, notes, tasks)


def _task(bench: Bench, driver: str, loop: str, load: str, concurrency: int) -> Task:
    labels = {"driver": driver, "loop": loop, "load": load, "N": str(concurrency)}
    default = replace(bench.case(driver, bench.cell(load, "full", concurrency)), loop=loop)
    fair = replace(default, busy="fair")
    cases = {"default": default, "fair": fair}
    if concurrency != BASE:
        cases["base"] = replace(fair, concurrency=BASE)
    arms: dict[str, Callable[[int], Outcome]] = {
        name: lambda index, case=case: bench.tool.measure(case, bench.seed(index))  # type: ignore[misc]
        for name, case in cases.items()
    }
    return Task(labels, lambda: _row(bench, labels, arms))


def _row(bench: Bench, labels: dict[str, str], arms: dict[str, Callable[[int], Outcome]]) -> Row:
    found = measure(arms, bench.options.repeats)
    tps = {name: [outcome.trial.tps for outcome in outcomes] for name, outcomes in found.items()}
    jain = {name: [outcome.trial.fairness or 0.0 for outcome in outcomes] for name, outcomes in found.items()}
    waits = {
        name: [(outcome.trial.longest_wait_ns or 0) / 1e6 for outcome in found[name]]
        for name in ("default", "fair")
    }
    price = ratios(tps["fair"], tps["default"])
    at_base = "base" not in arms
    comparisons = [
        Comparison("fair/default", tuple(price), TPS_TARGET if at_base else None),
        Comparison("fair Jain", tuple(jain["fair"]), JAIN_TARGET if at_base else None),
    ]
    if not at_base:
        comparisons.append(
            Comparison(f"fair/fair at {BASE}", tuple(ratios(tps["fair"], tps["base"])), COLLAPSE)
        )
    figures = {
        "default TPS": median(tps["default"]),
        "fair TPS": median(tps["fair"]),
        "default Jain": median(jain["default"]),
        "default wait ms": median(waits["default"]),
        "fair wait ms": median(waits["fair"]),
        "price %": 100 * (1 - median(price)),
    }
    samples = {f"{name} TPS": values for name, values in tps.items()}
    samples |= {f"{name} Jain": values for name, values in jain.items()}
    samples |= {f"{name} wait ms": values for name, values in waits.items()}
    return Row(labels, figures, tuple(comparisons), samples)
