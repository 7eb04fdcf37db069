"""The page: one file, which opens offline and may ask nobody for anything.

Its Content-Security-Policy lets our script run, known by its hash: a text of a report that got through as a
script would still not run.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources

from sqlstress.analysis.comparison import LETTERS, Comparison, compare
from sqlstress.display import heading
from sqlstress.display.blocks import Block, Bullets, Lines, Paragraph, Picture, Table, Verdict
from sqlstress.display.plot import Plot
from sqlstress.render.page import facts
from sqlstress.render.page.limit_plot import limit_plots
from sqlstress.render.page.markup import WARNING, data, drawn, element, said, text
from sqlstress.render.page.plots import ab_plots, comparison_plots, report_plots
from sqlstress.render.page.tables import Folded, drawn_folded, drawn_table, folded
from sqlstress.render.views import Section, report_sections
from sqlstress.render.views.comparison import comparison_heading, comparison_tables
from sqlstress.render.views.headline import headline, headline_beside
from sqlstress.report import Report


def report_html(*reports: Report) -> str:
    """Return reports as a page; of several ones, first what they say beside each other."""
    return named_html([(heading.when(report), report) for report in reports])


def named_html(named: Sequence[tuple[str, Report]]) -> str:
    """Return the same of reports that have names, such as their files'."""
    if comparison := _beside(named):
        return comparison_html(comparison)
    numbered = [f"Report {number}: {name}" for number, (name, _) in enumerate(named, 1)]
    return _page(numbered if len(named) > 1 else [""], [report for _, report in named], Plots())


def comparison_html(comparison: Comparison) -> str:
    """Return reports side by side as a page, and then each by itself."""
    names = [f"Report {one}: {name}" for one, name in zip(LETTERS, comparison.names, strict=False)]
    title, plots = headline_beside(comparison), Plots()
    return _page(names, comparison.reports, plots, title, _compared(comparison, title, plots))


def _page(
    names: Sequence[str],
    reports: Sequence[Report],
    plots: Plots,
    title: str = "",
    before: Iterable[str] = (),
) -> str:
    """Return a page; without a title of its own it has that of its first report."""
    body = [*before]
    for report, name in zip(reports, names, strict=False):
        sections = tuple(report_sections(report))
        finding = headline(sections[1:])
        title = title or finding
        body.append(_report(report, sections, f"{name}: {finding}" if name else finding, plots))
    return page(title, body, plots)


def page(title: str, body: Sequence[str], plots: Plots) -> str:
    """Return a page of sections, with the plots that were placed in them."""
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en">',
            element("head", *_head(title)),
            "<body>",
            element("main", *body),
            element("script", data(plots.plain()), type="application/json", id="plots"),
            element("script", script()),
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


def _head(title: str) -> Iterator[str]:
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script())}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
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


SCRIPTS = ("marks.js", "chart.js", "page.js")
"""Each uses those before it."""


@cache
def script() -> str:
    """Return the page's script: its files as one, whose names are seen by nobody else."""
    return "\n".join(('"use strict";', "(() => {", *map(_asset, SCRIPTS), "})();"))


def _asset(name: str) -> str:
    return resources.files("sqlstress.render.page").joinpath(name).read_text(encoding="utf-8")


BUTTONS = tuple(
    element("button", name, type="button", hidden=True, title=told)
    for name, told in (("Show all", "the whole again"), ("Save", "this chart as a picture, SVG"))
)
"""Of a plot; the script shows them where they do something."""


def _place(number: int, plot: Plot) -> str:
    choices = [
        element("option", text(view.label), value=str(place), selected=place == plot.first)
        for place, view in enumerate(plot.views)
    ]
    shown = "".join(choices)
    choice = element("select", shown, aria_label=f"{plot.title}: what is shown") if len(choices) > 1 else ""
    return element(
        "figure",
        element("figcaption", element("h3", text(plot.title)), *BUTTONS, choice),
        element("div", class_="canvas"),
        element("p", text(plot.note), class_="remark"),
        class_="plot wide" if plot.wide else "plot",
        data_plot=str(number),
    )


def _beside(named: Sequence[tuple[str, Report]]) -> Comparison | None:
    """Return what several reports say beside each other; None of those that have no case in common."""
    if not 2 <= len(named) <= len(LETTERS):
        return None
    comparison = compare(named)
    return comparison if comparison.tables else None


def _compared(comparison: Comparison, title: str, plots: Plots) -> Iterator[str]:
    yield element("section", element("h1", text(title)), *tables_of(comparison_heading(comparison)))
    for beside in comparison_tables(comparison):
        yield element(
            "section",
            said((*beside.before, *_saying(beside.findings))),
            plots.place(comparison_plots(beside.compared)),
            *tables_of(beside.figures),
        )


def _saying(findings: Bullets) -> tuple[Block, ...]:
    return (Paragraph("What they say:"), findings) if findings.texts else ()


def _report(report: Report, sections: Sequence[Section], title: str, plots: Plots) -> str:
    first, *others = sections
    return element(
        "article",
        element("header", element("h1", text(title)), *tables_of(first.blocks), facts.tiles(report)),
        *(_section(report, section, plots) for section in others),
        element(
            "section", element("h2", "Environment"), facts.environment(report.environment, _told(others))
        ),
        _again(report),
    )


def _told(sections: Iterable[Section]) -> set[str]:
    """Return the warnings that stand in sections."""
    lines = (block for section in sections for block in section.blocks if isinstance(block, Lines))
    return {words.removeprefix(WARNING) for block in lines for words in block.texts}


def _section(report: Report, section: Section, plots: Plots) -> str:
    """Return a section: what was done, what it says, the plots, the tables."""
    placed = plots.place(report_plots(section.group) if section.group else _whole_plots(report))
    begin, rest = section.blocks[:1], section.blocks[1:]
    saying = [block for block in rest if isinstance(block, Verdict | Bullets)]
    # A picture shows in characters what a plot shows better.
    left_out = (Verdict, Bullets, Picture) if placed else (Verdict, Bullets)
    figures = [block for block in rest if not isinstance(block, left_out)]
    return element("section", said((*begin, *saying)), placed, *tables_of(figures))


def _whole_plots(report: Report) -> Iterator[Plot]:
    yield from ab_plots(report)
    yield from limit_plots(report)


def tables_of(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield blocks as HTML, the tables in the page's way."""
    for part in folded(tuple(blocks)):
        match part:
            case Folded():
                yield drawn_folded(part)
            case Table():
                yield drawn_table(part)
            case Paragraph() | Verdict() | Lines() | Bullets() | Picture():
                yield drawn(part)


def _again(report: Report) -> str:
    command = facts.command(report)
    return element("section", element("h2", "To measure it again"), command) if command else ""
