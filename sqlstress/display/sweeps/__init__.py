"""The plots of cases that are layouts with numbers of processes: what they did, and how long it took."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group
from sqlstress.display.plot import Plot
from sqlstress.display.sweeps import plots_apart
from sqlstress.display.sweeps.latency import histogram, percentiles
from sqlstress.display.sweeps.throughput import over_time, shares, throughput


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group for which it has figures."""
    if group.parts:
        yield from plots_apart.plots(group, histogram)
        return
    yield from throughput(group)
    yield from shares(group)
    yield from percentiles(group)
    yield from histogram(group)
    yield from over_time(group)
