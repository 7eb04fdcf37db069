"""The plots of a page, as plain data that plotly.js draws."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.comparison import Compared, Part
from sqlstress.analysis.group import Group
from sqlstress.display.measures import SYSTEMS
from sqlstress.display.plot import Plot, name
from sqlstress.experiment import face_of
from sqlstress.render.page.plots import ab
from sqlstress.report import Report


def report_plots(group: Group) -> Iterator[Plot]:
    """Yield the plots of a group."""
    yield from face_of(group.case).show().plots(group)


def ab_plots(report: Report) -> Iterator[Plot]:
    """Yield the plots of an A/B test; nothing of another report."""
    if report.ab:
        yield from ab.plots(report, report.ab)


def comparison_plots(compared: Compared) -> Iterator[Plot]:
    """Yield the plots of a table of several reports side by side."""
    names = [_name(part) for part in compared.table.parts]
    yield from face_of(compared.table.parts[0].case).show().compared_plots(compared, names)


def _name(part: Part) -> str:
    system = part.report.environment.host.system
    unknown = "published" if part.report.published is not None else "unknown"
    return name(f"{part.letter} {SYSTEMS.get(system, system) or unknown}")
