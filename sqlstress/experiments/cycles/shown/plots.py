"""Plots of the cycles: the time of each, in one report or several, and where a checkpoint was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.comparison import Compared, Part
from sqlstress.analysis.group import Group
from sqlstress.display.compared_plots import bar_name
from sqlstress.display.plot import Plain, Plot, View, apart, axis, colour, line, name
from sqlstress.display.shown import Shown
from sqlstress.experiments.cycles.shown.findings import called
from sqlstress.experiments.cycles.shown.times import times_of
from sqlstress.statistics.units import NS_PER_MS

TIME_AXES = {"xaxis": axis("cycle", whole=True), "yaxis": axis("ms", type="log")}
"""Of the time of each cycle."""


def plots(group: Group) -> Iterator[Plot]:
    """Yield the time of each cycle, a line for each setting, with its checkpoints marked."""
    data: list[Plain] = []
    for number, (run, trial) in enumerate(group.measured()):
        times = times_of(run.case, trial)
        if not times:
            continue
        label, pace = name(called(run.case)), [ns / NS_PER_MS for ns in times.pace]
        hover = f"{label}, cycle %{{x}}: %{{y:.3g}} ms"
        trace = line(label, list(range(1, len(pace) + 1)), pace, number, hover)
        data.append({**trace, "mode": "lines", "line": {**trace["line"], "width": 1.6}, "legendgroup": label})
        seen = {cycle for process in times.processes for cycle in process.checkpoints}
        marked = sorted(cycle for cycle in seen if 1 <= cycle <= len(pace))
        if marked:
            data.append(_marks(label, marked, pace, number))
    if data:
        note = "The slowest process's time of each cycle. Diamonds: a checkpoint was seen in it."
        yield Plot("Each cycle", note, (View("", data, {**TIME_AXES, **apart(data)}),), wide=True)


def _marks(label: str, cycles: list[int], pace: list[float], number: int) -> Plain:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{label}: checkpoint",
        "legendgroup": label,
        "showlegend": False,
        "x": cycles,
        "y": [pace[cycle - 1] for cycle in cycles],
        "marker": {"color": colour(number), "size": 10, "symbol": "diamond"},
        "hovertemplate": f"{label}, cycle %{{x}}: %{{y:.3g}} ms, with a checkpoint",
    }


def each_cycle(compared: Compared, names: Sequence[str], bars: Shown) -> Iterator[Plot]:
    """Yield the time of each cycle, setting by setting, of the reports that know it."""
    views = []
    for row in range(len(compared.table.keys)):
        data = [
            trace
            for place, part in enumerate(compared.table.parts)
            if (trace := _cycles(compared, part, row, place, names[place]))
        ]
        if data:
            views.append(View(name(bar_name(compared, row, bars)), data, {**TIME_AXES, **apart(data)}))
    if views:
        note = "The slowest process's time of each cycle, of the reports that have it."
        yield Plot("Each cycle", note, tuple(views), wide=True)


def _cycles(compared: Compared, part: Part, row: int, place: int, shown: str) -> Plain | None:
    trial, run = compared.trial(row, place), part.runs[row]
    times = times_of(run.case, trial) if run and trial else None
    if times is None:
        return None
    pace = [ns / NS_PER_MS for ns in times.pace]
    hover = f"{shown}, cycle %{{x}}: %{{y:.3g}} ms"
    trace = line(shown, list(range(1, len(pace) + 1)), pace, place, hover)
    return {**trace, "mode": "lines", "line": {**trace["line"], "width": 1.6}}
