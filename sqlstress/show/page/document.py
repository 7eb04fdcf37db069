"""The page: one file, which opens offline and may ask nobody for anything.

Its Content-Security-Policy lets our script run, known by its hash: a text of a report that got through as a
script would still not run.
"""

from __future__ import annotations

import shlex
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib import resources

from sqlstress.analysis.ab import found_change
from sqlstress.analysis.comparison import LETTERS, Comparison, compare
from sqlstress.analysis.durability import telling
from sqlstress.analysis.finding import results
from sqlstress.analysis.group import rate_of
from sqlstress.analysis.highest_rate import answered, promised
from sqlstress.analysis.wording import percent, place, rounded, whole
from sqlstress.experiment import face_of
from sqlstress.report import AbTest, Environment, Report, Run, SqliteBuild, SyncCost
from sqlstress.report.study_results import LimitSearch
from sqlstress.show import heading
from sqlstress.show.blocks import Block, Bullets, Legend, Lines, Paragraph, Picture, Table, Verdict, visible
from sqlstress.show.comparison_view import comparison_heading, comparison_tables
from sqlstress.show.limit_view import limit_plots
from sqlstress.show.page.chart_data import ab_plots, comparison_plots, report_plots
from sqlstress.show.page.markup import (
    WARNING,
    Folded,
    data,
    drawn,
    drawn_folded,
    drawn_table,
    element,
    folded,
    said,
    sentence,
    text,
)
from sqlstress.show.plots import Plot
from sqlstress.show.shown import Tile
from sqlstress.show.views import Section, headline, headline_beside, report_sections
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE, PASS, UNDECIDED
from sqlstress.statistics.units import format_count, format_ms


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
    return resources.files("sqlstress.show.page").joinpath(name).read_text(encoding="utf-8")


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
        element("header", element("h1", text(title)), *tables_of(first.blocks), tiles(report)),
        *(_section(report, section, plots) for section in others),
        element("section", element("h2", "Environment"), environment(report.environment, _told(others))),
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
            case Paragraph() | Verdict() | Lines() | Bullets() | Picture() | Legend():
                yield drawn(part)


def _again(report: Report) -> str:
    command = command_again(report)
    return element("section", element("h2", "To measure it again"), command) if command else ""


# Facts of a page: at its top the figures looked for first, at its end the environment and the command.


_PROOF = {
    "failed": ("FAILED", "the data is wrong"),
    "unknown": ("undecided", "whether the data is right"),
    "skipped": ("unproved", "nothing was checked"),
}
_GATE = {
    FAIL: ("FAIL", "failed"),
    PASS: ("pass", "ok"),
    INCONCLUSIVE: ("inconclusive", "unknown"),
    UNDECIDED: ("undecided", "unknown"),
}


def tiles(report: Report) -> str:
    """Return the figures that are looked for first."""
    return element(
        "div",
        *(
            element("div", element("strong", text(value)), element("span", text(what)), class_=f"tile {kind}")
            for value, what, kind in _tiles(report)
        ),
        class_="tiles",
    )


def _tiles(report: Report) -> Iterator[Tile]:
    if report.results:
        for experiment, found in results(report):
            yield from experiment.show_result().tiles(found)
        return
    if report.ab:
        yield from _gate(report, report.ab)
    elif report.limit:
        yield from _limit(report, report.limit)
    else:
        yield from _best(report)
    yield from _trust(report)


def _gate(report: Report, test: AbTest) -> Iterator[Tile]:
    verdict, kind = _GATE.get(test.verdict, _GATE[UNDECIDED])
    yield verdict, found_change(report, test) or "B beside A", kind


def _limit(report: Report, search: LimitSearch) -> Iterator[Tile]:
    found, what = answered(report, search), promised(search.promise)
    for rate, verb in ((found.holds, "holds"), (found.breaks, "does not hold")):
        if rate is not None:
            yield f"{whole(rate)}/s", f"{verb} {what}", ""
    if found.holds is None and found.breaks is None:
        yield "can't tell", f"which rate holds {what}", "unknown"


def _best(report: Report) -> Iterator[Tile]:
    """Yield the highest rate of the report's first experiment: those of others count something else."""
    found = [(rate, run) for run in report.runs if (rate := rate_of(run))]
    own = [one for one in found if _counted(one[1]) == _counted(found[0][1])]
    if own:
        rate, best = max(own, key=lambda one: one[0])
        yield rounded(rate), f"{_counted(best)} a second at most: {place(best.case)}", ""


def _counted(run: Run) -> str:
    return face_of(run.case).rate_counts


def _trust(report: Report) -> Iterator[Tile]:
    """Yield how far the figures can be trusted."""
    statuses = [run.verdict.status for run in report.runs]
    status = next((one for one in ("failed", "unknown", "ok", "skipped") if one in statuses), "skipped")
    if status == "ok" and any(run.failed_too_many for run in report.runs):
        yield _given_up(report)
    elif status == "ok":
        yield "proved", _proved(report), status
    else:
        yield *_PROOF[status], status
    failed = sum(run.error is not None for run in report.runs)
    amount = f"{whole(len(report.runs))} of {whole(max(report.planned, len(report.runs)))}"
    errors = f", {whole(failed)} with errors" if failed else ""
    if report.published is not None:
        yield whole(len(report.runs) - failed), "cases published", ""
    else:
        yield amount, f"cases measured{errors}", "failed" * bool(failed)
    if sync := report.environment.sync:
        yield f"{format_ms(sync.overwrite_p50_ns)} ms", f"one {sync.primitive} (p50)", ""


def _proved(report: Report) -> str:
    """Return what is known of the data, of each experiment that knows something else of it."""
    proved = [run for run in report.runs if run.verdict.status == "ok"]
    return "; ".join(dict.fromkeys(face_of(run.case).show().proves for run in proved))


def _given_up(report: Report) -> Tile:
    """Return that the data is right, and that more was given up than may be."""
    worst = max(report.runs, key=Run.failed_share)
    return f"{percent(worst.failed_share())} failed", f"of what was done: {_proved(report)}", "failed"


_GIB = 1 << 30
_UNKNOWN = "unknown"
_LONGEST_COMMAND = 4000


def environment(surroundings: Environment, told: Collection[str] = ()) -> str:
    """Return the environment as a list of terms, and its warnings but for those that were told above."""
    terms = [
        element("div", element("dt", text(name)), element("dd", text(value)))
        for name, value in _facts(surroundings)
        if value
    ]
    ordered = sorted(surroundings.warnings, key=lambda warning: not warning.serious)
    warnings = [
        element("p", sentence(warning.text), class_="warning" if warning.serious else "remark")
        for warning in ordered
        if warning.text not in told
    ]
    return element("dl", *terms) + element(
        "div", *warnings, class_="said two" if len(warnings) > 1 else "said"
    )


def _facts(surroundings: Environment) -> Iterator[tuple[str, str]]:
    host, mounted = surroundings.host, surroundings.file_system
    yield "System", f"{host.system} {host.release}, {host.machine}".strip(" ,") or _UNKNOWN
    yield "Processor", host.processor
    yield "Cores", "" if host.cores is None else whole(host.cores)
    yield "Memory", "" if host.memory_bytes is None else f"{rounded(host.memory_bytes / _GIB)} GiB"
    yield "Python", host.python
    if host.sleep_1ms_ns is not None:
        yield "A sleep of 1 ms", f"{format_ms(host.sleep_1ms_ns)} ms"
    yield "File system", f"{mounted.kind} on {mounted.device}" if mounted.device else mounted.kind
    yield "Mount options", mounted.options.replace(",", ", ")
    if surroundings.sync:
        yield from _sync(surroundings.sync)
    for build in surroundings.builds:
        yield from _build(build)


def _sync(cost: SyncCost) -> Iterator[tuple[str, str]]:
    kinds = {
        "Write and sync, at the end": (cost.append_p50_ns, cost.append_p99_ns),
        "Write and sync, over a block": (cost.overwrite_p50_ns, cost.overwrite_p99_ns),
    }
    for name, (p50, p99) in kinds.items():
        yield name, f"{cost.primitive}: p50 {format_ms(p50)} ms, p99 {format_ms(p99)} ms"


def _build(build: SqliteBuild) -> Iterator[tuple[str, str]]:
    yield f"{build.library} of {build.driver}", f"{build.version} ({build.driver} {build.driver_version})"
    yield "Built from", build.source_id
    if build.memory_gets_per_s is not None:
        yield "Gets a second from memory", format_count(build.memory_gets_per_s)
    yield "Compile options", telling(build.compile_options)


def command_again(report: Report) -> str:
    """Return the command that measures it again, to be copied; nothing where there was none."""
    if not report.command:
        return ""
    line = shlex.join(map(visible, report.command))[:_LONGEST_COMMAND]
    # No line breaks within a word, such as after a hyphen.
    words = (element("span", escape(word)) for word in line.split(" "))
    seeds = {run.case.seed for run in report.runs}
    given = any(word.partition("=")[0] == "--seed" for word in report.command)
    known = report.published is None and len(seeds) == 1 and not given
    seed = f"It drew a seed of its own: add --seed {seeds.pop()} for the same keys." if known else ""
    button = element("button", "Copy", type="button", class_="copy", hidden=True)
    return element(
        "div", element("pre", element("code", " ".join(words)), tabindex="0"), button, class_="command"
    ) + (element("p", sentence(seed), class_="remark") if seed else "")
