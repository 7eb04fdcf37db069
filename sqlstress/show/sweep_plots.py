"""Plots of throughput and latency for cases with different numbers of processes and files.

A run is all trials of a case, and a layout is a number of files (buckets). A group (runs in one table) can
compare the values of one option, `group.setting`. If so, each value has a line by number of processes, or a
bar if this number is constant. A plot has one or more views, among which the user chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product, zip_longest

from sqlstress.analysis.group import Group, Point, by_files
from sqlstress.analysis.wording import buckets_label, layout_suffix, place, processes
from sqlstress.experiment import units_of
from sqlstress.report import Latency, Run, Trial
from sqlstress.report.results import WorkerResult
from sqlstress.show.plots import (
    PERCENTILES,
    Plain,
    Plot,
    View,
    axis,
    colour,
    counts_axis,
    distributions,
    latency_lines,
    level,
    line,
    marks,
    name,
    view_of,
)
from sqlstress.statistics.units import finite


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group. Plots without figures are left out."""
    if not group.parts:
        for draw in (throughput, shares, percentiles, histogram, over_time):
            yield from draw(group)
        return
    yield from throughput_by_value(group)
    yield from _view_per_value(shares, group) if _processes_vary(group) else _shares_by_value(group)
    yield from percentiles(group)
    yield from _view_per_value(histogram, group)
    if _processes_vary(group):
        yield from _view_per_value(over_time, group)
    else:
        yield from over_time(group, lambda run: name(group.value(run.case)))


def _processes_vary(group: Group) -> bool:
    return len({run.case.concurrency for run in group.runs}) > 1


def _view_per_value(draw: Callable[[Group], Iterator[Plot]], group: Group) -> Iterator[Plot]:
    """Draw the plot for each value of the compared option. Yield one plot with all views of these plots."""
    drawn = [(group.value(part.case), plot) for part in group.parts for plot in draw(part)]
    if drawn:
        views = tuple(
            View(f"{value}, {view.label}" if view.label else value, view.data, view.layout)
            for value, plot in drawn
            for view in plot.views
        )
        yield replace(drawn[0][1], views=views)


MAX_IDEAL_RATIO = 1.6
"""Maximum of the TPS axis, as a multiple of the highest TPS. Lines of proportional growth end there."""
BIN_S = 0.1
"""Length of the intervals in which workers count their transactions, in seconds."""
MIN_BINS = 6
"""Minimum number of intervals of BIN_S for a line of TPS over time. A shorter trial has no line."""


def throughput(group: Group) -> Iterator[Plot]:
    """Yield the plot of TPS by number of processes, with dashed lines for proportional growth."""
    # Published figures with an unknown number of processes have no place on the axis.
    points = [point for point in group.points() if point.processes]
    if len({point.processes for point in points}) < 2:
        yield from _throughput_by_files(group)
        return
    data: list[Plain] = []
    highest_ideal = 0.0
    runs = by_files(group.runs, lambda run: run.case.buckets)
    for number, (layout, layout_points) in enumerate(by_files(points, lambda point: point.files).items()):
        where = _line_name(layout, runs[layout])
        hover = f"%{{x}} processes{layout_suffix(runs[layout][0].case)}: %{{y:,.0f}} {group.unit}/s"
        measured = _throughput_line(where, layout_points, runs[layout], number, hover)
        counts, rates = measured["x"], measured["y"]
        ideal = [rates[0] / counts[0] * count for count in counts]
        highest_ideal = max(highest_ideal, *ideal)
        dashed = {
            **line(f"{where}, ideal", counts, ideal, number, "", dash="dash"),
            "mode": "lines",
            "opacity": 0.55,
            "showlegend": False,
            "legendgroup": where,
            "hoverinfo": "skip",
        }
        data += [dashed, measured]
    top = min(highest_ideal, MAX_IDEAL_RATIO * max(point.tps for point in points))
    xaxis = counts_axis(point.processes for point in points)
    yaxis = axis(f"{group.unit} per second", range=[0, 1.05 * top])
    note = f"Dashed: the ideal, as many times the first point as there are processes.{_spread_note(data)}"
    yield Plot("Throughput", note, (view_of("", data, xaxis, yaxis),))


def throughput_by_value(group: Group) -> Iterator[Plot]:
    """Yield one plot of TPS, with a line or a bar for each value of the compared option."""
    if _processes_vary(group):
        data = list(_curves_by_value(group))
        xaxis = counts_axis(run.case.concurrency for run in group.runs)
        note = f"A line for each value of {name(group.setting)}."
    else:
        data = list(_bars_by_value(group))
        xaxis, note = axis(name(group.setting), type="category"), "All processes together."
    if data:
        yaxis = axis(f"{group.unit} per second", rangemode="tozero")
        yield Plot("Throughput", note + _spread_note(data), (view_of("", data, xaxis, yaxis),))


def _curves_by_value(group: Group) -> Iterator[Plain]:
    """Yield lines of TPS by number of processes: a line for each value of the option and number of files."""
    layouts = sorted({run.case.buckets for run in group.runs})
    for number, (part, layout) in enumerate(product(group.parts, layouts)):
        label = group.layout_value_label(name(group.value(part.case)), layout)
        points = [point for point in part.points() if point.files == layout]
        runs = [run for run in part.runs if run.case.buckets == layout]
        hover = f"{label}, %{{x}} processes: %{{y:,.0f}} {group.unit}/s"
        if points:
            yield _throughput_line(label, points, runs, number, hover)


def _bars_by_value(group: Group) -> Iterator[Plain]:
    """Yield bars of TPS by value of the option: a set of bars for each number of files and processes."""
    by_place: dict[tuple[int, int], list[tuple[str, Run, float]]] = {}
    for run, _ in group.measured():
        tps = finite(run.median_tps())
        if tps and run.verdict.status != "failed":
            value = name(group.value(run.case))
            by_place.setdefault((run.case.buckets, run.case.concurrency), []).append((value, run, tps))
    for number, bars in enumerate(by_place.values()):
        values, runs, rates = (list(column) for column in zip(*bars, strict=True))
        where = place(runs[0].case)
        trace: Plain = {
            "type": "bar",
            "name": where,
            "x": values,
            "y": rates,
            "marker": {"color": colour(number)},
            "hovertemplate": f"%{{x}}, {where}: %{{y:,.0f}} {group.unit}/s",
        }
        yield _with_spread(trace, runs, "--muted")


def _throughput_by_files(group: Group) -> Iterator[Plot]:
    points = group.points()
    if len({point.files for point in points}) < 2:
        return
    bars = {
        "type": "bar",
        "x": [buckets_label(point.files, [run.case for run in group.runs]) for point in points],
        "y": [point.tps for point in points],
        "marker": {"color": colour(0)},
        "hovertemplate": f"%{{x}}: %{{y:,.0f}} {group.unit}/s",
    }
    layout = {"xaxis": axis(""), "yaxis": axis(f"{group.unit} per second"), "showlegend": False}
    yield Plot("Throughput", "All processes together.", (View("", [bars], layout),))


def _throughput_line(
    label: str, points: Iterable[Point], runs: Iterable[Run], number: int, hover: str
) -> Plain:
    """Return the line of TPS by number of processes, with error bars from the lowest trial to the highest."""
    curve = sorted((point.processes, point.tps) for point in points)
    of_count = {run.case.concurrency: run for run in runs}
    trace = line(label, [count for count, _ in curve], [tps for _, tps in curve], number, hover)
    return _with_spread(trace, [of_count[count] for count, _ in curve], colour(number))


def _with_spread(trace: Plain, runs: list[Run], shade: str) -> Plain:
    """Add error bars, from the lowest trial to the highest of each run, to a trace. Return the trace."""
    rates = [[rate for trial in run.valid if (rate := finite(trial.tps)) is not None] for run in runs]
    if any(min(trial_rates) < max(trial_rates) for trial_rates in rates):
        over = [max(0.0, max(trial_rates) - tps) for trial_rates, tps in zip(rates, trace["y"], strict=True)]
        under = [max(0.0, tps - min(trial_rates)) for trial_rates, tps in zip(rates, trace["y"], strict=True)]
        trace["error_y"] = {"array": over, "arrayminus": under, "color": shade, "thickness": 1}
    return trace


def _spread_note(data: Iterable[Plain]) -> str:
    """Return a space and a sentence that explains the error bars; "" if no trace has error bars."""
    return " Bars: from the lowest trial to the highest." if any("error_y" in trace for trace in data) else ""


def _line_name(layout: int, runs: Iterable[Run]) -> str:
    """Return the name of a line: "20 buckets", or "measured" if the experiment has a single file."""
    return buckets_label(layout, [run.case for run in runs]) or "measured"


def over_time(
    group: Group, line_label: Callable[[Run], str] = lambda run: processes(run.case.concurrency)
) -> Iterator[Plot]:
    """Yield the plot of TPS over the measured time. `line_label` returns the label of a run's line."""
    views = []
    for layout, runs in by_files(group.runs, lambda run: run.case.buckets).items():
        data = [
            trace for number, run in enumerate(runs) if (trace := _window_line(run, line_label(run), number))
        ]
        if data:
            label = buckets_label(layout, [run.case for run in runs])
            yaxis = axis(f"{group.unit} per second", rangemode="tozero")
            views.append(view_of(label, data, axis("seconds"), yaxis))
    if views:
        yield Plot("Over the window", "In steps of 0.1 s: a steady load stays level.", tuple(views))


def _window_line(run: Run, label: str, number: int) -> Plain | None:
    """Return the line of TPS over time in a run's median trial; None for fewer than MIN_BINS intervals."""
    trial = run.typical()
    bins = [worker.bins for worker in trial.workers if worker.bins] if trial and not trial.error else []
    totals = [sum(column) / BIN_S for column in zip_longest(*bins, fillvalue=0)]
    if len(totals) < MIN_BINS:
        return None
    where = "".join(f"{part}, " for part in (label, buckets_label(run.case.buckets, [run.case])) if part)
    hover = f"{where}%{{x:.1f}} s: %{{y:,.0f}}/s"
    seconds = [round(BIN_S * count, 1) for count in range(len(totals) + 1)]
    # Repeat the last value, so that the line extends to the end of the last interval.
    return line(label, seconds, [*totals, totals[-1]], number, hover, width=1.8, shape="hv")


LAYOUT_OFFSET = 0.14
"""Distance on the x axis, in processes, between marks for different numbers of files, to show all marks."""


def shares(group: Group) -> Iterator[Plot]:
    """Yield the plot of the rate of each process / the mean rate; nothing if all trials had one process."""
    measured = [(run, trial) for run, trial in group.measured() if trial.workers and trial.transactions > 0]
    if all(len(trial.workers) < 2 for _, trial in measured):
        return
    layouts = by_files(measured, lambda pair: pair[0].case.buckets)
    data = []
    for number, (layout, layout_runs) in enumerate(layouts.items()):
        offset = LAYOUT_OFFSET * (number - (len(layouts) - 1) / 2)
        x, y, hover_texts = [], [], []
        for run, worker, share in _shares_of(layout_runs):
            x.append(run.case.concurrency + offset)
            y.append(share)
            hover_texts.append(
                f"process {worker.worker} of {processes(run.case.concurrency)}{layout_suffix(run.case)}: "
                f"{worker.transactions:,} {units_of(run.case)}"
            )
        where = _line_name(layout, [run for run, _ in layout_runs])
        hover = "%{text}, %{y:.2f} of an equal share"
        data.append(marks(where, x, y, hover, hover_texts, color=colour(number), size=9, opacity=0.6))
    xaxis = counts_axis(run.case.concurrency for run, _ in measured)
    yield _shares_plot(data, xaxis, {})


def _shares_by_value(group: Group) -> Iterator[Plot]:
    x, y, hover_texts = [], [], []
    for run, worker, share in _shares_of(group.measured()):
        if share:
            x.append(name(group.value(run.case)))
            y.append(share)
            hover_texts.append(f"process {worker.worker}, {name(group.place(run.case))}")
    if len(x) > len(set(x)):
        hover = "%{text}: %{y:.2f} of an equal share"
        trace = marks("", x, y, hover, hover_texts, color=colour(0), size=9, opacity=0.6)
        del trace["name"]
        yield _shares_plot([trace], axis(name(group.setting), type="category"), {"showlegend": False})


def _shares_of(measured: Iterable[tuple[Run, Trial]]) -> Iterator[tuple[Run, WorkerResult, float]]:
    """Yield (run, worker, rate / mean rate of the trial's workers) for each worker."""
    for run, trial in measured:
        total = sum(worker.tps for worker in trial.workers)
        for worker in trial.workers:
            yield run, worker, worker.tps * len(trial.workers) / total if total else 0


def _shares_plot(data: list[Plain], xaxis: Plain, more: Plain) -> Plot:
    yaxis = axis("share, equal = 1", rangemode="tozero")
    layout = {"xaxis": xaxis, "yaxis": yaxis, "shapes": [level(1.0, "--muted")], **more}
    note = "A mark is a process. At 1 it was as fast as an average one; near 0 it starved."
    return Plot("Share of each process", note, (View("", data, layout),))


Measured = list[tuple[Run, Trial]]
"""Runs, each with its valid trial of median TPS."""
_MS = axis("ms", type="log")
_COMPARED_PERCENTILES = (("p99", "solid"), ("p50", "dash"))
"""Percentiles to show for each value of an option, with the style of the line."""


def percentiles(group: Group) -> Iterator[Plot]:
    """Yield the plot of latency percentiles, a view for each kind of operation and number of files."""
    draw = _percentiles if not group.parts else _over_processes if _processes_vary(group) else _over_values
    measured = list(group.measured())
    kinds = {kind for _, trial in measured for kind, latency in trial.latency.items() if latency.count > 0}
    by_layout = by_files(measured, lambda pair: pair[0].case.buckets)
    views = []
    for kind, (layout, layout_runs) in product(sorted(kinds), by_layout.items()):
        where = buckets_label(layout, [run.case for run, _ in layout_runs])
        whole = ", ".join(filter(None, (kind, where)))
        label = group.layout_value_label(kind, layout) if group.parts else whole
        if (view := draw(group, layout_runs, kind, label)).data:
            views.append(view)
    if views:
        shown = "p50 and p99: 50% and 99%" if group.parts else "50, 90, 99 and 99.9%"
        note = f"Including waits for the lock. {shown} of the operations took at most this long."
        # Writes with the most files matter most, so they are shown first.
        writes = [number for number, view in enumerate(views) if view.label.partition(",")[0] == "replace"]
        yield Plot("Latency percentiles", note, tuple(views), writes[-1] if writes else 0)


def _by_processes(measured: Measured, kind: str) -> list[tuple[int, Latency]]:
    latencies = (
        (run.case.concurrency, trial.latency[kind]) for run, trial in measured if kind in trial.latency
    )
    return sorted(latencies, key=lambda pair: pair[0])


def _percentiles(group: Group, measured: Measured, kind: str, label: str) -> View:
    latencies = _by_processes(measured, kind)
    data: list[Plain] = []
    for number, percentile in enumerate(PERCENTILES):
        hover = f"%{{x}} processes: {percentile} %{{y:.3g}} ms"
        data += latency_lines(percentile, latencies, percentile, number, hover)
    axes = {"xaxis": counts_axis(count for count, _ in latencies), "yaxis": _MS}
    return View(label, data, axes)


def _over_processes(group: Group, measured: Measured, kind: str, label: str) -> View:
    """Return a view of p50 and p99 by number of processes: two lines for each value of the option."""
    layout = measured[0][0].case.buckets
    data: list[Plain] = []
    for number, part in enumerate(group.parts):
        latencies = _by_processes([pair for pair in part.measured() if pair[0].case.buckets == layout], kind)
        for percentile, dash in _COMPARED_PERCENTILES:
            line_label = f"{name(group.value(part.case))} {percentile}"
            hover = f"{line_label}, %{{x}} processes: %{{y:.3g}} ms"
            data += latency_lines(line_label, latencies, percentile, number, hover, dash)
    xaxis = counts_axis(run.case.concurrency for run in group.runs)
    return view_of(label, data, xaxis, _MS)


def _over_values(group: Group, measured: Measured, kind: str, label: str) -> View:
    latencies = [(name(group.value(run.case)), trial.latency.get(kind)) for run, trial in measured]
    data: list[Plain] = []
    for number, (percentile, _) in enumerate(_COMPARED_PERCENTILES):
        hover = f"%{{x}}: {percentile} %{{y:.3g}} ms"
        lines = latency_lines(percentile, latencies, percentile, number, hover)
        data += [{**trace, "mode": "markers"} for trace in lines]
    return View(label, data, {"xaxis": axis(name(group.setting), type="category"), "yaxis": _MS})


def histogram(group: Group) -> Iterator[Plot]:
    """Yield the plot of latency histograms, with a view for each case."""
    return distributions(
        "Latency histogram", ((run.case, sorted(trial.latency.items())) for run, trial in group.measured())
    )
