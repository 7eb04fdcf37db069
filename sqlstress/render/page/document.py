"""The page: one file, which opens offline and may ask nobody for anything.

Its Content-Security-Policy lets two scripts run, ours and plotly.js, each known by its hash: a text of a
report that got through as a script would still not run.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib import resources

from sqlstress.analysis.comparison import LETTERS, compare
from sqlstress.render import heading
from sqlstress.render.blocks import Bullets, Picture
from sqlstress.render.page import facts
from sqlstress.render.page.blocks import drawn
from sqlstress.render.page.library import plotly_js
from sqlstress.render.page.markup import data, element, text
from sqlstress.render.page.plots import ab_plots, comparison_plots, report_plots
from sqlstress.render.page.plots.plot import Plot
from sqlstress.render.views import Section, report_sections
from sqlstress.render.views.comparison import comparison_heading, comparison_tables
from sqlstress.report import Report


def report_html(*reports: Report) -> str:
    """Return reports as a page; of several ones, first what they say beside each other.

    Raises UsageError where plotly is not installed.
    """
    plots = Plots()
    body = [*_beside(reports, plots), *(_report(report, plots) for report in reports)]
    scripts = [plotly_js(), _asset("page.js")]
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en">',
            element("head", *_head(scripts, heading.origin(reports[0]) if reports else "nothing")),
            "<body>",
            element("main", *body),
            element("script", data(plots.plain()), type="application/json", id="plots"),
            *(element("script", script) for script in scripts),
            "</body>",
            "</html>\n",
        )
    )


class Plots:
    """The plots of a page, numbered as they are placed."""

    def __init__(self) -> None:
        self._placed: list[Plot] = []

    def place(self, plots: Iterable[Plot]) -> str:
        """Return the places of plots, which the script fills."""
        places = []
        for plot in plots:
            places.append(_place(len(self._placed), plot))
            self._placed.append(plot)
        return element("div", *places, class_="plots") if places else ""

    def plain(self) -> list[object]:
        """Return all of them, for the script."""
        return [[{"data": view.data, "layout": view.layout} for view in plot.views] for plot in self._placed]


def _head(scripts: Iterable[str], title: str) -> Iterator[str]:
    allowed = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    # Plotly writes its styles into the page, and makes pictures for download of it.
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    yield '\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="color-scheme" content="light dark">\n'
    yield '<link rel="icon" href="data:,">\n'
    yield element("title", text(title)) + "\n"
    yield element("style", _asset("page.css")) + "\n"


def _hash(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()


def _asset(name: str) -> str:
    return resources.files("sqlstress.render.page").joinpath(name).read_text(encoding="utf-8")


def _place(number: int, plot: Plot) -> str:
    choices = [
        element("option", text(view.label), value=str(place), selected=place == plot.first)
        for place, view in enumerate(plot.views)
    ]
    shown = "".join(choices)
    choice = element("select", shown, aria_label=f"{plot.title}: what is shown") if len(choices) > 1 else ""
    return element(
        "figure",
        element("figcaption", element("h3", text(plot.title)), choice),
        element("div", class_="canvas"),
        element("p", text(plot.note), class_="remark"),
        class_="plot wide" if plot.wide else "plot",
        data_plot=str(number),
    )


def _beside(reports: tuple[Report, ...], plots: Plots) -> Iterator[str]:
    """Yield what several reports say beside each other; nothing of those that have no case in common."""
    if not 2 <= len(reports) <= len(LETTERS):
        return
    comparison = compare([(heading.when(report), report) for report in reports])
    if comparison.tables:
        yield element(
            "section",
            element("h1", "Reports side by side"),
            *map(drawn, comparison_heading(comparison)),
        )
        for beside in comparison_tables(comparison):
            yield element(
                "section",
                *map(drawn, (*beside.before, beside.findings)),
                plots.place(comparison_plots(beside.compared)),
                *map(drawn, beside.figures),
            )


def _report(report: Report, plots: Plots) -> str:
    first, *others = report_sections(report)
    return element(
        "article",
        element(
            "header",
            element("h1", "sqlstress"),
            *map(drawn, first.blocks),
            facts.tiles(report),
        ),
        *(_section(report, section, plots) for section in others),
        element("section", element("h2", "Environment"), facts.environment(report.environment)),
        _again(report),
    )


def _section(report: Report, section: Section, plots: Plots) -> str:
    """Return a section: what was done, what it says, the plots, the tables."""
    placed = plots.place(report_plots(section.group) if section.group else ab_plots(report))
    # A picture shows in characters what a plot shows better.
    others = (Bullets, Picture) if placed else Bullets
    begin, rest = section.blocks[:1], section.blocks[1:]
    return element(
        "section",
        *map(drawn, begin),
        *(drawn(block) for block in rest if isinstance(block, Bullets)),
        placed,
        *(drawn(block) for block in rest if not isinstance(block, others)),
    )


def _again(report: Report) -> str:
    command = facts.command(report)
    return element("section", element("h2", "To measure it again"), command) if command else ""
