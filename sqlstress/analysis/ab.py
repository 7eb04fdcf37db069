"""What the pairs of an A/B test say."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from sqlstress.analysis.wording import finite, rounded, times
from sqlstress.report import AbTest, Latency, Look, Report, Run, Trial
from sqlstress.report.ab import A, B
from sqlstress.statistics.gate import UNDECIDED, conclude, geometric_means, tolerance
from sqlstress.statistics.gate import Look as Planned
from sqlstress.statistics.histogram import merge, percentile
from sqlstress.statistics.paired import bounds, hodges_lehmann, interval


def figure(trial: Trial, metric: str) -> float | None:
    """Return a trial's TPS, or the 99th percentile of all its operations in nanoseconds; None without one.

    At a rate an operation is timed from when it was due, or a stall would count once, not for all it delayed.
    """
    if metric == "p99":
        found = percentile(merge([dict(one.buckets) for one in _timed(trial)]), 0.99)
    else:
        found = finite(trial.tps)
    # A file may say anything: there is no logarithm of what is not above 0.
    return found if found and found > 0 else None


def _timed(trial: Trial) -> Collection[Latency]:
    """Return the latencies of whole operations: those of a script's statements stand beside its own."""
    if trial.arrived:
        return trial.arrived.latency.values()
    whole = {kind for worker in trial.workers for kind in worker.operations} & trial.latency.keys()
    return [one for kind, one in trial.latency.items() if kind in whole or not whole]


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


def look(report: Report, test: AbTest, planned: Planned) -> Look:
    """Return what the pairs say at a look: its verdict is fail, pass or undecided."""
    found = differences(report, test)
    verdict = conclude(found, tolerance(test.metric, test.max_drop), planned.alpha)
    return estimate(geometric_means(found), test.metric, planned.alpha, verdict)


def estimate(found: Sequence[float], metric: str, alpha: float, verdict: str = UNDECIDED) -> Look:
    """Return what one or more differences say of the ratio of B's figure to A's."""
    judged, ends = bounds(found, alpha), interval(found)

    def ratio(difference: float) -> float:
        return math.exp(-difference if metric == "p99" else difference)

    low, high = sorted(map(ratio, ends)) if ends else (None, None)
    return Look(
        pairs=len(found),
        alpha=alpha,
        ratio=ratio(hodges_lehmann(found)),
        low=low,
        high=high,
        bound=ratio(judged[1]) if judged else None,
        verdict=verdict,
        worst=ratio(judged[0]) if judged else None,
    )


NAMES = {"tps": "TPS", "p99": "p99"}


def signed(ratio: float) -> str:
    """Write a ratio as a change: "+3.1%", "-24%", "6.3 times"."""
    if ratio >= 2:
        return times(ratio)
    share = rounded(abs(ratio - 1) * 100, 2) if abs(ratio - 1) >= 0.0005 else "0"
    return f"{'' if share == '0' else '+' if ratio > 1 else '-'}{share}%"
