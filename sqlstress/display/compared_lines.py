"""Plots of several reports side by side whose cases are layouts with numbers of processes: lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlstress.analysis.comparison import Compared
from sqlstress.analysis.wording import files
from sqlstress.display.plot import Plain, Plot, View, axis, counts_axis, line

Figure = Callable[[int, int], float | None]
"""Row and part → a figure."""
DASHES = ("solid", "dash", "dot", "dashdot")


def plots(compared: Compared, names: Sequence[str]) -> Iterator[Plot]:
    """Yield the throughput, a line for each report and layout; and its shape."""
    views = [
        View(label, data, axes)
        for label, data, axes in (
            _view(compared, names, "TPS", compared.rate),
            _view(compared, names, "TPS over that of 1 process", compared.shape),
        )
        if data
    ]
    barred = any(compared.reasons(place) for place in range(len(compared.table.parts)))
    if views:
        note = "TPS over that of one process on the same layout can be compared where TPS can't."
        yield Plot("Throughput", note, tuple(views), len(views) - 1 if barred else 0, wide=True)


def _view(
    compared: Compared, names: Sequence[str], label: str, figure: Figure
) -> tuple[str, list[Plain], Plain]:
    data = []
    for place, part in enumerate(compared.table.parts):
        curves: dict[int, dict[int, float]] = {}
        for row, run in enumerate(part.runs):
            value = figure(row, place)
            if run and value is not None:
                curves.setdefault(run.case.buckets, {})[run.case.concurrency] = value
        for number, (layout, curve) in enumerate(sorted(curves.items())):
            shown = f"{names[place]}, {files(layout)}"
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
