"""The harness's own cost: the same loop, in this process, over a store that does nothing."""

from __future__ import annotations

import time
from array import array
from dataclasses import replace
from pathlib import Path

from sqlstress.engine.loop import work_through
from sqlstress.engine.protocols import SelfDriven, Source
from sqlstress.engine.tally import Window
from sqlstress.experiment import face_of
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_MS
from sqlstress.system.importing import named
from sqlstress.system.pulse import Pulse
from sqlstress.targets.dry.place import DryPlace

WARM_NS = 10 * NS_PER_MS
LENGTH_NS = 40 * NS_PER_MS
ATTEMPTS = 5


def harness_ns(case: Case, pulse: Pulse) -> float | None:
    """Return the nanoseconds that one operation of a case costs without a store; None for whole scripts."""
    experiment = face_of(case)
    if not experiment.windowed:
        return None
    alone = replace(case, concurrency=1, ops=None, arrivals=None)
    nowhere = DryPlace(alone, Path())
    work = experiment.open_work(alone, nowhere, 1, {})
    work.prepare(pulse)
    source = named(experiment.worker)(alone, nowhere, 1, 1, work.shared)
    costs = (_cost_ns(source) for _ in range(ATTEMPTS))
    return next((cost for cost in costs if cost is not None), None)


def _cost_ns(source: Source | SelfDriven) -> float | None:
    """Return nanoseconds for one operation; None when this process did not run while the window was open."""
    now = time.perf_counter_ns()
    window = Window(now, now + WARM_NS, now + WARM_NS + LENGTH_NS)
    totals = work_through(source, window, None, array("q", [0]), array("q", [0]))
    done = sum(totals.operations.values())
    return LENGTH_NS / done if done else None
