"""Measurement of the overhead of sqlstress: the cost of its own code around each operation."""

from __future__ import annotations

import time
from array import array
from dataclasses import replace
from pathlib import Path
from statistics import median
from timeit import timeit
from typing import Any

from sqlstress.engine.loop import Window, work_through
from sqlstress.engine.omissions import COSTS, is_omitted
from sqlstress.engine.protocols import SelfDriven, Source
from sqlstress.experiment import experiment_of
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.dry import DryPlace
from sqlstress.targets.place import Place

WARM_NS = 10 * NS_PER_MS
LENGTH_NS = 40 * NS_PER_MS
ATTEMPTS = 5


def harness_ns(case: Case, carry: dict[Any, Any], pulse: Pulse) -> float | None:
    """Return the overhead of sqlstress per operation, in ns, measured with a driver that stores nothing.

    None if an A/B test omits this measurement, if the experiment does not count operations in a time window,
    or if no operation ended. `carry` is the dict in which an experiment keeps objects for later trials.
    """
    experiment = experiment_of(case)
    if not experiment.windowed or is_omitted(COSTS):
        return None
    alone = replace(case, concurrency=1, ops=None, arrivals=None)
    nowhere = DryPlace(alone, Path())
    work = experiment.open_work(alone, nowhere, 1, carry)
    work.prepare(pulse)
    source = experiment.worker_half()(alone, nowhere, 1, 1, work.shared)
    costs = (_cost_ns(source) for _ in range(ATTEMPTS))
    return next((cost for cost in costs if cost is not None), None)


def _cost_ns(source: Source | SelfDriven) -> float | None:
    now = time.perf_counter_ns()
    window = Window(now, now + WARM_NS, now + WARM_NS + LENGTH_NS)
    totals = work_through(source, window, None, array("q", [0]), array("q", [0]))
    done = sum(totals.operations.values())
    return LENGTH_NS / done if done else None


ROUNDS = 9
ROUND_NS = 3 * NS_PER_MS
MOST = 5000
"""Maximum number of calls of the driver in a round, whose average time is one measured value."""


def bare_call_ns(place: Place, pulse: Pulse) -> float:
    """Return the time of the driver's cheapest call, in ns: the median over ROUNDS rounds of calls.

    Raises EnvironmentFailure if the data cannot be opened.
    """
    with place.bare_call() as call:
        first = timeit(call, number=20) / 20 * NS_PER_S
        calls = min(MOST, max(1, int(ROUND_NS / first))) if first else MOST
        rounds = []
        for _ in range(ROUNDS):
            pulse()
            rounds.append(timeit(call, number=calls) / calls * NS_PER_S)
    return median(rounds)
