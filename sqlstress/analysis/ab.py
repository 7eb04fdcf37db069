"""What the pairs of an A/B test say, and its verdict in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sqlstress.analysis.wording import finite, percent, place, plural, rounded, times
from sqlstress.report import AbTest, Look, Report, Run, Trial
from sqlstress.report.ab import A, B
from sqlstress.statistics.gate import (
    FAIL,
    INCONCLUSIVE,
    PASS,
    UNDECIDED,
    conclude,
    geometric_means,
    is_drop,
    tolerance,
)
from sqlstress.statistics.gate import Look as Planned
from sqlstress.statistics.histogram import merge, percentile
from sqlstress.statistics.paired import hodges_lehmann, interval, upper_bound


def figure(trial: Trial, metric: str) -> float | None:
    """Return a trial's TPS, or the 99th percentile of all its operations in nanoseconds; None without one."""
    if metric == "p99":
        found = percentile(merge([dict(latency.buckets) for latency in trial.latency.values()]), 0.99)
    else:
        found = finite(trial.tps)
    return found or None


def cells(report: Report) -> list[tuple[Run, Run]]:
    """Return the runs of A and of B for each cell that both have."""
    arms = {name: [run for run in report.runs if run.arm == name] for name in (A, B)}
    return list(zip(arms[A], arms[B], strict=False))


def differences(report: Report, test: AbTest) -> list[list[float]]:
    """Return the differences of each cell, pair by pair: logarithms, below zero where B is worse.

    Only pairs count that every cell has.
    """
    sign = -1 if test.metric == "p99" else 1
    found = [_logarithms(a, b, test.metric) for a, b in cells(report)]
    common = set.intersection(*map(set, found)) if found else set()
    return [[sign * cell[pair] for pair in sorted(common)] for cell in found]


def _logarithms(a: Run, b: Run, metric: str) -> dict[int, float]:
    """Return {pair: the logarithm of B's figure over A's}."""
    own, other = (_figures(run, metric) for run in (a, b))
    return {pair: math.log(other[pair] / own[pair]) for pair in own.keys() & other.keys()}


def _figures(run: Run, metric: str) -> Mapping[int, float]:
    found = {trial.index: figure(trial, metric) for trial in run.valid}
    return {pair: value for pair, value in found.items() if value}


def look(report: Report, test: AbTest, planned: Planned, *, last: bool) -> Look:
    """Return what the pairs say at a look."""
    found = differences(report, test)
    verdict = conclude(found, tolerance(test.metric, test.max_drop), planned.alpha, last=last)
    return estimate(geometric_means(found), test.metric, planned.alpha, verdict)


def estimate(found: Sequence[float], metric: str, alpha: float, verdict: str = "undecided") -> Look:
    """Return what one or more differences say of the ratio of B's figure to A's."""
    bound, ends = upper_bound(found, alpha), interval(found)

    def ratio(difference: float) -> float:
        return math.exp(-difference if metric == "p99" else difference)

    low, high = sorted(map(ratio, ends)) if ends else (None, None)
    return Look(
        pairs=len(found),
        alpha=alpha,
        ratio=ratio(hodges_lehmann(found)),
        low=low,
        high=high,
        bound=None if bound is None else ratio(bound),
        verdict=verdict,
    )


NAMES = {"tps": "TPS", "p99": "p99"}

_SENTENCES = {
    FAIL: "FAIL: {what}. At most {allowed} is allowed: find out why before you take B.",
    PASS: "PASS: {what}. That is no {drop} of {allowed}.",
    INCONCLUSIVE: "INCONCLUSIVE: {what}. That neither shows nor rules out a {drop} of {allowed}: give longer "
    "slices (--duration), or measure where less else is running.",
    UNDECIDED: "Undecided: so far {what}. That is too little to conclude anything from.",
}


def conclusion(report: Report, test: AbTest) -> str:
    """Return the verdict, what was found, and what to do next."""
    if test.reason:
        return f"FAIL: {test.reason}. No figure counts before that is explained."
    what = found_change(report, test)
    if not what:
        return "Undecided: not one pair was measured."
    drop = "rise" if test.metric == "p99" else "drop"
    return _SENTENCES[test.verdict].format(what=what, allowed=percent(test.max_drop), drop=drop)


def found_change(report: Report, test: AbTest) -> str:
    """Return how B was found to differ from A, as a clause; "" when not one pair was measured."""
    found = geometric_means(differences(report, test)) if cells(report) else []
    if not found:
        return ""
    if test.verdict == FAIL and not test.reason:
        return _failing(report, test)
    return change(estimate(found, test.metric, 0.0), test.metric)


def _failing(report: Report, test: AbTest) -> str:
    """Return what fails: the mean of all cells, or the single cells that do."""
    alpha, allowed = test.looks[-1].alpha, tolerance(test.metric, test.max_drop)
    found = differences(report, test)
    means = geometric_means(found)
    if is_drop(means, alpha, allowed):
        return change(estimate(means, test.metric, alpha), test.metric)
    share = alpha / len(found)
    return "; ".join(
        f"at {place(run.case)} {change(estimate(cell, test.metric, share), test.metric)}"
        for (run, _), cell in zip(cells(report), found, strict=True)
        if is_drop(cell, share, allowed)
    )


def change(found: Look, metric: str) -> str:
    """Return how B differs from A, with the interval and the number of pairs."""
    ends = ""
    if found.low is not None and found.high is not None:
        ends = f"95% interval {signed(found.low)} to {signed(found.high)}, "
    return f"B's {NAMES[metric]} is {_relation(found.ratio)} ({ends}{plural(found.pairs, 'pair')})"


def _relation(ratio: float) -> str:
    if ratio >= 2:
        return f"{times(ratio)} A's"
    return f"{percent(abs(ratio - 1))} {'higher' if ratio > 1 else 'lower'} than A's"


def signed(ratio: float) -> str:
    """Write a ratio as a change: "+3.1%", "-24%", "6.3 times"."""
    if ratio >= 2:
        return times(ratio)
    share = rounded(abs(ratio - 1) * 100, 2) if abs(ratio - 1) >= 0.0005 else "0"
    return f"{'' if share == '0' else '+' if ratio > 1 else '-'}{share}%"
