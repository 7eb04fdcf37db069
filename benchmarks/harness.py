"""harness: the cost of the harness itself for one operation.

    python -m benchmarks harness

The `dry` driver does nothing, so the time of its operation is the harness's own. It is compared with a get
from a WAL database on disk by one process through the standard library, in the same round. That get is
measured by the same loop of the tool without the proof, and by the bare loop in Python.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

from benchmarks.bench import LOADS, Bench, Outcome
from benchmarks.document import AT_MOST, Comparison, Plan, Row, grid, measure, ratios
from benchmarks.loops import python_worker

TITLE = "the harness's own cost for one operation"
LOADS_MEASURED = ("get-only", "50/50")
TARGETS = {
    "native": {"quick": 0.03, "none": 0.03},
    "python": {"quick": 0.15, "none": 0.10},
}
"""--loop → --verify → the maximum cost of the harness, as a share of a get by the same loop."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Nanoseconds for one operation."""

    whole: float
    drawing: float = 0.0
    """Part of `whole`: drawing keys, making values, counting."""
    proof: float = 0.0
    """Part of `whole`: acknowledging, and checking the values read."""


def plan(bench: Bench) -> Plan:
    """List both loops and the loads, with the proof and without."""
    notes = (
        "Medians, in nanoseconds for one operation of one process; drawing, counting and proof are parts of "
        "dry, the rest of which is its stamps and its call.",
    )
    loads = bench.options.loads or LOADS_MEASURED
    cells = grid(loop=TARGETS, load=loads, verify=("quick", "none"))
    return Plan(notes, cells, lambda cell: _row(bench, cell))


def _row(bench: Bench, labels: dict[str, str]) -> Row:
    get_cell = bench.cell("get-only", "full", 1)
    get_case = replace(bench.case("sqlite3", get_cell), verify="none", loop=labels["loop"])
    dry = replace(get_case, driver="dry", read_ratio=LOADS[labels["load"]], verify=labels["verify"])
    arms = {
        "dry": lambda index: _cost(bench.tool.measure(dry, bench.seed(index))),
        "get": lambda index: _cost(bench.tool.measure(get_case, bench.seed(index))),
        "bare get": lambda index: Cost(_ns(bench.loops(python_worker("sqlite3"), get_cell, index).tps)),
    }
    found = measure(arms, bench.options.repeats)
    samples = {f"{name} ns": [cost.whole for cost in costs] for name, costs in found.items()}
    target = TARGETS[labels["loop"]][labels["verify"]]
    comparisons = (
        Comparison("dry/get", ratios(samples["dry ns"], samples["get ns"]), target, AT_MOST),
        Comparison("dry/bare get", ratios(samples["dry ns"], samples["bare get ns"])),
    )
    samples["drawing, counting ns"] = [cost.drawing for cost in found["dry"]]
    samples["proof ns"] = [cost.proof for cost in found["dry"]]
    return Row(labels, {name: median(values) for name, values in samples.items()}, comparisons, samples)


def _cost(outcome: Outcome) -> Cost:
    whole, worker = _ns(outcome.trial.tps), outcome.trial.workers[0]
    proof = whole * worker.proof_share
    return Cost(whole, whole * worker.harness_share - proof, proof)


def _ns(tps: float) -> float:
    if not tps:
        raise ValueError("an arm did nothing inside the window")
    return 1e9 / tps
