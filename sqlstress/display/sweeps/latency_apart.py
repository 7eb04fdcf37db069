"""Latencies of a group whose parts differ in one option: in one chart, over the processes or by value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite
from sqlstress.display.plot import Plot, View, apart, axis, counts_axis, line, name
from sqlstress.report import Latency, Trial
from sqlstress.statistics.units import NS_PER_MS

_PERCENTILES: tuple[tuple[str, str, Callable[[Latency], float | None]], ...] = (
    ("p99", "solid", lambda latency: latency.p99_ns),
    ("p50", "dash", lambda latency: latency.p50_ns),
)


def percentiles(group: Group) -> Iterator[Plot]:
    """Yield half and 99 % of the latencies of each kind of operation, in the same way."""
    kinds = sorted(
        {kind for _, trial in group.measured() for kind, one in trial.latency.items() if one.count}
    )
    views = [view for kind in kinds for view in (_by_processes if sweeps(group) else _by_value)(group, kind)]
    if views:
        note = (
            "Waits for the lock included. p50 and p99: half and 99% of the operations were as fast or faster."
        )
        first = max((n for n, view in enumerate(views) if view.label.startswith("replace")), default=0)
        many = any("multiples" in view.layout for view in views)
        yield Plot("Latency percentiles", note, tuple(views), first, many)


def sweeps(group: Group) -> bool:
    """Say whether its cases have several numbers of processes."""
    return len({run.case.concurrency for run in group.runs}) > 1


def _by_processes(group: Group, kind: str) -> Iterator[View]:
    layouts = sorted({run.case.buckets for run in group.runs})
    for layout in layouts:
        data = []
        for number, part in enumerate(group.parts):
            value = name(group.value(part.case))
            own = sorted(
                (
                    (run.case.concurrency, trial)
                    for run, trial in part.measured()
                    if run.case.buckets == layout
                ),
                key=lambda one: one[0],
            )
            for percentile, dash, figure in _PERCENTILES:
                known = _known(own, kind, figure)
                if known:
                    label = f"{value} {percentile}"
                    hover = f"{label}, %{{x}} processes: %{{y:.3g}} ms"
                    counts, ms = [count for count, _ in known], [one for _, one in known]
                    data.append(line(label, counts, ms, number, hover, dash))
        if data:
            xaxis = counts_axis("processes", (run.case.concurrency for run in group.runs))
            yield View(group.at_layout(kind, layout), data, {"xaxis": xaxis, "yaxis": _MS, **apart(data)})


def _by_value(group: Group, kind: str) -> Iterator[View]:
    layouts = sorted({run.case.buckets for run in group.runs})
    for layout in layouts:
        own = [
            (name(group.value(run.case)), trial)
            for run, trial in group.measured()
            if run.case.buckets == layout
        ]
        data = []
        for number, (percentile, _, figure) in enumerate(_PERCENTILES):
            if known := _known(own, kind, figure):
                hover = f"%{{x}}: {percentile} %{{y:.3g}} ms"
                trace = line(percentile, [x for x, _ in known], [ms for _, ms in known], number, hover)
                data.append({**trace, "mode": "markers"})
        if data:
            axes = {"xaxis": axis(name(group.setting), type="category"), "yaxis": _MS}
            yield View(group.at_layout(kind, layout), data, axes)


_MS = axis("ms", type="log")


def _known(own: list[tuple[Any, Trial]], kind: str, figure: Callable[[Latency], float | None]) -> list[Any]:
    """Return (x, ms) where there is a figure."""
    found = ((x, figure(trial.latency[kind])) for x, trial in own if kind in trial.latency)
    return [(x, ns / NS_PER_MS) for x, value in found if (ns := finite(value)) and ns > 0]
