"""Plots of several reports side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlstress.analysis.comparison import Compared, Part
from sqlstress.analysis.wording import files
from sqlstress.display.plot import Plain, Plot, View, axis, counts_axis, line, name
from sqlstress.render.page.plots import comparison_work
from sqlstress.render.views.comparison_measures import SYSTEMS

Figure = Callable[[int, int], float | None]
"""Row and part → a figure."""
DASHES = ("solid", "dash", "dot", "dashdot")


def plots(compared: Compared) -> Iterator[Plot]:
    """Yield the plots of a table: of key-value cases lines over the processes, of others bars."""
    names = [_name(part) for part in compared.table.parts]
    of_table = _throughput if compared.table.experiment == "kv" else comparison_work.plots
    yield from of_table(compared, names)


def _name(part: Part) -> str:
    system = part.report.environment.host.system
    unknown = "published" if part.report.published is not None else "unknown"
    return name(f"{part.letter} {SYSTEMS.get(system, system) or unknown}")


def _throughput(compared: Compared, names: Sequence[str]) -> Iterator[Plot]:
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
