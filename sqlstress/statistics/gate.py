"""The gate: after how many pairs one looks, and what is concluded from them.

Looking three times at the usual 1 % would raise more false alarms than that, so most of the error rate is
kept for the last look. Differences are natural logarithms of ratios, below zero where B is worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from sqlstress.statistics.paired import hodges_lehmann, upper_bound

FAIL, PASS, INCONCLUSIVE, UNDECIDED = VERDICTS = ("fail", "pass", "inconclusive", "undecided")
"""What can be concluded; undecided: more pairs are needed."""
METRICS = ("tps", "p99")


class Look(NamedTuple):
    """A number of pairs after which one looks, and how often a drop may be seen then that is none."""

    pairs: int
    alpha: float


LOOKS = (Look(10, 0.001), Look(20, 0.004), Look(30, 0.008))


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far B may be worse than A, in logarithms: both are below zero."""

    fail_below: float
    """An estimate below it is a drop that is not allowed."""
    pass_above: float
    """An estimate above it, half of the allowed drop, is fine."""


def tolerance(metric: str, max_drop: float) -> Tolerance:
    """Return what a share allows: TPS may fall by it, or p99 rise by it. A report may hold any share."""
    max_drop = max(0.0, max_drop)
    if metric == "p99":
        return Tolerance(-math.log1p(max_drop), -math.log1p(max_drop / 2))
    if max_drop >= 1:
        return Tolerance(-math.inf, -math.inf)
    return Tolerance(math.log1p(-max_drop), math.log1p(-max_drop / 2))


def is_drop(differences: Sequence[float], alpha: float, allowed: Tolerance) -> bool:
    """Say whether B is worse by more than is allowed, with B being worse at all beyond doubt."""
    bound = upper_bound(differences, alpha)
    return bound is not None and bound < 0 and hodges_lehmann(differences) < allowed.fail_below


def geometric_means(cells: Sequence[Sequence[float]]) -> list[float]:
    """Return the difference of each pair: the mean of its logarithms over the cells."""
    return [fmean(pair) for pair in zip(*cells, strict=True)]


def conclude(cells: Sequence[Sequence[float]], allowed: Tolerance, alpha: float, *, last: bool) -> str:
    """Return one of VERDICTS. `cells` holds the differences of each cell, pair by pair.

    The geometric mean of the cells is judged; a single cell can only fail, at alpha over their number
    (Bonferroni).
    """
    means = geometric_means(cells)
    share = alpha / len(cells)
    if is_drop(means, alpha, allowed) or any(is_drop(cell, share, allowed) for cell in cells):
        return FAIL
    if hodges_lehmann(means) > allowed.pass_above:
        return PASS
    return INCONCLUSIVE if last else UNDECIDED
