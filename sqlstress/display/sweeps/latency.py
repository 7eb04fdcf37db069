"""How long operations took: percentiles of each kind, and how they are spread."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlstress.analysis.group import Group, by_files
from sqlstress.analysis.wording import finite, laid_out
from sqlstress.display.distribution import distributions
from sqlstress.display.plot import Plain, Plot, View, axis, counts_axis, line
from sqlstress.report import Latency, Run, Trial
from sqlstress.statistics.units import NS_PER_MS

PERCENTILES: dict[str, Callable[[Latency], float | None]] = {
    "p50": lambda latency: latency.p50_ns,
    "p90": lambda latency: latency.p90_ns,
    "p99": lambda latency: latency.p99_ns,
    "p99.9": lambda latency: latency.p999_ns,
    "max": lambda latency: latency.max_ns if latency.count else None,
}

Measured = list[tuple[Run, Trial]]


def percentiles(group: Group) -> Iterator[Plot]:
    """Yield the percentiles of each kind of operation, layout by layout."""
    measured = list(group.measured())
    layouts = by_files(measured, lambda one: one[0].case.buckets)
    views = [
        View(", ".join(filter(None, (kind, laid_out(layout, [run.case for run, _ in own])))), data, axes)
        for kind in _kinds(measured)
        for layout, own in layouts.items()
        for data, axes in _percentiles(own, kind)
    ]
    if views:
        note = "Waits for the lock included. 50, 90, 99 and 99.9% of the operations were as fast or faster."
        yield Plot("Latency percentiles", note, tuple(views), _first(views, "replace"))


def _kinds(measured: Measured) -> list[str]:
    return sorted({kind for _, trial in measured for kind, one in trial.latency.items() if one.count > 0})


def _first(views: list[View], kind: str) -> int:
    """Return the place of the last view of a kind: writes, on the most files, are what is looked for."""
    found = [place for place, view in enumerate(views) if view.label.partition(",")[0] == kind]
    return found[-1] if found else 0


def _percentiles(measured: Measured, kind: str) -> Iterator[tuple[list[Plain], Plain]]:
    found = sorted(
        ((run.case.concurrency, trial.latency[kind]) for run, trial in measured if kind in trial.latency),
        key=lambda one: one[0],
    )
    data = []
    for number, (percentile, value) in enumerate(PERCENTILES.items()):
        known = [(count, ns) for count, one in found if (ns := finite(value(one))) and ns > 0]
        if known:
            counts, values = [count for count, _ in known], [ns / NS_PER_MS for _, ns in known]
            hover = f"%{{x}} processes: {percentile} %{{y:.3g}} ms"
            data.append(line(percentile, counts, values, number, hover))
    if data:
        axes = {
            "xaxis": counts_axis("processes", (count for count, _ in found)),
            "yaxis": axis("ms", type="log"),
        }
        yield data, axes


def histogram(group: Group) -> Iterator[Plot]:
    """Yield the distribution of the latencies of each case."""
    return distributions(
        "Latency histogram", ((run.case, sorted(trial.latency.items())) for run, trial in group.measured())
    )
