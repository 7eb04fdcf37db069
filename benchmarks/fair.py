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

from benchmarks.bench import Bench, Outcome
from benchmarks.document import Comparison, Plan, Row, grid, measure, ratios
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
    cells = grid(
        driver=options.drivers,
        loop=options.arms or LOOPS,
        load=options.loads or LOADS_MEASURED,
        N=options.concurrency or CONCURRENCY,
    )
    notes = (
        "WAL, synchronous full. Medians; a wait is the longest of a trial, one still pending at its end "
        "included. The price is what fairness costs of the default's TPS. "
        f"Under {COLLAPSE} of fair at {BASE} is a collapse.",
    )
    return Plan(notes, cells, lambda cell: _row(bench, cell))


def _row(bench: Bench, labels: dict[str, str]) -> Row:
    cell = bench.cell(labels["load"], "full", int(labels["N"]))
    default = replace(bench.case(labels["driver"], cell), loop=labels["loop"])
    fair = replace(default, busy="fair")
    cases = {"default": default, "fair": fair}
    if cell.concurrency != BASE:
        cases["base"] = replace(fair, concurrency=BASE)
    arms: dict[str, Callable[[int], Outcome]] = {
        name: lambda index, case=case: bench.tool.measure(case, bench.seed(index))  # type: ignore[misc]
        for name, case in cases.items()
    }
    found = {
        name: [outcome.trial for outcome in outcomes]
        for name, outcomes in measure(arms, bench.options.repeats).items()
    }
    tps = {name: [trial.tps for trial in trials] for name, trials in found.items()}
    jain = {name: [trial.fairness or 0.0 for trial in trials] for name, trials in found.items()}
    waits = {
        name: [(trial.longest_wait_ns or 0) / 1e6 for trial in found[name]] for name in ("default", "fair")
    }
    price, at_base = ratios(tps["fair"], tps["default"]), "base" not in cases
    comparisons = [
        Comparison("fair/default", price, TPS_TARGET if at_base else None),
        Comparison("fair Jain", tuple(jain["fair"]), JAIN_TARGET if at_base else None),
    ]
    if not at_base:
        comparisons.append(Comparison(f"fair/fair at {BASE}", ratios(tps["fair"], tps["base"]), COLLAPSE))
    figures = {
        "default TPS": median(tps["default"]),
        "fair TPS": median(tps["fair"]),
        "default Jain": median(jain["default"]),
        "default wait ms": median(waits["default"]),
        "fair wait ms": median(waits["fair"]),
        "price %": 100 * (1 - median(price)),
    }
    kept = {"TPS": tps, "Jain": jain, "wait ms": waits}
    samples = {f"{name} {what}": values for what, each in kept.items() for name, values in each.items()}
    return Row(labels, figures, tuple(comparisons), samples)
