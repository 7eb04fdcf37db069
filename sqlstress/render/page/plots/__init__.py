"""The plots of each experiment, as plain data that plotly.js draws."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import cast

from sqlstress.analysis.comparison import Compared
from sqlstress.analysis.group import Group
from sqlstress.display.plot import Plot
from sqlstress.render.page.plots import ab, comparison
from sqlstress.report import Report

PLOTS = {
    "kv": "sqlstress.experiments.kv.shown.plots",
    "methods": "sqlstress.experiments.methods.shown.plots",
    "keys": "sqlstress.experiments.keys.shown.plots",
    "cycles": "sqlstress.experiments.cycles.shown.plots",
}
"""Experiment → the module that has its plots."""


def report_plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group."""
    yield from cast(Iterator[Plot], import_module(PLOTS[group.case.experiment]).plots(group))


def ab_plots(report: Report) -> Iterator[Plot]:
    """Yield the plots of an A/B test; nothing of another report."""
    if report.ab:
        yield from ab.plots(report, report.ab)


def comparison_plots(compared: Compared) -> Iterator[Plot]:
    """Yield the plots of a table of several reports side by side."""
    yield from comparison.plots(compared)
