"""A plot as plain data, which the page's chart.js draws; colours are names of the page's style ("--c1").

The names are those that plotly.js has for the same things, as far as they are drawn here: scatter (lines,
markers, steps, error bars, an area below), bar (grouped, stacked, lying) and heatmap; axes that are linear,
log, category or multicategory. Of our own are `multiples`, a small frame for each line, and `whole`, an axis
whose ticks are whole numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlstress.analysis.comparison import Compared
from sqlstress.analysis.wording import laid_out, place
from sqlstress.experiment import face_of
from sqlstress.report import Latency
from sqlstress.report.case import Case
from sqlstress.show.blocks import clean
from sqlstress.statistics.histogram import bucket_floor
from sqlstress.statistics.units import NS_PER_MS

if TYPE_CHECKING:
    from sqlstress.show.shown import Shown


COLOURS = 8
TOGETHER = 4
"""So many lines can be told apart in one frame."""
_LONGEST = 48

Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """What a plot shows at a time."""

    label: str
    """What it is called where it can be chosen."""
    data: list[Plain]
    """Its traces."""
    layout: Plain
    """Its axes, and what differs from other plots."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot, with one view or several to choose from."""

    title: str
    note: str
    """How to read it, in a sentence or two."""
    views: tuple[View, ...]
    first: int = 0
    """Which view is shown first."""
    wide: bool = False
    """Whether it takes the page's whole width."""


def colour(place: int) -> str:
    """Return the colour of the n-th of several things."""
    return f"--c{place % COLOURS + 1}"


def name(words: str) -> str:
    """Return a text from anywhere as a plot shows it: short, and without a place to be filled in."""
    shown = clean(words)
    return (shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…").replace("%{", "% {")


def level(value: float, shade: str) -> Plain:
    """Return a dotted line across the whole plot."""
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value,
        "line": {"color": shade, "width": 1, "dash": "dot"},
    }  # fmt: skip


def apart(data: Sequence[Plain]) -> Plain:
    """Return what a layout has more where lines are too many to be told apart in one frame.

    A small frame for each of them then, with the others behind it in the colour of rules.
    """
    named = {trace.get("legendgroup", trace["name"]) for trace in data}
    return {"multiples": True} if len(named) > TOGETHER else {}


def axis(title: str, **more: Any) -> Plain:
    """Return an axis with its title."""
    return {"title": {"text": title}, **more}


def counts_axis(title: str, counts: Iterable[int]) -> Plain:
    """Return an axis of whole numbers, with a tick at each one that was measured, if they are few."""
    found = sorted(set(counts))
    ticks: Plain = {"tickvals": found} if len(found) <= 12 else {}
    return axis(title, whole=True, **ticks)


def line(
    label: str, x: Sequence[Any], y: Sequence[Any], place: int, hover: str, dash: str = "solid"
) -> Plain:
    """Return a line with a mark at each value."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": label,
        "x": list(x),
        "y": list(y),
        "line": {"color": colour(place), "width": 2.5, "dash": dash},
        "marker": {"color": colour(place), "size": 7},
        "hovertemplate": hover,
    }


# Plots of several reports side by side: bars for cases that stand for themselves, a bar for each case and
# report; lines for those that are layouts with numbers of processes.


Figure = Callable[[int, int], float | None]
"""Row and part → a figure."""
WIDE_RANGE = 20
"""Figures that differ by more are shown by their logarithm."""


def bar_plots(compared: Compared, names: Sequence[str], bars: Shown) -> Iterator[Plot]:
    """Yield the rates of the cases, beside each other and relative to one of their own report's."""
    views = [
        view for title, rows in _parts(compared, bars) for view in _views(compared, names, title, rows, bars)
    ]
    if views:
        note = "Relative to a case of its own report a figure can be compared where rates can't."
        barred = any(compared.reasons(place) for place in range(len(compared.table.parts)))
        yield Plot("Case by case", note, tuple(views), int(barred and len(views) > 1), wide=True)


def _parts(compared: Compared, bars: Shown) -> Iterator[tuple[str, list[int]]]:
    """Yield the rows of each title."""
    found: dict[str, dict[Hashable, int]] = {}
    for row in range(len(compared.table.keys)):
        if sum(compared.rate(row, place) is not None for place in range(len(compared.table.parts))) > 1:
            title, key = bars.bar(compared.table.case(row))
            found.setdefault(title, {})[key] = row
    for title, rows in found.items():
        yield title, list(rows.values())


def _views(
    compared: Compared, names: Sequence[str], title: str, rows: list[int], bars: Shown
) -> Iterator[View]:
    what = f"{title}: {face_of(compared.table.parts[0].case).rate_counts} a second".removeprefix(": ")
    titles = [name(bar_name(compared, row, bars)) for row in rows]
    yield _bars(names, what, titles, rows, compared.rate)
    places = range(len(compared.table.parts))
    base = next((row for row in rows if all(compared.rate(row, place) for place in places)), None)
    if base is not None and len(rows) > 1:
        label = f"{what}, own {bars.bar_name(compared.table.case(base))} = 1"
        yield _bars(names, label, titles, rows, lambda row, place: _over(compared, row, base, place))


def _over(compared: Compared, row: int, base: int, place: int) -> float | None:
    rate, own = compared.rate(row, place), compared.rate(base, place)
    return rate / own if rate is not None and own else None


def _bars(
    names: Sequence[str], label: str, titles: Sequence[str], rows: Sequence[int], figure: Figure
) -> View:
    """Return bars that lie, since their names are long: the first case at the top."""
    data: list[Plain] = []
    for column, shown in enumerate(names):
        values = [figure(row, column) for row in rows]
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": shown,
                "y": list(titles),
                "x": values,
                "marker": {"color": colour(column)},
                "hovertemplate": f"{shown}, %{{y}}: %{{x:,.4g}}",
            }
        )
    found = [value for trace in data for value in trace["x"] if value]
    scale: Plain = {"type": "log"} if max(found) > WIDE_RANGE * min(found) else {"rangemode": "tozero"}
    layout = {
        "xaxis": axis("", **scale),
        "yaxis": axis("", type="category", autorange="reversed"),
        "barmode": "group",
        "height": 130 + len(rows) * (14 + 12 * len(names)),
    }
    return View(label, data, layout)


def bar_name(compared: Compared, row: int, bars: Shown) -> str:
    """Name a row, with its number of processes where the reports have several."""
    counts = {run.case.concurrency for part in compared.table.parts for run in part.measured()}
    case = compared.table.case(row)
    processes = f", {case.concurrency} proc." if len(counts - {0}) > 1 else ""
    return f"{bars.bar_name(case)}{processes}"


DASHES = ("solid", "dash", "dot", "dashdot")


def line_plots(compared: Compared, names: Sequence[str]) -> Iterator[Plot]:
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
    for column, part in enumerate(compared.table.parts):
        curves: dict[int, dict[int, float]] = {}
        for row, run in enumerate(part.runs):
            value = figure(row, column)
            if run and value is not None:
                curves.setdefault(run.case.buckets, {})[run.case.concurrency] = value
        for number, (layout, curve) in enumerate(sorted(curves.items())):
            cases = [run.case for run in part.runs if run]
            shown = ", ".join(filter(None, (names[column], laid_out(layout, cases))))
            counts = sorted(curve)
            hover = f"{shown}, %{{x}} processes: %{{y:,.4g}}"
            values = [curve[count] for count in counts]
            data.append(line(shown, counts, values, column, hover, DASHES[number % len(DASHES)]))
    counts = [count for trace in data for count in trace["x"]]
    axes = {
        "xaxis": counts_axis("processes", counts),
        "yaxis": axis(label, rangemode="tozero"),
        **apart(data),
    }
    return label, data, axes


# How many operations took how long: the outline of a histogram.


_NOTE = "How many operations took how long, eight steps for every doubling."
_COARSER = 4
"""Bits by which a histogram is made coarser: to eight buckets for every power of two."""
_BUCKETS = 0x7F80
"""Indices of finite floats lie below."""


def distributions(
    title: str, cases: Iterable[tuple[Case, Iterable[tuple[str, Latency | None]]]]
) -> Iterator[Plot]:
    """Yield a plot with a view for each case, with an outline of each of its latencies; none of none."""
    views = []
    for case, named in cases:
        data = [
            outline
            for number, (label, latency) in enumerate(named)
            if latency and (outline := _outline(label, latency, number))
        ]
        if data:
            axes = {
                "xaxis": axis("ms", type="log"),
                "yaxis": axis("% of operations", rangemode="tozero"),
                "hovermode": "x",
            }
            views.append(View(place(case), data, axes))
    if views:
        yield Plot(title, _NOTE, tuple(views), len(views) - 1)


def _outline(kind: str, latency: Latency, number: int) -> Plain | None:
    """Return the outline, a point for each step, in per cent of all operations; None of none."""
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
