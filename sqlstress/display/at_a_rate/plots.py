"""Plots of cases at a rate: latency over rate, and where the time went."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite, on_files, processes
from sqlstress.display.at_a_rate.findings import curves
from sqlstress.display.at_a_rate.table import from_due, service
from sqlstress.display.distribution import distributions
from sqlstress.display.plot import Plain, Plot, View, axis, line
from sqlstress.report import Latency, Run
from sqlstress.statistics.units import NS_PER_MS

PERCENTILES: dict[str, Callable[[Latency], float | None]] = {
    "p50": lambda latency: latency.p50_ns,
    "p99": lambda latency: latency.p99_ns,
    "p99.9": lambda latency: latency.p999_ns,
    "max": lambda latency: latency.max_ns,
}


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots for which a group has figures."""
    yield from over_rate(group)
    yield from _apart(group)


def over_rate(group: Group) -> Iterator[Plot]:
    """Yield the latencies over the rate, a view for each layout and number of processes."""
    views = []
    for part in group.parts or (group,):
        for (_, count), runs in curves(part.runs).items():
            data = list(_lines([run for run in runs if run.valid]))
            if data and len(data[0]["x"]) > 1:
                value = f"{group.value(part.case)}, " if group.setting else ""
                axes = {"xaxis": axis("due in a second"), "yaxis": axis("ms", type="log")}
                views.append(View(f"{value}{processes(count)}{on_files(runs[0].case)}", data, axes))
    if views:
        note = (
            "From the moment an operation was due. Dashed: from its begin only, which leaves the queue out."
        )
        yield Plot("Latency over rate", note, tuple(views), wide=True)


def _lines(runs: Sequence[Run]) -> Iterator[Plain]:
    for number, (percentile, figure) in enumerate(PERCENTILES.items()):
        yield from _line(percentile, [(run, from_due(run)) for run in runs], figure, number, "solid")
    yield from _line("service p99", [(run, service(run)) for run in runs], PERCENTILES["p99"], 1, "dash")


def _line(
    label: str,
    measured: Sequence[tuple[Run, Latency | None]],
    figure: Callable[[Latency], float | None],
    number: int,
    dash: str,
) -> Iterator[Plain]:
    known = [
        (run.case.arrivals.rate, ns / NS_PER_MS)
        for run, one in measured
        if run.case.arrivals and one and (ns := finite(figure(one))) and ns > 0
    ]
    if known:
        rates, values = zip(*known, strict=True)
        yield line(label, rates, values, number, f"%{{x:,.0f}}/s: {label} %{{y:.3g}} ms", dash=dash)


def _apart(group: Group) -> Iterator[Plot]:
    """Yield the distributions of each case: from the moment an operation was due, and from its begin."""
    return distributions(
        "Latency and service time",
        (
            (run.case, (("from when it was due", from_due(run)), ("from its begin (service)", service(run))))
            for run in group.runs
        ),
    )
