"""Plots of the main job."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group
from sqlstress.display.plot import Plot
from sqlstress.experiments.kv.shown.plot_latency import histogram, percentiles
from sqlstress.experiments.kv.shown.plot_shares import shares
from sqlstress.experiments.kv.shown.plot_throughput import over_time, throughput
from sqlstress.experiments.kv.shown.plot_wal import wal_size


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group for which it has figures."""
    yield from throughput(group)
    yield from shares(group)
    yield from percentiles(group)
    yield from histogram(group)
    yield from over_time(group)
    yield from wal_size(group)
