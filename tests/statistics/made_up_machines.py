"""Made-up machines for the search for the highest rate: noise, moods that last some windows, and stalls.

Each case is a limit that the rates and the rule of `sqlstress limit` search for five times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from random import Random
from statistics import median

from sqlstress.statistics.search import Answer, answer, by_rate, next_rate

MOST_WINDOWS = 50
"""Windows for which there is time: five minutes of them."""
REPEATS, AGREE = 5, 1.2


@dataclass(frozen=True)
class Machine:
    """What a machine does to a window, as standard deviations of a logarithm, and a probability."""

    name: str
    noise: float
    """Of each window."""
    mood: float
    """Of what changes within some windows."""
    day: float
    """Of what is so for a whole search."""
    stalls: float
    """How often a window breaks its promise at whatever rate."""
    slope: float
    """How fast latency grows with the rate."""


QUIET = Machine("quiet", 0.03, 0.03, 0.02, 0.02, slope=8)
STALLING = Machine("noisy, with stalls", 0.1, 0.05, 0.02, 0.05, slope=3)
SLOWNESS = 5.0
"""Windows in which a mood changes."""


def searched(machine: Machine, limit: float, seed: int) -> tuple[Answer, int]:
    """Search for a limit; return what was found, and after how many windows."""
    draw, keeps = Random(seed), math.exp(-1 / SLOWNESS)
    day, mood = draw.gauss(0, machine.day), draw.gauss(0, machine.mood)
    seen: list[tuple[int, float]] = []
    start = int(0.9 * limit * math.exp(day + mood + draw.gauss(0, machine.noise)))
    while len(seen) < MOST_WINDOWS and (rate := next_rate(seen, start)) is not None:
        mood = keeps * mood + math.sqrt(1 - keeps * keeps) * draw.gauss(0, machine.mood)
        now = limit * math.exp(day + mood + draw.gauss(0, machine.noise))
        stall = draw.uniform(0, 3) if draw.random() < machine.stalls else -math.inf
        seen.append((rate, max(machine.slope * math.log(rate / now), stall)))
    return answer(by_rate(seen)), len(seen)


def overlap(one: Answer, other: Answer) -> bool:
    """Say whether a rate may be the limit by both answers."""
    low, high = max(one.holds or 0, other.holds or 0), (one.breaks, other.breaks)
    return all(end is None or low <= end for end in high)


@dataclass(frozen=True, slots=True)
class Row:
    """How searches on a machine ended."""

    machine: str
    cases: int
    agreeing: int
    """Cases whose five limits agree."""
    overlapping: int
    """Cases whose five answers all overlap."""
    answers: int
    """Searches that found both ends."""
    covering: int
    """Those of them between whose ends the true limit lies."""
    width: float
    """Median of what does not hold over what holds."""
    windows: float
    """Median."""
    most: float
    """90th percentile of the windows."""


def row(machine: Machine, cases: int) -> Row:
    """Return how the searches of so many cases ended."""
    agreeing = overlapping = covering = 0
    widths, windows = list[float](), list[int]()
    for case in range(cases):
        limit = Random(case).uniform(300, 20_000)
        found = [searched(machine, limit, 10 * case + number) for number in range(REPEATS)]
        limits = [one.about for one, _ in found if one.about]
        agreeing += len(limits) == REPEATS and max(limits) <= AGREE * min(limits)
        overlapping += all(overlap(one, other) for (one, _), (other, _) in combinations(found, 2))
        windows += [count for _, count in found]
        ends = [(one.holds, one.breaks) for one, _ in found if one.holds and one.breaks]
        widths += [breaks / holds for holds, breaks in ends]
        covering += sum(holds <= limit <= breaks for holds, breaks in ends)
    most = sorted(windows)[int(0.9 * len(windows))]
    told = (agreeing, overlapping, len(widths), covering)
    return Row(machine.name, cases, *told, median(widths), median(windows), most)
