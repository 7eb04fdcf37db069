"""Thousands of made-up A/B tests: the gate's own looks, order and rule, on models of noise."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import islice
from random import Random
from statistics import median

from benchmarks.gate.noise import NOISES, Noise
from sqlstress.statistics.compare import signed_rank_critical as critical
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE, PASS, UNDECIDED, looks, tolerance
from sqlstress.studies.ab import first_arm, order

MOST_PAIRS = 200
QUESTIONS = ((0.0, 0.1), (0.05, 0.1), (0.1, 0.1), (0.2, 0.1), (0.0, 0.05), (0.1, 0.05))
"""By which share B is slower, and which --max-drop is asked for."""
PAIR_S = 5.7
"""What a pair takes with slices of 2 s after 0.5 s: the rest is the preparation of its databases."""

Ordering = Callable[[str, int, int], tuple[int, int]]
"""(first arm, seed, pair) → in which order the arms are measured, 0 or 1."""


def in_turns(first: str, seed: int, pair: int) -> tuple[int, int]:
    """Return the order of fixed turns, ABBA: what it would be if chance did not draw it."""
    begins = (first == "B") ^ (pair % 2)
    return begins, 1 - begins


ORDERINGS: dict[str, Ordering] = {"drawn": order, "in turns": in_turns}


@dataclass(frozen=True, slots=True)
class Row:
    """How tests of one kind ended."""

    noise: str
    ordering: str
    drop: float
    max_drop: float
    verdicts: dict[str, int]
    """How often each verdict was given."""
    pairs: float
    """Median."""

    @property
    def tests(self) -> int:
        """Return how many tests there were."""
        return sum(self.verdicts.values())

    def rate(self, verdict: str) -> float:
        """Return the share of tests with a verdict."""
        return self.verdicts.get(verdict, 0) / self.tests


def concluded(differences: Sequence[float], allowed: float, alpha: float) -> str:
    """Return what `conclude` does of one cell, a hundred times as fast: by counts instead of all averages."""
    most = critical(len(differences), alpha)
    if most < 0:
        return UNDECIDED
    if _averages_up_to(allowed, differences) <= most:
        return PASS
    return FAIL if _averages_up_to(-allowed, [-one for one in differences]) <= most else UNDECIDED


def _averages_up_to(limit: float, differences: Sequence[float]) -> int:
    """Return how many Walsh averages lie at or below a limit."""
    ordered = sorted(differences)
    partners = (bisect_right(ordered, 2 * limit - one) - at for at, one in enumerate(ordered))
    return sum(count for count in partners if count > 0)


def simulate(noise: Noise, ordering: Ordering, drop: float, max_drop: float, seed: int) -> tuple[str, int]:
    """Return the verdict of one test, and after how many pairs it was found."""
    slices, first = noise.slices(Random(f"{noise.name}:{drop}:{max_drop}:{seed}")), first_arm(seed)
    effect, allowed, found = math.log1p(-drop), tolerance("tps", max_drop), list[float]()
    for look in looks(MOST_PAIRS):
        for pair in range(len(found), look.pairs):
            measured = dict(zip(ordering(first, seed, pair), islice(slices, 2), strict=True))
            found.append(effect + measured[1] - measured[0])
        verdict = concluded(found, allowed, look.alpha)
        if verdict != UNDECIDED:
            return verdict, len(found)
    return INCONCLUSIVE, len(found)


def row(noise: str, ordering: str, drop: float, max_drop: float, tests: int) -> Row:
    """Return how so many tests ended."""
    model = next(one for one in NOISES if one.name == noise)
    verdicts, pairs = dict[str, int](), list[int]()
    for seed in range(tests):
        verdict, took = simulate(model, ORDERINGS[ordering], drop, max_drop, seed)
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
        pairs.append(took)
    return Row(noise, ordering, drop, max_drop, verdicts, median(pairs))


def rows(tests: int, workers: Executor, told: Callable[[Row], None]) -> list[Row]:
    """Return all rows; calls `told` with each."""
    kinds = [(noise.name, "drawn", *question) for noise in NOISES for question in QUESTIONS]
    kinds += [(noise, "in turns", *QUESTIONS[0]) for noise in ("autocorrelated", "periodic")]
    kinds += [(noise, "in turns", *QUESTIONS[2]) for noise in ("autocorrelated", "periodic")]
    waiting = [workers.submit(row, *kind, tests) for kind in kinds]
    done = []
    for future in waiting:
        done.append(future.result())
        told(done[-1])
    return done
