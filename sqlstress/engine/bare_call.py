"""What the cheapest call through a binding costs, apart from what the store does: timed in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import repeat
from statistics import median

from sqlstress.statistics.units import NS_PER_MS
from sqlstress.system.pulse import Pulse
from sqlstress.targets.place import Place

ROUNDS = 9
ROUND_NS = 3 * NS_PER_MS
MOST = 5000
"""Calls of a round."""


def bare_call_ns(place: Place, pulse: Pulse) -> float:
    """Return the nanoseconds of the cheapest call of a place's binding: the median of several rounds.

    Raises EnvironmentFailure where it can't connect.
    """
    with place.bare_call() as call:
        first = _ns_each(call, 20)
        calls = min(MOST, max(1, int(ROUND_NS / first))) if first else MOST
        rounds = []
        for _ in range(ROUNDS):
            pulse()
            rounds.append(_ns_each(call, calls))
    return median(rounds)


def _ns_each(call: Callable[[], object], calls: int) -> float:
    begun = time.perf_counter_ns()
    for _ in repeat(None, calls):
        call()
    return (time.perf_counter_ns() - begun) / calls
