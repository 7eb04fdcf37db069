"""The plots of cases that are layouts with numbers of processes: what they did, and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from sqlstress.analysis.group import Group, by_files
from sqlstress.analysis.wording import finite, laid_out, on_files, place, processes
from sqlstress.experiment import face_of
from sqlstress.report import Latency, Run, Trial
from sqlstress.show.plots import (
    Plain,
    Plot,
    View,
    apart,
    axis,
    colour,
    counts_axis,
    distributions,
    level,
    line,
    name,
)
from sqlstress.statistics.units import NS_PER_MS

# How much the processes did, together and each, and over the window.


ABOVE_MEASURED = 1.6
"""The ideal may leave the plot there: what was measured is what is looked at."""
BIN_S = 0.1
FEWEST_BINS = 6
"""Fewer are no course of anything."""


def throughput(group: Group) -> Iterator[Plot]:
    """Yield TPS against concurrency, a line for each layout and its ideal one."""
    # Of a published figure the number of processes may be unknown: it has no place on the axis.
    points = [point for point in group.points() if point.processes]
    if len({point.processes for point in points}) < 2:
        yield from _by_layout(group)
        return
    data, ideals = [], [0.0]
    layouts = by_files(points, lambda point: point.files)
    runs = by_files(group.runs, lambda run: run.case.buckets)
    for number, (layout, own) in enumerate(layouts.items()):
        curve = sorted((point.processes, point.tps) for point in own)
        first, tps = curve[0]
        ideal = [tps / first * count for count, _ in curve]
        data.append(_ideal(_name(layout, runs[layout]), [count for count, _ in curve], ideal, number))
        data.append(_measured(group.unit, runs[layout], curve, number))
        ideals += ideal
    top = min(max(ideals), ABOVE_MEASURED * max(point.tps for point in points))
    layout_of = {
        "xaxis": counts_axis("processes", (point.processes for point in points)),
        "yaxis": axis(f"{group.unit} a second", range=[0, 1.05 * top]),
        **apart(data),
    }
    note = "Dashed: the ideal, as many times the first point as there are processes."
    trials = " Bars: from the lowest trial to the highest." if any("error_y" in one for one in data) else ""
    yield Plot("Throughput", note + trials, (View("", data, layout_of),), wide="multiples" in layout_of)


def _measured(unit: str, runs: list[Run], curve: list[tuple[int, float]], number: int) -> Plain:
    case = runs[0].case
    where = _name(case.buckets, runs)
    hover = f"%{{x}} processes{on_files(case)}: %{{y:,.0f}} {unit}/s"
    trace = line(where, [count for count, _ in curve], [tps for _, tps in curve], number, hover)
    of_count = {run.case.concurrency: run for run in runs}
    return with_spread(trace, [of_count[count] for count, _ in curve], colour(number))


def with_spread(trace: Plain, runs: list[Run], shade: str) -> Plain:
    """Return a trace of runs with a bar from the lowest trial to the highest of each, where they differ."""
    rates = [[rate for trial in run.valid if (rate := finite(trial.tps)) is not None] for run in runs]
    if any(min(own) < max(own) for own in rates):
        over = [max(0.0, max(own) - tps) for own, tps in zip(rates, trace["y"], strict=True)]
        under = [max(0.0, tps - min(own)) for own, tps in zip(rates, trace["y"], strict=True)]
        trace["error_y"] = {"array": over, "arrayminus": under, "color": shade, "thickness": 1}
    return trace


def _name(layout: int, runs: list[Run]) -> str:
    """Return what the line of a layout is called."""
    return laid_out(layout, [run.case for run in runs]) or "measured"


def _ideal(where: str, counts: list[int], ideal: list[float], number: int) -> Plain:
    return {
        **line(f"{where}, ideal", counts, ideal, number, "", dash="dash"),
        "mode": "lines",
        "opacity": 0.55,
        "showlegend": False,
        "legendgroup": where,
        "hoverinfo": "skip",
    }


def _by_layout(group: Group) -> Iterator[Plot]:
    """Yield TPS of each layout, where there is one concurrency only."""
    points = group.points()
    if len({point.files for point in points}) < 2:
        return
    bars = {
        "type": "bar",
        "x": [laid_out(point.files, [run.case for run in group.runs]) for point in points],
        "y": [point.tps for point in points],
        "marker": {"color": colour(0)},
        "hovertemplate": f"%{{x}}: %{{y:,.0f}} {group.unit}/s",
    }
    layout = {"xaxis": axis(""), "yaxis": axis(f"{group.unit} a second"), "showlegend": False}
    yield Plot("Throughput", "Of all processes together.", (View("", [bars], layout),))


def _processes(run: Run) -> str:
    return processes(run.case.concurrency)


def over_time(group: Group, called: Callable[[Run], str] = _processes) -> Iterator[Plot]:
    """Yield the throughput in each tenth of a second of the window, layout by layout.

    `called` names the line of a run, which stands among those of its layout.
    """
    views = []
    for layout, runs in by_files(group.runs, lambda run: run.case.buckets).items():
        data = [trace for number, run in enumerate(runs) if (trace := _window(run, called(run), number))]
        if data:
            axes = {"xaxis": axis("seconds"), "yaxis": axis(f"{group.unit} a second", rangemode="tozero")}
            views.append(View(laid_out(layout, [run.case for run in runs]), data, {**axes, **apart(data)}))
    if views:
        note = "By tenths of a second: a steady load stays level."
        many = any("multiples" in view.layout for view in views)
        yield Plot("Over the window", note, tuple(views), wide=many)


def _window(run: Run, label: str, number: int) -> Plain | None:
    """Return the throughput of a run in each tenth of a second; None where those are none, or too few."""
    trial = run.typical()
    bins = [worker.bins for worker in trial.workers if worker.bins] if trial and not trial.error else []
    totals = [sum(column) / BIN_S for column in zip_longest(*bins, fillvalue=0)]
    if len(totals) < FEWEST_BINS:
        return None
    where = "".join(f"{one}, " for one in (label, laid_out(run.case.buckets, [run.case])) if one)
    hover = f"{where}%{{x:.1f}} s: %{{y:,.0f}}/s"
    seconds = [round(BIN_S * count, 1) for count in range(len(totals) + 1)]
    # The last tenth has a width too.
    trace = line(label, seconds, [*totals, totals[-1]], number, hover)
    return {**trace, "mode": "lines", "line": {**trace["line"], "width": 1.8, "shape": "hv"}}


APART = 0.14
"""How far the layouts stand apart, in processes."""


def shares(group: Group) -> Iterator[Plot]:
    """Yield a mark for each process: its work over that of an average one."""
    measured = [(run, trial) for run, trial in group.measured() if trial.workers and trial.transactions > 0]
    if all(len(trial.workers) < 2 for _, trial in measured):
        return
    layouts = by_files(measured, lambda one: one[0].case.buckets)
    data = [_marks(layout, own, number, len(layouts)) for number, (layout, own) in enumerate(layouts.items())]
    axes = {
        "xaxis": counts_axis("processes", (run.case.concurrency for run, _ in measured)),
        "yaxis": axis("share, equal = 1", rangemode="tozero"),
        "shapes": [level(1.0, "--muted")],
    }
    note = "A mark is a process. At 1 it was as fast as an average one; near 0 it starved."
    yield Plot("Who got how much", note, (View("", data, axes),))


def _marks(layout: int, measured: list[tuple[Run, Trial]], number: int, layouts: int) -> Plain:
    x, y, told = [], [], []
    for run, trial in measured:
        total = sum(worker.tps for worker in trial.workers)
        for worker in trial.workers:
            x.append(run.case.concurrency + APART * (number - (layouts - 1) / 2))
            y.append(worker.tps * len(trial.workers) / total if total else 0)
            told.append(
                f"process {worker.worker} of {processes(run.case.concurrency)}{on_files(run.case)}: "
                f"{worker.transactions:,} {face_of(run.case).units}"
            )
    return {
        "type": "scatter",
        "mode": "markers",
        "name": _name(layout, [run for run, _ in measured]),
        "x": x,
        "y": y,
        "text": told,
        "marker": {"color": colour(number), "size": 9, "opacity": 0.6},
        "hovertemplate": "%{text}, %{y:.2f} of an equal share",
    }


# How long operations took: percentiles of each kind, and how they are spread.


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


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group for which it has figures."""
    if group.parts:
        yield from plots_apart(group, histogram)
        return
    yield from throughput(group)
    yield from shares(group)
    yield from percentiles(group)
    yield from histogram(group)
    yield from over_time(group)


# Latencies of a group whose parts differ in one option: in one chart, over the processes or by value.


_PERCENTILES: tuple[tuple[str, str, Callable[[Latency], float | None]], ...] = (
    ("p99", "solid", lambda latency: latency.p99_ns),
    ("p50", "dash", lambda latency: latency.p50_ns),
)


def percentiles_apart(group: Group) -> Iterator[Plot]:
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


# Plots of a group whose parts differ in one option: a line or a bar for each value, and all in one chart.


Plots = Callable[[Group], Iterator[Plot]]
Series = tuple[str, Group, int]
"""A line: what it is called, whose it is, and of how many files."""


def plots_apart(group: Group, histogram: Plots) -> Iterator[Plot]:
    """Yield the plots of a group with parts; `histogram` makes the one that no two parts can share."""
    yield from throughput_apart(group)
    if sweeps(group):
        yield from _one_by_one(shares, group)
    else:
        yield from _shares_by_value(group)
    yield from percentiles_apart(group)
    yield from _one_by_one(histogram, group)
    if sweeps(group):
        yield from _one_by_one(over_time, group)
    else:
        yield from over_time(group, lambda run: name(group.value(run.case)))


def throughput_apart(group: Group) -> Iterator[Plot]:
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


def _one_by_one(draw: Plots, group: Group) -> Iterator[Plot]:
    """Yield a plot of parts that can't share axes: the views of all of them, to choose from."""
    found = [(group.value(part.case), plot) for part in group.parts for plot in draw(part)]
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
        total = sum(worker.tps for worker in trial.workers)
        for worker in trial.workers if total > 0 else ():
            x.append(name(group.value(run.case)))
            y.append(worker.tps * len(trial.workers) / total)
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
    note = "A mark is a process. At 1 it was as fast as an average one; near 0 it starved."
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
    curve = [
        (p.processes, p.tps) for p in sorted(part.points(), key=_number_of_processes) if p.files == layout
    ]
    if not curve:
        return None
    hover = f"{label}, %{{x}} processes: %{{y:,.0f}} {group.unit}/s"
    trace = line(label, [count for count, _ in curve], [tps for _, tps in curve], number, hover)
    return with_spread(trace, [runs[count] for count, _ in curve], colour(number))


def _number_of_processes(point: Any) -> int:
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
