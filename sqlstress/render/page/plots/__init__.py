"""The plots of each experiment, as plain data that plotly.js draws."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import cast

from sqlstress.analysis.comparison import Comparison
from sqlstress.analysis.group import Group
from sqlstress.render.page.plots.plot import Plot

PLOTS = {
    "kv": "sqlstress.render.page.plots.kv",
    "methods": "sqlstress.render.page.plots.methods",
    "keys": "sqlstress.render.page.plots.keys",
    "cycles": "sqlstress.render.page.plots.cycles",
}
"""Experiment → the module that has its plots."""


def report_plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group."""
    yield from cast(Iterator[Plot], import_module(PLOTS[group.case.experiment]).plots(group))


def comparison_plots(comparison: Comparison) -> Iterator[Plot]:
    """Yield the plots of several reports side by side."""
    from sqlstress.render.page.plots import comparison as module

    yield from module.plots(comparison)
