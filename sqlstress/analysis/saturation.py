"""Whether what was due at a rate was done: how much of it, and beyond which doubt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from sqlstress.report import Trial
from sqlstress.statistics.ratios import FEWEST, quantile

ACHIEVED = 0.99
"""Under this share of what was due, a case was saturated."""
_DEVIATIONS = 3.0
KEPT_UP, SATURATED, UNTOLD = "kept up", "saturated", "can't be told"


def achieved(trials: Sequence[Trial]) -> float | None:
    """Return which share of what was due in the windows was done in them; None where nothing was due.

    It is more than 1 where what was left from the warm-up was done too.
    """
    due = sum(trial.arrived.due for trial in trials if trial.arrived)
    return sum(trial.transactions for trial in trials if trial.arrived) / due if due else None


def saturation(trials: Sequence[Trial], error: float) -> str:
    """Say whether a case kept up with its rate; `error`: with which probability it may be called saturated.

    What is under way when the window opens, and when it closes, is chance: several windows say how much of it
    (Student's t). Of fewer, the shortfall must lie far beyond that of independent arrivals.
    """
    share = achieved(trials)
    if share is None or share >= ACHIEVED:
        return KEPT_UP
    shares = [one for trial in trials if (one := achieved([trial])) is not None]
    if len(shares) >= FEWEST and min(shares) > 0:
        logs = [math.log(one) for one in shares]
        reach = quantile(1 - error, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
        return SATURATED if fmean(logs) + reach < math.log(ACHIEVED) else UNTOLD
    due = sum(trial.arrived.due for trial in trials if trial.arrived)
    return SATURATED if (ACHIEVED - share) * due > _DEVIATIONS * math.sqrt(due) else UNTOLD
