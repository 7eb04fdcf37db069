"""How far the figures of a group can be trusted: steadiness, spread, and what measuring itself cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import duration, finite, percent, place, places
from sqlstress.experiment import face_of
from sqlstress.statistics.units import NS_PER_S

UNSTEADY_OVER = 0.10
"""The halves of a window may differ by this share."""
PROOF_OVER = 0.05
"""A proof that takes this share of the window is mentioned."""


def trust(group: Group) -> Iterator[Finding]:
    """Yield what qualifies the figures of a group."""
    yield from _unsteady(group)
    yield from _spread(group)
    yield from _harness(group)
    yield from _proof(group)


def _unsteady(group: Group) -> Iterator[Finding]:
    changes = [
        (run.case, ratio - 1)
        for run, trial in group.measured()
        if (ratio := finite(trial.half_ratio)) is not None and abs(ratio - 1) > UNSTEADY_OVER
    ]
    if changes:
        largest = max((change for _, change in changes), key=abs)
        direction = "faster" if largest > 0 else "slower"
        yield Finding(
            "not-steady",
            f"Not steady at {places(case for case, _ in changes)}: the second half of the window was up to "
            f"{percent(abs(largest))} {direction} than the first. Measure longer (--duration).",
        )


def _spread(group: Group) -> Iterator[Finding]:
    ranges = []
    for run in group.runs:
        rates = [rate for trial in run.valid if (rate := finite(trial.tps)) is not None]
        middle = finite(run.median_tps())
        if len(rates) > 1 and middle:
            ranges.append(((max(rates) - min(rates)) / middle, place(run.case)))
    if ranges:
        widest, where = max(ranges)
        yield Finding("spread", f"Trials of the same case differ by up to {percent(widest)} ({where}).")


def _harness(group: Group) -> Iterator[Finding]:
    if group.case.driver == "dry":
        return
    costs = []
    for run, trial in group.measured():
        cost, rate = finite(run.harness_ns), finite(trial.tps_per_process)
        if cost and rate:
            # Beside a real store, with colder caches and neighbours on the processor, it takes longer.
            measured = _mean_share([worker.harness_share for worker in trial.workers])
            costs.append((max(measured, cost * rate / NS_PER_S), cost, place(run.case)))
    if costs:
        share, cost, where = max(costs)
        yield Finding(
            "harness-cost",
            f"The harness itself took at most {percent(share)} of the processes' time (at {where}); with a "
            f"store that does nothing it takes {duration(cost)} for each {face_of(group.case).unit}.",
        )


def _proof(group: Group) -> Iterator[Finding]:
    shares = [
        (share, place(run.case))
        for run, trial in group.measured()
        if (share := _mean_share([worker.proof_share for worker in trial.workers]))
    ]
    share, where = max(shares, default=(0.0, ""))
    if share > PROOF_OVER:
        yield Finding(
            "proof-cost",
            f"The proof took up to {percent(share)} of the window (at {where}): "
            "--verify none measures without it.",
        )


def _mean_share(shares: Sequence[float]) -> float:
    """Return the mean of the processes' shares of the window, as far as they are known."""
    return math.fsum(finite(share) or 0.0 for share in shares) / len(shares) if shares else 0.0
