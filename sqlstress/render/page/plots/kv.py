"""Plots of the main job."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group
from sqlstress.render.page.plots.kv_latency import histogram, percentiles
from sqlstress.render.page.plots.kv_shares import shares
from sqlstress.render.page.plots.kv_throughput import over_time, throughput
from sqlstress.render.page.plots.kv_wal import wal_size
from sqlstress.render.page.plots.plot import Plot


def plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group for which it has figures."""
    yield from throughput(group)
    yield from shares(group)
    yield from percentiles(group)
    yield from histogram(group)
    yield from over_time(group)
    yield from wal_size(group)
