"""How much the processes did, together and each, and over the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest

from sqlstress.analysis.group import Group, by_files
from sqlstress.analysis.wording import finite, laid_out, on_files, processes
from sqlstress.display.plot import Plain, Plot, View, apart, axis, colour, counts_axis, level, line
from sqlstress.experiment import face_of
from sqlstress.report import Run, Trial

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
    note = "A mark is a process. At 1 it did as much as an average one; near 0 it starved."
    yield Plot("Who got how much", note, (View("", data, axes),))


def _marks(layout: int, measured: list[tuple[Run, Trial]], number: int, layouts: int) -> Plain:
    x, y, told = [], [], []
    for run, trial in measured:
        total = sum(worker.transactions for worker in trial.workers)
        for worker in trial.workers:
            x.append(run.case.concurrency + APART * (number - (layouts - 1) / 2))
            y.append(worker.transactions * len(trial.workers) / total if total else 0)
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
