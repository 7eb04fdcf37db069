"""Plots as plain data, which the script chart.js of the HTML page draws.

A trace is a line, a set of marks or a set of bars. The views of a plot are alternatives, among which the user
chooses. Attributes have the names that plotly.js uses. Supported are traces of the types scatter (lines,
markers, steps, error bars, an area below the line) and bar (grouped, stacked, horizontal), and axes of the
types linear, log, category and multicategory. Two names are our own: `multiples` (a small frame for each
line) and `whole` (ticks at whole numbers). Colours are names of the page's style, such as "--c1".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlstress.analysis.comparison import ComparedTable
from sqlstress.analysis.wording import buckets_label, place, truncate
from sqlstress.experiment import rate_units_of
from sqlstress.report import Latency
from sqlstress.report.case import Case
from sqlstress.show.blocks import clean
from sqlstress.statistics.histogram import bin_floor
from sqlstress.statistics.units import NS_PER_MS, finite

COLOURS = 8
"""Number of colours. The ninth line has the colour of the first."""
MAX_LINES = 4
"""Maximum number of lines in one frame. If there are more, each line has its own frame."""
LOG_RATIO = 20
"""Ratio of the largest to the smallest figure above which an axis is logarithmic."""
_LONGEST = 48
"""Maximum length of a text in a plot, in characters."""

Plain = dict[str, Any]
"""Part of a plot, such as a trace or an axis, as a dict of attributes."""


@dataclass(frozen=True, slots=True)
class View:
    """View of a plot. The user chooses among the views."""

    label: str
    """Label of the view in the list of choices."""
    data: list[Plain]
    """Traces: lines, marks or bars."""
    layout: Plain
    """Axes, and other attributes that are not the page's defaults."""


@dataclass(frozen=True, slots=True)
class Plot:
    """Plot with one or more views, among which the user chooses."""

    title: str
    note: str
    """One or two sentences that explain the plot."""
    views: tuple[View, ...]
    first: int = 0
    """Index of the view that is shown first."""
    wide: bool = False
    """Whether the plot takes the whole width of the page, even if no view has several frames."""

    @property
    def is_wide(self) -> bool:
        """Whether the plot takes the whole width of the page: if `wide`, or a view has several frames."""
        return self.wide or any("multiples" in view.layout for view in self.views)


def colour(place: int) -> str:
    """Return the name of the colour with index `place`: "--c1" for 0. The ninth is "--c1" again."""
    return f"--c{place % COLOURS + 1}"


def name(words: str) -> str:
    """Return a text as one short line, without placeholders of plotly.js such as "%{x}"."""
    return truncate(clean(words), _LONGEST).replace("%{", "% {")


def level(value: float, shade: str) -> Plain:
    """Return a dotted line across the whole plot, at `value` of the y axis, in the colour `shade`."""
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value,
        "line": {"color": shade, "width": 1, "dash": "dot"},
    }  # fmt: skip


def small_multiples(data: Sequence[Plain]) -> Plain:
    """Return the attribute that draws each line in its own frame; {} for up to MAX_LINES lines."""
    named = {trace.get("legendgroup", trace["name"]) for trace in data}
    return {"multiples": True} if len(named) > MAX_LINES else {}


def view_of(label: str, data: list[Plain], xaxis: Plain, yaxis: Plain) -> View:
    """Return a view with two axes, in several frames if there are many lines."""
    return View(label, data, {"xaxis": xaxis, "yaxis": yaxis, **small_multiples(data)})


def axis(title: str, **more: Any) -> Plain:
    """Return an axis with a title, and further attributes of plotly.js (`more`)."""
    return {"title": {"text": title}, **more}


def counts_axis(counts: Iterable[int]) -> Plain:
    """Return an axis for numbers of processes. If there are few different numbers, each has a tick."""
    distinct = sorted(set(counts))
    ticks: Plain = {"tickvals": distinct} if len(distinct) <= 12 else {}
    return axis("processes", whole=True, **ticks)


def scale(values: Sequence[float]) -> Plain:
    """Return the scale of an axis: logarithmic for a wide range of values, else linear from 0."""
    return {"type": "log"} if max(values) > LOG_RATIO * min(values) else {"rangemode": "tozero"}


def line(
    label: str, x: Sequence[Any], y: Sequence[Any], place: int, hover: str, dash: str = "solid", **more: Any
) -> Plain:
    """Return a line with marks. `hover` is a template of the texts at the marks.

    `place` is the index of the colour. `more` has attributes of plotly.js for the line, such as `shape`. If
    there are any, the marks are left out.
    """
    return {
        "type": "scatter",
        "mode": "lines" if more else "lines+markers",
        "name": label,
        "x": list(x),
        "y": list(y),
        "line": {"color": colour(place), "width": 2.5, "dash": dash, **more},
        "marker": {"color": colour(place), "size": 7},
        "hovertemplate": hover,
    }


def marks(
    label: str, x: Sequence[Any], y: Sequence[float], hover: str, text: Sequence[str] = (), **marker: Any
) -> Plain:
    """Return marks without a line. `hover` is the template of their texts; "%{text}" is an item of `text`."""
    hover_texts = {"text": list(text)} if text else {}
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label,
        "x": list(x),
        "y": list(y),
        **hover_texts,
        "marker": marker,
        "hovertemplate": hover,
    }


# Plots of several reports side by side. If the cases differ in the number of processes, there is a line for
# each report and number of buckets (files). Other cases get bars: one for each case and report.


Figure = Callable[[int, int], float | None]
"""Function (index of the row, index of the report) → figure; None if the figure is missing."""


def bar_plots(
    compared: ComparedTable,
    names: Sequence[str],
    bar: Callable[[Case], tuple[str, Hashable]],
    bar_name: Callable[[Case], str],
) -> Iterator[Plot]:
    """Yield a plot of rates as bars, with views of absolute and of relative rates.

    A relative rate is a report's rate divided by its own rate in the first case that all reports have.
    `names` has a label for each report. `bar` returns (title of the view, key of the bar) for a case, and
    `bar_name` the name of the bar.
    """
    places = range(len(compared.table.parts))
    titled: dict[str, dict[Hashable, int]] = {}
    for row in range(len(compared.table.keys)):
        if sum(compared.rate(row, place) is not None for place in places) > 1:
            title, key = bar(compared.table.case(row))
            titled.setdefault(title, {})[key] = row
    views = []
    for title, keyed in titled.items():
        rows = list(keyed.values())
        what = f"{title}: {rate_units_of(compared.table.parts[0].case)} per second".removeprefix(": ")
        cases = [name(row_name(compared, row, bar_name)) for row in rows]
        views.append(_bars_view(names, what, cases, rows, compared.rate))
        base = next((row for row in rows if all(compared.rate(row, place) for place in places)), None)
        if base is not None and len(rows) > 1:
            label = f"{what}, own {bar_name(compared.table.case(base))} = 1"
            views.append(_bars_view(names, label, cases, rows, _relative_rate(compared, base)))
    if views:
        note = "Relative to a case of the same report, figures are comparable even if rates are not."
        first = int(len(views) > 1 and any(map(compared.reasons, places)))
        yield Plot("Case by case", note, tuple(views), first, wide=True)


def _relative_rate(compared: ComparedTable, base: int) -> Figure:
    """Return a function that returns a report's rate in a row, divided by its rate in the row `base`."""

    def figure(row: int, place: int) -> float | None:
        rate, base_rate = compared.rate(row, place), compared.rate(base, place)
        return rate / base_rate if rate is not None and base_rate else None

    return figure


def _bars_view(
    names: Sequence[str], label: str, cases: Sequence[str], rows: Sequence[int], figure: Figure
) -> View:
    """Return a view with horizontal bars, which have room for long names. The first case is at the top."""
    data: list[Plain] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": report,
            "y": list(cases),
            "x": [figure(row, place) for row in rows],
            "marker": {"color": colour(place)},
            "hovertemplate": f"{report}, %{{y}}: %{{x:,.4g}}",
        }
        for place, report in enumerate(names)
    ]
    layout = {
        "xaxis": axis("", **scale([value for trace in data for value in trace["x"] if value])),
        "yaxis": axis("", type="category", autorange="reversed"),
        "barmode": "group",
        "height": 130 + len(rows) * (14 + 12 * len(names)),
    }
    return View(label, data, layout)


def row_name(compared: ComparedTable, row: int, bar_name: Callable[[Case], str]) -> str:
    """Return the name of a row's case, with the number of processes if it differs between cases."""
    counts = {run.case.concurrency for part in compared.table.parts for run in part.measured()}
    case = compared.table.case(row)
    processes = f", {case.concurrency} proc." if len(counts - {0}) > 1 else ""
    return f"{bar_name(case)}{processes}"


DASHES = ("solid", "dash", "dot", "dashdot")


def line_plots(compared: ComparedTable, names: Sequence[str]) -> Iterator[Plot]:
    """Yield a plot of TPS by number of processes, with views of absolute TPS and relative to one process."""
    figures = {"TPS": compared.rate, "TPS relative to 1 process": compared.shape}
    views = [
        view
        for label, figure in figures.items()
        if (view := _lines_view(compared, names, label, figure)).data
    ]
    if views:
        barred = any(map(compared.reasons, range(len(compared.table.parts))))
        note = "TPS relative to one process on the same layout is comparable even if TPS is not."
        yield Plot("Throughput", note, tuple(views), len(views) - 1 if barred else 0, wide=True)


def _lines_view(compared: ComparedTable, names: Sequence[str], label: str, figure: Figure) -> View:
    """Return a view of a figure by number of processes: a line for each report and number of files."""
    data = []
    for column, part in enumerate(compared.table.parts):
        cases = [run.case for run in part.runs if run]
        curves: dict[int, dict[int, float]] = {}
        for row, run in enumerate(part.runs):
            if run and (value := figure(row, column)) is not None:
                curves.setdefault(run.case.buckets, {})[run.case.concurrency] = value
        for number, (layout, curve) in enumerate(sorted(curves.items())):
            shown = ", ".join(filter(None, (names[column], buckets_label(layout, cases))))
            counts = sorted(curve)
            hover = f"{shown}, %{{x}} processes: %{{y:,.4g}}"
            values = [curve[count] for count in counts]
            data.append(line(shown, counts, values, column, hover, DASHES[number % len(DASHES)]))
    xaxis = counts_axis(count for trace in data for count in trace["x"])
    return view_of(label, data, xaxis, axis(label, rangemode="tozero"))


Percentile = Callable[[Latency], float | None]
"""Function that returns a percentile of latencies, in ns; None if unknown."""
PERCENTILES: dict[str, Percentile] = {
    "p50": lambda latency: latency.p50_ns,
    "p90": lambda latency: latency.p90_ns,
    "p99": lambda latency: latency.p99_ns,
    "p99.9": lambda latency: latency.p999_ns,
    "max": lambda latency: latency.max_ns if latency.count else None,
}
"""Functions that return percentiles, by name of the percentile."""


def latency_lines(
    label: str,
    measured: Iterable[tuple[Any, Latency | None]],
    percentile: str,
    number: int,
    hover: str,
    dash: str = "solid",
) -> list[Plain]:
    """Return a list with one line: a latency percentile, in ms, over the x values in `measured`.

    The list is empty without latencies. `number` is the index of the colour.
    """
    points = [
        (x, ns / NS_PER_MS)
        for x, latency in measured
        if latency and (ns := finite(PERCENTILES[percentile](latency))) and ns > 0
    ]
    return (
        [line(label, [x for x, _ in points], [ms for _, ms in points], number, hover, dash)] if points else []
    )


_COARSER = 4
"""Number of low bits of a bucket's index that an outline ignores. This leaves eight steps per doubling."""
_BUCKETS = 0x7F80
"""Number of possible buckets in a histogram. An index is the high 16 bits of a finite 32-bit float."""


def distributions(
    title: str, cases: Iterable[tuple[Case, Iterable[tuple[str, Latency | None]]]]
) -> Iterator[Plot]:
    """Yield one plot of latency histograms, with a view for each case; nothing without latencies."""
    axes = {
        "xaxis": axis("ms", type="log"),
        "yaxis": axis("% of operations", rangemode="tozero"),
        "hovermode": "x",
    }
    views = []
    for case, named in cases:
        outlines = [
            outline
            for number, (label, latency) in enumerate(named)
            if latency and (outline := _outline(label, latency, number))
        ]
        if outlines:
            views.append(View(place(case), outlines, axes))
    if views:
        note = "The share of operations by latency, in eight steps per doubling."
        yield Plot(title, note, tuple(views), len(views) - 1)


def _outline(kind: str, latency: Latency, number: int) -> Plain | None:
    """Return the outline of a histogram, in % of all operations; None without operations."""
    coarse: Counter[int] = Counter()
    for index, count in latency.buckets:
        if 0 <= index < _BUCKETS and count > 0:
            coarse[index >> _COARSER] += count
    total = sum(coarse.values())
    if not total:
        return None
    # An empty step on each side brings the outline back to zero.
    steps = range(max(0, min(coarse) - 1), min(max(coarse) + 2, _BUCKETS >> _COARSER))
    shares = [100 * coarse[step] / total for step in steps]
    trace = line(name(kind), list(map(_middle_ms, steps)), shares, number, "%{x:.3g} ms: %{y:.2f}%")
    return {
        **trace,
        "mode": "lines",
        "line": {"color": colour(number), "width": 1.8, "shape": "hvh"},
        "fill": "tozeroy",
        "fillcolor": f"{colour(number)}-fill",
    }


@cache
def _middle_ms(step: int) -> float:
    low, high = (bin_floor(index << _COARSER) for index in (step, step + 1))
    return (low + high) / 2 / NS_PER_MS
