"""Simulated machines for the search for the highest rate: noise, drifting moods, and stalls.

Each case is a limit, which the algorithm of `sqlstress limit` searches for five times.
"""

import math
from dataclasses import dataclass
from itertools import combinations
from random import Random
from statistics import median
from typing import NamedTuple

from sqlstress.statistics.search import SearchAnswer, answer, by_rate, next_rate

MOST_WINDOWS = 50
"""Number of windows in the available time of five minutes."""
REPEATS, AGREE = 5, 1.2


@dataclass(frozen=True)
class Machine:
    """Disturbances of a window: deviations of the limit's logarithm, and the probability of stalls."""

    name: str
    noise: float
    """Deviation that differs for each window."""
    mood: float
    """Deviation that changes slowly, over some windows."""
    day: float
    """Deviation that is constant during a search."""
    stalls: float
    """Probability that a window breaks its promise at any rate."""
    slope: float
    """Growth of the logarithm of latency with that of the rate."""


QUIET = Machine("quiet", 0.03, 0.03, 0.02, 0.02, slope=8)
STALLING = Machine("noisy, with stalls", 0.1, 0.05, 0.02, 0.05, slope=3)
SLOWNESS = 5.0
"""Time constant of mood changes, in windows."""


def searched(machine: Machine, limit: float, seed: int) -> tuple[SearchAnswer, int]:
    """Search for a limit; return the answer and the number of windows."""
    draw, keeps = Random(seed), math.exp(-1 / SLOWNESS)
    day, mood = draw.gauss(0, machine.day), draw.gauss(0, machine.mood)
    measured: list[tuple[int, float]] = []
    start = int(0.9 * limit * math.exp(day + mood + draw.gauss(0, machine.noise)))
    while len(measured) < MOST_WINDOWS and (rate := next_rate(measured, start)) is not None:
        mood = keeps * mood + math.sqrt(1 - keeps * keeps) * draw.gauss(0, machine.mood)
        now = limit * math.exp(day + mood + draw.gauss(0, machine.noise))
        stall = draw.uniform(0, 3) if draw.random() < machine.stalls else -math.inf
        measured.append((rate, max(machine.slope * math.log(rate / now), stall)))
    return answer(by_rate(measured)), len(measured)


def overlap(first: SearchAnswer, second: SearchAnswer) -> bool:
    """Return whether a rate may be the limit by both answers."""
    low, high = max(first.holds or 0, second.holds or 0), (first.breaks, second.breaks)
    return all(end is None or low <= end for end in high)


class Row(NamedTuple):
    """Results of the searches on a machine."""

    agreeing: int
    """Number of cases whose five limits agree."""
    overlapping: int
    """Number of cases whose five answers all overlap."""
    windows: float
    """Median number of windows of a search."""


def row(machine: Machine, cases: int) -> Row:
    """Return the results of the searches of `cases` cases."""
    agreeing = overlapping = 0
    windows: list[int] = []
    for case in range(cases):
        limit = Random(case).uniform(300, 20_000)
        results = [searched(machine, limit, 10 * case + number) for number in range(REPEATS)]
        limits = [result.about for result, _ in results if result.about]
        agreeing += len(limits) == REPEATS and max(limits) <= AGREE * min(limits)
        overlapping += all(overlap(first, second) for (first, _), (second, _) in combinations(results, 2))
        windows += [count for _, count in results]
    return Row(agreeing, overlapping, median(windows))
