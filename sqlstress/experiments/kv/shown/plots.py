"""Plots of the main job: those of every sweep, and the size of the WALs over the window."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group
from sqlstress.display import sweeps
from sqlstress.display.plot import Plain, Plot, View, apart, axis, line, name
from sqlstress.experiments.kv.shown import where_plots
from sqlstress.experiments.kv.shown.wal import series_of
from sqlstress.statistics.series import WAL_SIZE
from sqlstress.statistics.units import NS_PER_S


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group for which it has figures."""
    yield from sweeps.plots(group)
    yield from wal_size(group)
    yield from where_plots.plots(group)


def wal_size(group: Group) -> Iterator[Plot]:
    """Yield the size of the WALs of all files together, a line for each case."""
    data: list[Plain] = []
    for run, trial in group.measured():
        series = series_of(trial, WAL_SIZE)
        if series and series.values and series.times_ns:
            seen = list(zip(series.times_ns, series.values, strict=False))
            where = name(group.place(run.case))
            hover = f"{where}, %{{x:.2f}} s: %{{y:.2f}} MB"
            seconds, sizes = [ns / NS_PER_S for ns, _ in seen], [count / 1e6 for _, count in seen]
            trace = line(where, seconds, sizes, len(data), hover)
            data.append({**trace, "mode": "lines", "line": {**trace["line"], "shape": "hv"}})
    if data:
        axes = {"xaxis": axis("seconds"), "yaxis": axis("MB", rangemode="tozero"), **apart(data)}
        note = "All files together, as a process saw it that holds no connection."
        yield Plot("Size of the WALs", note, (View("", data, axes),), wide=True)
