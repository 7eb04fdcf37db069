"""Estimates: how the rates of two cases compare, and what their trials' own noise lets one say of it.

The ratio is that of `check`: the Hodges-Lehmann estimate of the logarithms, over all pairs of trials, with
its exact interval (Mann-Whitney). Trials are what is independent, so a case of one trial has no interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlstress.analysis.group import EQUAL as NEAR
from sqlstress.analysis.group import rate_of
from sqlstress.analysis.wording import finite
from sqlstress.report import Run
from sqlstress.statistics.unpaired import interval, shift

ALPHA = 0.05
"""How often at most one of a comparison's intervals misses what it is about."""
MOST_TRIALS = 300
"""So many trials of a case are looked at; a report can hold any number."""

TOO_FEW, OPEN, EQUAL, DIFFERENT = "too few trials", "can't be told apart", "about equal", "different"


@dataclass(frozen=True, slots=True)
class Estimate:
    """One rate over another."""

    ratio: float
    low: float | None
    """Lower end of its interval; None for too few trials."""
    high: float | None
    """Upper end."""

    @property
    def verdict(self) -> str:
        """What can be said: DIFFERENT, EQUAL, OPEN (the interval holds 1, and is wide) or TOO_FEW."""
        if self.low is None or self.high is None:
            return TOO_FEW
        if not self.low <= 1 <= self.high:
            return DIFFERENT
        return EQUAL if self.low > 1 - NEAR and self.high < 1 / (1 - NEAR) else OPEN


def logarithms(run: Run | None) -> list[float]:
    """Return the logarithms of the rates of a run's trials; none where one of them has no rate.

    To leave out a trial that stood still would flatter the case.
    """
    if run is None or rate_of(run) is None:
        return []
    trials = run.valid[:MOST_TRIALS]
    found = [rate for trial in trials if (rate := rate_of(replace(run, trials=(trial,))))]
    return [math.log(rate) for rate in found] if len(found) == len(trials) else []


def estimate(base: Sequence[float], other: Sequence[float], confidence: float) -> Estimate | None:
    """Return how rates compare, from their logarithms; None without any."""
    if not base or not other:
        return None
    ratio = finite(_exponential(shift(base, other)))
    ends = interval(base, other, confidence)
    low, high = map(_exponential, ends) if ends else (None, None)
    return None if ratio is None else Estimate(ratio, low, high)


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:  # of a report that somebody made up
        return math.inf
