"""Each cycle of several reports side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.comparison import Compared, Part
from sqlstress.display.compared_bars import Bars, bar_name
from sqlstress.display.plot import Plain, Plot, View, line, name
from sqlstress.experiments.cycles.shown.plots import TIME_AXES
from sqlstress.experiments.cycles.shown.times import times_of
from sqlstress.statistics.units import NS_PER_MS


def each_cycle(compared: Compared, names: Sequence[str], bars: Bars) -> Iterator[Plot]:
    """Yield the time of each cycle, setting by setting, of the reports that know it."""
    views = []
    for row in range(len(compared.table.keys)):
        data = [
            trace
            for place, part in enumerate(compared.table.parts)
            if (trace := _cycles(compared, part, row, place, names[place]))
        ]
        if data:
            views.append(View(name(bar_name(compared, row, bars)), data, TIME_AXES))
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
