"""Plots of methods, keys and cycles side by side: a bar for each case and report, and each cycle."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

from sqlstress.analysis.comparison import Compared, Part
from sqlstress.analysis.rate import counted
from sqlstress.analysis.wording import whole
from sqlstress.display.plot import Plain, Plot, View, axis, colour, line, name
from sqlstress.experiments.cycles.shown.plots import TIME_AXES
from sqlstress.experiments.cycles.shown.times import times_of
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_MS

Figure = Callable[[int, int], float | None]
"""Row and part → a figure."""
WIDE_RANGE = 20
"""Figures that differ by more are shown by their logarithm."""


def plots(compared: Compared, names: Sequence[str]) -> Iterator[Plot]:
    """Yield the rates of the cases, beside each other and relative to one of their own report's."""
    views = [view for title, rows in _parts(compared) for view in _views(compared, names, title, rows)]
    if views:
        note = "Relative to a case of its own report a figure can be compared where rates can't."
        barred = any(compared.reasons(place) for place in range(len(compared.table.parts)))
        yield Plot("Case by case", note, tuple(views), int(barred and len(views) > 1), wide=True)
    yield from _each_cycle(compared, names)


def _parts(compared: Compared) -> Iterator[tuple[str, list[int]]]:
    """Yield the rows of each phase of the methods, of each method the largest scale; else all rows."""
    found: dict[str, dict[Hashable, int]] = {}
    for row in range(len(compared.table.keys)):
        if sum(compared.rate(row, place) is not None for place in range(len(compared.table.parts))) > 1:
            case = compared.table.case(row)
            own = (case.tricks, case.driver, case.concurrency) if case.method else row
            found.setdefault(case.method.phase if case.method else "", {})[own] = row
    for phase, rows in found.items():
        yield phase, list(rows.values())


def _views(compared: Compared, names: Sequence[str], title: str, rows: list[int]) -> Iterator[View]:
    what = f"{title}: {counted(compared.table.parts[0].case)} a second".removeprefix(": ")
    yield _bars(compared, names, what, rows, compared.rate)
    places = range(len(compared.table.parts))
    base = next((row for row in rows if all(compared.rate(row, place) for place in places)), None)
    if base is not None and len(rows) > 1:
        label = f"{what}, own {_label(compared.table.case(base))} = 1"
        yield _bars(compared, names, label, rows, lambda row, place: _over(compared, row, base, place))


def _over(compared: Compared, row: int, base: int, place: int) -> float | None:
    rate, own = compared.rate(row, place), compared.rate(base, place)
    return rate / own if rate is not None and own else None


def _label(case: Case) -> str:
    if case.method:
        return f"{case.tricks}, {case.driver}, {whole(case.method.scale)}"
    return case.work


def _bars(compared: Compared, names: Sequence[str], label: str, rows: Sequence[int], figure: Figure) -> View:
    """Return bars that lie, since their names are long: the first case at the top."""
    data: list[Plain] = []
    for place, shown in enumerate(names):
        values = [figure(row, place) for row in rows]
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": shown,
                "y": [name(_unique(compared, row)) for row in rows],
                "x": values,
                "marker": {"color": colour(place)},
                "hovertemplate": f"{shown}, %{{y}}: %{{x:,.4g}}<extra></extra>",
            }
        )
    found = [value for trace in data for value in trace["x"] if value]
    scale: Plain = (
        {"type": "log", "dtick": 1} if max(found) > WIDE_RANGE * min(found) else {"rangemode": "tozero"}
    )
    layout = {
        "xaxis": axis("", **scale),
        "yaxis": axis("", type="category", autorange="reversed"),
        "barmode": "group",
        "height": 130 + len(rows) * (14 + 12 * len(names)),
    }
    return View(label, data, layout)


def _unique(compared: Compared, row: int) -> str:
    """Name a row, with its number of processes where the reports have several."""
    counts = {run.case.concurrency for part in compared.table.parts for run in part.measured()}
    case = compared.table.case(row)
    processes = f", {case.concurrency} proc." if len(counts - {0}) > 1 else ""
    return f"{_label(case)}{processes}"


def _each_cycle(compared: Compared, names: Sequence[str]) -> Iterator[Plot]:
    """Yield the time of each cycle, setting by setting, of the reports that know it."""
    views = []
    for row in range(len(compared.table.keys)):
        data = [
            trace
            for place, part in enumerate(compared.table.parts)
            if (trace := _cycles(compared, part, row, place, names[place]))
        ]
        if data:
            views.append(View(name(_unique(compared, row)), data, TIME_AXES))
    if views:
        note = "The slowest process's time of each cycle, of the reports that have it."
        yield Plot("Each cycle", note, tuple(views), wide=True)


def _cycles(compared: Compared, part: Part, row: int, place: int, shown: str) -> Plain | None:
    trial, run = compared.trial(row, place), part.runs[row]
    times = times_of(run.case, trial) if run and trial else None
    if times is None:
        return None
    pace = [ns / NS_PER_MS for ns in times.pace]
    hover = f"{shown}, cycle %{{x}}: %{{y:.3g}} ms<extra></extra>"
    trace = line(shown, list(range(1, len(pace) + 1)), pace, place, hover)
    return {**trace, "mode": "lines", "line": {**trace["line"], "width": 1.6}}
