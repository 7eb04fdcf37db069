"""Plots of several reports side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlstress.analysis.comparison import Compared, Comparison
from sqlstress.analysis.wording import files
from sqlstress.render.page.plots.plot import Plain, Plot, View, axis, counts_axis, line, name

Figure = Callable[[int, int], float | None]
"""Row and part → a figure."""
DASHES = ("solid", "dash", "dot", "dashdot")


def plots(comparison: Comparison) -> Iterator[Plot]:
    """Yield the throughput of key-value cases, a line for each report and layout; and its shape."""
    for compared in comparison.tables:
        if compared.table.experiment == "kv":
            yield from _throughput(compared)


def _throughput(compared: Compared) -> Iterator[Plot]:
    views = [
        View(label, data, axes)
        for label, data, axes in (
            _view(compared, "TPS", compared.rate),
            _view(compared, "TPS over that of 1 process", compared.shape),
        )
        if data
    ]
    barred = any(compared.reasons(place) for place in range(len(compared.table.parts)))
    if views:
        note = "TPS over that of one process on the same layout can be compared where TPS can't."
        yield Plot("Throughput", note, tuple(views), len(views) - 1 if barred else 0, wide=True)


def _view(compared: Compared, label: str, figure: Figure) -> tuple[str, list[Plain], Plain]:
    data = []
    for place, part in enumerate(compared.table.parts):
        system = part.report.environment.host.system
        curves: dict[int, dict[int, float]] = {}
        for row, run in enumerate(part.runs):
            value = figure(row, place)
            if run and value is not None:
                curves.setdefault(run.case.buckets, {})[run.case.concurrency] = value
        for number, (layout, curve) in enumerate(sorted(curves.items())):
            shown = name(f"{part.letter} {system}, {files(layout)}")
            counts = sorted(curve)
            hover = f"{shown}, %{{x}} processes: %{{y:,.4g}}<extra></extra>"
            values = [curve[count] for count in counts]
            data.append(line(shown, counts, values, place, hover, DASHES[number % len(DASHES)]))
    counts = [count for trace in data for count in trace["x"]]
    axes = {
        "xaxis": counts_axis("processes", counts),
        "yaxis": axis(label, rangemode="tozero"),
    }
    return label, data, axes
