"""Plots of a group whose parts differ in one option: a line or a bar for each value, and all in one chart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import finite, place
from sqlstress.display.plot import Plain, Plot, View, apart, axis, colour, counts_axis, level, line, name
from sqlstress.display.sweeps.latency_apart import percentiles, sweeps
from sqlstress.display.sweeps.throughput import over_time, shares, with_spread
from sqlstress.report import Run

Plots = Callable[[Group], Iterator[Plot]]
Series = tuple[str, Group, int]
"""A line: what it is called, whose it is, and of how many files."""


def plots(group: Group, histogram: Plots) -> Iterator[Plot]:
    """Yield the plots of a group with parts; `histogram` makes the one that no two parts can share."""
    yield from throughput(group)
    if sweeps(group):
        yield from _one_by_one(shares, group)
    else:
        yield from _shares_by_value(group)
    yield from percentiles(group)
    yield from _one_by_one(histogram, group)
    if sweeps(group):
        yield from _one_by_one(over_time, group)
    else:
        yield from over_time(group, lambda run: name(group.value(run.case)))


def throughput(group: Group) -> Iterator[Plot]:
    """Yield what was done a second: over the processes, or if these are the same, by the values."""
    title = "Throughput"
    if sweeps(group):
        data = [trace for number, one in enumerate(_series(group)) if (trace := _rising(group, one, number))]
        xaxis = counts_axis("processes", (run.case.concurrency for run in group.runs))
        note = f"A line for each value of {name(group.setting)}."
    else:
        data = _bars(group)
        xaxis, note = axis(name(group.setting), type="category"), "Of all processes together."
    if data:
        spread = (
            " Bars: from the lowest trial to the highest." if any("error_y" in one for one in data) else ""
        )
        axes = {"xaxis": xaxis, "yaxis": axis(f"{group.unit} a second", rangemode="tozero")}
        more = apart(data)
        yield Plot(title, note + spread, (View("", data, {**axes, **more}),), wide=bool(more))


def _one_by_one(plots: Plots, group: Group) -> Iterator[Plot]:
    """Yield a plot of parts that can't share axes: the views of all of them, to choose from."""
    found = [(group.value(part.case), plot) for part in group.parts for plot in plots(part)]
    if found:
        views = tuple(
            View(f"{value}, {view.label}" if view.label else value, view.data, view.layout)
            for value, plot in found
            for view in plot.views
        )
        first = found[0][1]
        yield Plot(first.title, first.note, views, first.first, first.wide)


def _shares_by_value(group: Group) -> Iterator[Plot]:
    """Yield a mark for each process above the value that it ran with."""
    x, y, told = [], [], []
    for run, trial in group.measured():
        total = sum(worker.transactions for worker in trial.workers)
        for worker in trial.workers if total > 0 else ():
            x.append(name(group.value(run.case)))
            y.append(worker.transactions * len(trial.workers) / total)
            told.append(f"process {worker.worker}, {name(group.place(run.case))}")
    if len(x) == len(set(x)):
        return
    marks = {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "text": told,
        "marker": {"color": colour(0), "size": 9, "opacity": 0.6},
        "hovertemplate": "%{text}: %{y:.2f} of an equal share",
    }
    axes = {
        "xaxis": axis(name(group.setting), type="category"),
        "yaxis": axis("share, equal = 1", rangemode="tozero"),
        "shapes": [level(1.0, "--muted")],
        "showlegend": False,
    }
    note = "A mark is a process. At 1 it did as much as an average one; near 0 it starved."
    yield Plot("Who got how much", note, (View("", [marks], axes),))


def _series(group: Group) -> list[Series]:
    """Return a line for each value, or where there are several layouts, for each value on each of them."""
    layouts = sorted({run.case.buckets for run in group.runs})
    return [
        (group.at_layout(name(group.value(part.case)), layout), part, layout)
        for part in group.parts
        for layout in layouts
    ]


def _rising(group: Group, one: Series, number: int) -> Plain | None:
    label, part, layout = one
    runs = {run.case.concurrency: run for run in part.runs if run.case.buckets == layout}
    curve = [(p.processes, p.tps) for p in sorted(part.points(), key=_processes) if p.files == layout]
    if not curve:
        return None
    hover = f"{label}, %{{x}} processes: %{{y:,.0f}} {group.unit}/s"
    trace = line(label, [count for count, _ in curve], [tps for _, tps in curve], number, hover)
    return with_spread(trace, [runs[count] for count, _ in curve], colour(number))


def _processes(point: Any) -> int:
    return int(point.processes)


def _bars(group: Group) -> list[Plain]:
    """Return bars for each place, at which every value has one."""
    by_place: dict[tuple[int, int], list[tuple[str, Run, float]]] = {}
    for run, _ in group.measured():
        tps = finite(run.median_tps())
        if tps and run.verdict.status != "failed":
            at = run.case.buckets, run.case.concurrency
            by_place.setdefault(at, []).append((name(group.value(run.case)), run, tps))
    return [_bar(group, bars, number) for number, bars in enumerate(by_place.values())]


def _bar(group: Group, bars: list[tuple[str, Run, float]], number: int) -> Plain:
    where = place(bars[0][1].case)
    trace: Plain = {
        "type": "bar",
        "name": where,
        "x": [value for value, _, _ in bars],
        "y": [tps for _, _, tps in bars],
        "marker": {"color": colour(number)},
        "hovertemplate": f"%{{x}}, {where}: %{{y:,.0f}} {group.unit}/s",
    }
    return with_spread(trace, [run for _, run, _ in bars], "--muted")
