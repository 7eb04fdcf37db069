"""Plots of several reports side by side: bars for cases that stand for themselves, a bar for each case and
report; lines for those that are layouts with numbers of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from sqlstress.analysis.comparison import Compared
from sqlstress.analysis.wording import laid_out
from sqlstress.display.plot import Plain, Plot, View, apart, axis, colour, counts_axis, line, name
from sqlstress.experiment import face_of

if TYPE_CHECKING:
    from sqlstress.display.shown import Shown

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
    for place, shown in enumerate(names):
        values = [figure(row, place) for row in rows]
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": shown,
                "y": list(titles),
                "x": values,
                "marker": {"color": colour(place)},
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
    for place, part in enumerate(compared.table.parts):
        curves: dict[int, dict[int, float]] = {}
        for row, run in enumerate(part.runs):
            value = figure(row, place)
            if run and value is not None:
                curves.setdefault(run.case.buckets, {})[run.case.concurrency] = value
        for number, (layout, curve) in enumerate(sorted(curves.items())):
            cases = [run.case for run in part.runs if run]
            shown = ", ".join(filter(None, (names[place], laid_out(layout, cases))))
            counts = sorted(curve)
            hover = f"{shown}, %{{x}} processes: %{{y:,.4g}}"
            values = [curve[count] for count in counts]
            data.append(line(shown, counts, values, place, hover, DASHES[number % len(DASHES)]))
    counts = [count for trace in data for count in trace["x"]]
    axes = {
        "xaxis": counts_axis("processes", counts),
        "yaxis": axis(label, rangemode="tozero"),
        **apart(data),
    }
    return label, data, axes
