"""Plots of the main job; latencies and WALs over the window are here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

from sqlstress.analysis.group import Group, by_files
from sqlstress.analysis.wording import files, finite, place
from sqlstress.display.plot import Plain, Plot, View, apart, axis, colour, counts_axis, line, name
from sqlstress.experiments.kv.shown import plots_apart, where_plots
from sqlstress.experiments.kv.shown.plot_throughput import over_time, shares, throughput
from sqlstress.experiments.kv.shown.wal import series_of
from sqlstress.report import Latency, Run, Trial
from sqlstress.statistics.histogram import bucket_floor
from sqlstress.statistics.series import WAL_SIZE
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group for which it has figures."""
    if group.parts:
        yield from plots_apart.plots(group, histogram)
        yield from wal_size(group)
        yield from where_plots.plots(group)
        return
    yield from throughput(group)
    yield from shares(group)
    yield from percentiles(group)
    yield from histogram(group)
    yield from over_time(group)
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


PERCENTILES: dict[str, Callable[[Latency], float | None]] = {
    "p50": lambda latency: latency.p50_ns,
    "p90": lambda latency: latency.p90_ns,
    "p99": lambda latency: latency.p99_ns,
    "p99.9": lambda latency: latency.p999_ns,
    "max": lambda latency: latency.max_ns if latency.count else None,
}
_COARSER = 4
"""Bits by which a histogram is made coarser: to eight buckets for every power of two."""
_BUCKETS = 0x7F80
"""Indices of finite floats lie below."""

Measured = list[tuple[Run, Trial]]


def percentiles(group: Group) -> Iterator[Plot]:
    """Yield the percentiles of each kind of operation, layout by layout."""
    measured = list(group.measured())
    layouts = by_files(measured, lambda one: one[0].case.buckets)
    views = [
        View(f"{kind}, {files(layout)}", data, axes)
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
    found = [place for place, view in enumerate(views) if view.label.startswith(f"{kind},")]
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
    views = []
    for run, trial in group.measured():
        data = [
            trace
            for number, kind in enumerate(sorted(trial.latency))
            if (trace := _distribution(kind, trial.latency[kind], number))
        ]
        if data:
            axes = {
                "xaxis": axis("ms", type="log"),
                "yaxis": axis("% of operations", rangemode="tozero"),
                "hovermode": "x",
            }
            views.append(View(place(run.case), data, axes))
    if views:
        note = "How many operations took how long, eight steps for every doubling."
        yield Plot("Latency histogram", note, tuple(views), len(views) - 1)


def _distribution(kind: str, latency: Latency, number: int) -> Plain | None:
    coarse: Counter[int] = Counter()
    for index, count in latency.buckets:
        if 0 <= index < _BUCKETS and count > 0:
            coarse[index >> _COARSER] += count
    total = sum(coarse.values())
    if not total:
        return None
    # With a step of nothing on each side the outline comes back to zero.
    steps = range(max(0, min(coarse) - 1), min(max(coarse) + 2, _BUCKETS >> _COARSER))
    trace = line(
        name(kind),
        [_middle_ms(step) for step in steps],
        [100 * coarse[step] / total for step in steps],
        number,
        "%{x:.3g} ms: %{y:.2f}%",
    )
    return {
        **trace,
        "mode": "lines",
        "line": {"color": colour(number), "width": 1.8, "shape": "hvh"},
        "fill": "tozeroy",
        "fillcolor": f"{colour(number)}-fill",
    }


@cache
def _middle_ms(step: int) -> float:
    low, high = (bucket_floor(each << _COARSER) for each in (step, step + 1))
    return (low + high) / 2 / NS_PER_MS
