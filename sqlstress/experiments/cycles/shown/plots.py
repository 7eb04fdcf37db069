"""Plots of the cycles: the time of each, and where a checkpoint was seen."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group
from sqlstress.display.plot import Plain, Plot, View, axis, colour, line, name
from sqlstress.experiments.cycles.shown.findings import called
from sqlstress.experiments.cycles.shown.times import times_of
from sqlstress.statistics.units import NS_PER_MS

TIME_AXES = {"xaxis": axis("cycle"), "yaxis": axis("ms", type="log", dtick=1, exponentformat="none")}
"""Of the time of each cycle."""


def plots(group: Group) -> Iterator[Plot]:
    """Yield the time of each cycle, a line for each setting, with its checkpoints marked."""
    data: list[Plain] = []
    for number, (run, trial) in enumerate(group.measured()):
        times = times_of(run.case, trial)
        if not times:
            continue
        label, pace = name(called(run.case)), [ns / NS_PER_MS for ns in times.pace]
        hover = f"{label}, cycle %{{x}}: %{{y:.3g}} ms<extra></extra>"
        trace = line(label, list(range(1, len(pace) + 1)), pace, number, hover)
        data.append({**trace, "mode": "lines", "line": {**trace["line"], "width": 1.6}, "legendgroup": label})
        seen = {cycle for process in times.processes for cycle in process.checkpoints}
        marked = sorted(cycle for cycle in seen if 1 <= cycle <= len(pace))
        if marked:
            data.append(_marks(label, marked, pace, number))
    if data:
        note = "The slowest process's time of each cycle. Diamonds: a checkpoint was seen in it."
        yield Plot("Each cycle", note, (View("", data, TIME_AXES),), wide=True)


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
        "hovertemplate": f"{label}, cycle %{{x}}: %{{y:.3g}} ms, with a checkpoint<extra></extra>",
    }
