"""A picture of the WALs: a line of blocks for each run, over its window."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import files, processes, size
from sqlstress.experiment import has_window
from sqlstress.experiments.kv.shown.wal import series_of
from sqlstress.statistics.series import WAL_SIZE, Series
from sqlstress.statistics.units import NS_PER_S

LEVELS = " ▁▂▃▄▅▆▇█"
WIDTH = 32
"""Characters over which the window is drawn."""


def picture(group: Group) -> Iterator[str]:
    """Yield a line for each run of which the size of the WALs was seen as the window went on."""
    seen = ((run.case, series_of(trial, WAL_SIZE)) for run, trial in group.measured())
    lines = [(case, series) for case, series in seen if series and series.values]
    names = [f"{files(case.buckets)}, {processes(case.concurrency)}" for case, _ in lines]
    width = max(map(len, names), default=0)
    if lines:
        yield "Size of the WALs over the window, all files together, up to:"
    for name, (case, series) in zip(names, lines, strict=True):
        window_ns = int(case.duration_s * NS_PER_S) if has_window(case) else 0
        yield f"{name:<{width}} |{bars(series, window_ns)}| {size(max(series.values))}"


def bars(series: Series, window_ns: int) -> str:
    """Return a character for each part of a window, as high as the largest value in it.

    Where nothing was seen it stays as high as before. A window of unknown length ends with the last value.
    """
    ends_ns = max(1, window_ns, 1 + max(series.times_ns, default=0))
    most = max((1, *series.values))
    highest: dict[int, int] = {}
    for at_ns, value in zip(series.times_ns, series.values, strict=False):
        place = max(0, at_ns) * WIDTH // ends_ns
        highest[place] = max(value, highest.get(place, 0))
    drawn, value = "", 0
    for place in range(WIDTH):
        value = highest.get(place, value)
        drawn += LEVELS[-(-value * (len(LEVELS) - 1) // most)]
    return drawn
