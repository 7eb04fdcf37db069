"""HTML page of a report: a single file that makes no network requests.

The Content-Security-Policy allows only our script, by its hash. So a browser would not run a script that came
into the page with a text of the report.
"""

from __future__ import annotations

import shlex
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib import resources

from sqlstress.analysis.ab import changes_of
from sqlstress.analysis.advice import early_end
from sqlstress.analysis.comparison import ComparedTable, Comparison, compare
from sqlstress.analysis.differences import LETTERS
from sqlstress.analysis.durability import durability_options
from sqlstress.analysis.group import rate_of
from sqlstress.analysis.highest_rate import answer_of, promise_clause
from sqlstress.analysis.wording import change_text, percent, place, quota
from sqlstress.experiment import rate_units_of
from sqlstress.report import Environment, Report, Run
from sqlstress.show import heading
from sqlstress.show.blocks import (
    Block,
    Bullets,
    Legend,
    Lines,
    Note,
    Paragraph,
    Picture,
    VerdictLine,
    visible,
)
from sqlstress.show.case_table import SYSTEMS
from sqlstress.show.comparison_view import comparison_heading, comparison_tables
from sqlstress.show.page.markup import WARNING, data, element, sentence, tables_html, text, text_columns
from sqlstress.show.plots import Plain, Plot, bar_plots, line_plots
from sqlstress.show.plots import name as plot_name
from sqlstress.show.sections import Section, comparison_headline, headline, report_sections
from sqlstress.show.shown import LoadShown, Tile, presenter_of, shown_results
from sqlstress.show.study_view import ab_plots, limit_plots
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE, PASS, UNDECIDED
from sqlstress.statistics.units import digits, format_count, format_ms, rounded


def report_html(*reports: Report) -> str:
    """Return reports as a page, which begins with a comparison if several have cases in common."""
    return named_html([(heading.when(report), report) for report in reports])


def named_html(named: Sequence[tuple[str, Report]]) -> str:
    """Return named reports as a page, which begins with a comparison if they have cases in common."""
    if 2 <= len(named) <= len(LETTERS) and (comparison := compare(named)).tables:
        return comparison_html(comparison)
    numbered = [f"Report {number}: {name}" for number, (name, _) in enumerate(named, 1)]
    return _page(numbered if len(named) > 1 else [""], [report for _, report in named])


def comparison_html(comparison: Comparison) -> str:
    """Return a page with a comparison of reports, followed by each report."""
    names = [f"Report {letter}: {name}" for letter, name in zip(LETTERS, comparison.names, strict=False)]
    return _page(names, comparison.reports, comparison)


def report_fragment(report: Report) -> str:
    """Return a report as one HTML element without a script, for a notebook."""
    sections = (
        element("section", *tables_html(_briefly(section.blocks))) for section in report_sections(report)
    )
    return element("article", *sections, class_="sqlstress")


def _briefly(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks without details: legends, notes, pictures, and findings after the first few."""
    for block in blocks:
        if isinstance(block, Bullets):
            yield Bullets(block.texts[: block.first])
        elif not isinstance(block, Legend | Note | Picture):
            yield block


def _page(names: Sequence[str], reports: Sequence[Report], comparison: Comparison | None = None) -> str:
    plots, title, body = Plots(), "", list[str]()
    if comparison:
        title = comparison_headline(comparison)
        body += _comparison_body(comparison, title, plots)
    for report, name in zip(reports, names, strict=False):
        sections = tuple(report_sections(report))
        finding = headline(sections[1:])
        title = title or finding
        body.append(_report(report, sections, f"{name}: {finding}" if name else finding, plots))
    return page(title, body, plots)


def page(title: str, body: Sequence[str], plots: Plots) -> str:
    """Return a complete page. `body` has the HTML of its sections, in which the script draws `plots`."""
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en">',
            element("head", *_head(title)),
            "<body>",
            element("main", *body),
            element("script", data(plots.views), type="application/json", id="plots"),
            element("script", script()),
            "</body>",
            "</html>\n",
        )
    )


class Plots:
    """Plots of a page, numbered from 0. The page's script finds the data of a plot by its number."""

    def __init__(self) -> None:
        self.views: list[list[Plain]] = []
        """Data of each plot for the script, by number of the plot: a dict for each view."""

    def place(self, plots: Iterable[Plot]) -> str:
        """Add plots to the page, and return the HTML in which the script draws them; "" without plots."""
        places = []
        for plot in plots:
            places.append(_place(len(self.views), plot))
            self.views.append([{"data": view.data, "layout": view.layout} for view in plot.views])
        return element("div", *places, class_="plots") if places else ""


def _head(title: str) -> Iterator[str]:
    digest = b64encode(sha256(script().encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    yield '\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="color-scheme" content="light dark">\n'
    yield '<link rel="icon" href="data:,">\n'
    yield element("title", text(title)) + "\n"
    yield element("style", _asset("page.css")) + "\n"


SCRIPTS = ("chart.js", "page.js")
"""Files of the page's script. chart.js comes first, because page.js uses it."""


@cache
def script() -> str:
    """Return the page's script, wrapped in a function, so that it adds no global names."""
    return "\n".join(('"use strict";', "(() => {", *map(_asset, SCRIPTS), "})();"))


def _asset(name: str) -> str:
    return resources.files("sqlstress.show.page").joinpath(name).read_text(encoding="utf-8")


BUTTONS = tuple(
    element("button", name, type="button", hidden=True, title=description)
    for name, description in (("Show all", "show all data again"), ("Save", "save this chart as SVG"))
)
"""Buttons of a plot, hidden at first. The script shows a button when the button has an effect."""


def _place(number: int, plot: Plot) -> str:
    """Return the HTML in which the script draws a plot: title, buttons, list of views, frame and note."""
    choices = [
        element("option", text(view.label), value=str(index), selected=index == plot.first)
        for index, view in enumerate(plot.views)
    ]
    choice = element("select", *choices, aria_label=f"{plot.title}: data shown") if choices[1:] else ""
    return element(
        "figure",
        element("figcaption", element("h3", text(plot.title)), *BUTTONS, choice),
        element("div", class_="canvas"),
        element("p", text(plot.note), class_="remark"),
        class_="plot wide" if plot.is_wide else "plot",
        data_plot=str(number),
    )


def _comparison_body(comparison: Comparison, title: str, plots: Plots) -> Iterator[str]:
    yield element("section", element("h1", text(title)), *tables_html(comparison_heading(comparison)))
    for view in comparison_tables(comparison):
        findings = view.findings
        yield element(
            "section",
            text_columns((*view.before, *((Paragraph("Conclusions:"), findings) if findings.texts else ()))),
            plots.place(_comparison_plots(view.compared)),
            *tables_html(view.figures),
        )


def _comparison_plots(compared: ComparedTable) -> Iterator[Plot]:
    """Return the plots that compare reports: lines by number of processes, or else bars."""
    names = []
    for part in compared.table.parts:
        system = part.report.environment.host.system
        unknown = "published" if part.report.published is not None else "unknown"
        names.append(plot_name(f"{part.letter} {SYSTEMS.get(system, system) or unknown}"))
    if compared.table.sweeps:
        return line_plots(compared, names)
    presenter = presenter_of(compared.table.parts[0].case)
    return bar_plots(compared, names, presenter.bar, presenter.bar_name)


def _report(report: Report, sections: Sequence[Section], title: str, plots: Plots) -> str:
    """Return a report as HTML: title, main figures, sections, environment, command. Add plots to `plots`."""
    first, *further = sections
    lines = (block for section in further for block in section.blocks if isinstance(block, Lines))
    warned = {words.removeprefix(WARNING) for block in lines for words in block.texts}
    tiles = (
        element("div", element("strong", text(value)), element("span", text(caption)), class_=f"tile {kind}")
        for value, caption, kind in _tiles(report)
    )
    top = element("div", *tiles, class_="tiles")
    return element(
        "article",
        element("header", element("h1", text(title)), *tables_html(first.blocks), top),
        *(_section(report, section, plots) for section in further),
        element("section", element("h2", "Environment"), _environment(report.environment, warned)),
        _repeat_command(report),
    )


def _section(report: Report, section: Section, plots: Plots) -> str:
    group = section.group
    shown = presenter_of(group.case).plots(group) if group else _study_plots(report)
    placed = plots.place(shown)
    plots_throughput = group and isinstance(presenter_of(group.case), LoadShown) and not group.case.rate
    if group and plots_throughput and _has_wrong_data(group.runs):
        placed += element("p", "Throughput is plotted only for cases whose data is right.", class_="remark")
    begin, rest = section.blocks[:1], section.blocks[1:]
    saying = [block for block in rest if isinstance(block, VerdictLine | Bullets)]
    # Plots show the same figures better than a picture made of characters.
    left_out = (VerdictLine, Bullets, Picture) if placed else (VerdictLine, Bullets)
    figures = [block for block in rest if not isinstance(block, left_out)]
    return element("section", text_columns((*begin, *saying)), placed, *tables_html(figures))


def _study_plots(report: Report) -> Iterator[Plot]:
    yield from ab_plots(report)
    yield from limit_plots(report)
    for shown, result in shown_results(report):
        yield from shown.result_plots(result)


_NOT_PROVED = "This does not cover a power failure, or rare races that no trial met"
"""Sentence on losses that the checks of the data cannot find."""
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


def _tiles(report: Report) -> Iterator[Tile]:
    if report.results:
        for shown, result in shown_results(report):
            yield from shown.tiles(result)
        return
    if report.ab:
        verdict, kind = _GATE.get(report.ab.verdict, _GATE[UNDECIDED])
        changes = "; ".join(map(change_text, changes_of(report, report.ab)))
        yield verdict, changes or "B against A", kind
    elif report.limit:
        answer, promise_text = answer_of(report, report.limit), promise_clause(report.limit.promise)
        for due_rate, verb in ((answer.holds, "holds"), (answer.breaks, "does not hold")):
            if due_rate is not None:
                yield f"{digits(due_rate)}/s", f"{verb} {promise_text}", ""
        if answer.holds is None and answer.breaks is None:
            yield "cannot tell", f"which rate holds {promise_text}", "unknown"
    else:
        # Only rates with the unit of the first rate are compared. Cases of another experiment may have a
        # different unit, such as rows.
        rates = [(rate, run, rate_units_of(run.case)) for run in report.runs if (rate := rate_of(run))]
        if same_unit := [entry for entry in rates if entry[2] == rates[0][2]]:
            highest, best, unit = max(same_unit, key=lambda entry: entry[0])
            proviso = " where the data is right" if _has_wrong_data(report.runs) else ""
            yield rounded(highest), f"{unit} per second, the highest median{proviso}: {place(best.case)}", ""
    yield from _trust(report)


def _has_wrong_data(runs: Iterable[Run]) -> bool:
    return any(run.verdict.status == "failed" for run in runs)


def _trust(report: Report) -> Iterator[Tile]:
    """Yield tiles that show how far to trust a report: verified data, measured cases, cost of a sync."""
    statuses = {run.verdict.status for run in report.runs}
    status = next(
        (candidate for candidate in ("failed", "unknown", "ok") if candidate in statuses), "skipped"
    )
    proofs = "; ".join(
        dict.fromkeys(presenter_of(run.case).proves for run in report.runs if run.verdict.status == "ok")
    )
    if status == "ok" and any(run.failed_too_many for run in report.runs):
        share = percent(max(run.failed_share() for run in report.runs))
        yield f"{share} failed", f"of what was done: {proofs}", "failed"
    elif status == "ok":
        yield "proved", f"at the end of each trial: {proofs}. {_NOT_PROVED}", status
    else:
        yield *_PROOF[status], status
    failed = sum(run.error is not None for run in report.runs)
    amount = f"{digits(len(report.runs))} of {digits(max(report.planned, len(report.runs)))}"
    errors = f", {digits(failed)} with errors" if failed else ""
    if report.published is not None:
        yield digits(len(report.runs) - failed), "cases published", ""
    elif cut := early_end(report):
        yield f"{digits(cut.made)} of {digits(cut.planned)}", f"trials made{errors}", "failed" * bool(failed)
    else:
        yield amount, f"cases measured{errors}", "failed" * bool(failed)
    if sync := report.environment.sync:
        yield f"{format_ms(sync.overwrite_p50_ns)} ms", f"one {sync.primitive} (p50)", ""


_GIB = 1 << 30
_UNKNOWN = "unknown"
_LONGEST_COMMAND = 4000


def _environment(surroundings: Environment, warned: Collection[str]) -> str:
    """Return the environment as an HTML list, then its warnings, except those in `warned` (shown above)."""
    terms = [
        element("div", element("dt", text(name)), element("dd", text(value)))
        for name, value in _facts(surroundings)
        if value
    ]
    ordered = sorted(surroundings.warnings, key=lambda warning: not warning.serious)
    warnings = [
        element("p", sentence(warning.text), class_="warning" if warning.serious else "remark")
        for warning in ordered
        if warning.text not in warned
    ]
    return element("dl", *terms) + element(
        "div", *warnings, class_="said two" if len(warnings) > 1 else "said"
    )


def _facts(surroundings: Environment) -> Iterator[tuple[str, str]]:
    """Yield the properties (name, value) of the environment. An unknown value may be ""."""
    host, file_system = surroundings.host, surroundings.file_system
    yield "System", f"{host.system} {host.release}, {host.machine}".strip(" ,") or _UNKNOWN
    yield "Processor", host.processor
    yield "Cores", "" if host.cores is None else digits(host.cores)
    yield "CPU quota", quota(host)
    yield "Memory", "" if host.memory_bytes is None else f"{rounded(host.memory_bytes / _GIB)} GiB"
    yield "Python", host.python
    if host.sleep_1ms_ns is not None:
        yield "A sleep of 1 ms", f"{format_ms(host.sleep_1ms_ns)} ms"
    yield (
        "File system",
        f"{file_system.kind} on {file_system.device}" if file_system.device else file_system.kind,
    )
    yield "Mount options", file_system.options.replace(",", ", ")
    if cost := surroundings.sync:
        kinds = (
            ("Write and sync, at the end", cost.append_p50_ns, cost.append_p99_ns),
            ("Write and sync, over a block", cost.overwrite_p50_ns, cost.overwrite_p99_ns),
        )
        for name, p50, p99 in kinds:
            yield name, f"{cost.primitive}: p50 {format_ms(p50)} ms, p99 {format_ms(p99)} ms"
    for build in surroundings.builds:
        yield f"{build.library} of {build.driver}", f"{build.version} ({build.driver} {build.driver_version})"
        yield "Built from", build.source_id
        if build.memory_gets_per_s is not None:
            yield "Gets per second from memory", format_count(build.memory_gets_per_s)
        yield "Compile options", durability_options(build.compile_options)


def _repeat_command(report: Report) -> str:
    if not report.command:
        return ""
    line = shlex.join(map(visible, report.command))[:_LONGEST_COMMAND]
    # Each word of the command is an element, so that the page breaks no line within a word.
    words = (element("span", escape(word)) for word in line.split(" "))
    seeds = {run.case.seed for run in report.runs}
    has_seed = any(word.partition("=")[0] == "--seed" for word in report.command)
    is_random = report.published is None and len(seeds) == 1 and not has_seed
    seed = f"The seed was random: add --seed {seeds.pop()} to get the same keys." if is_random else ""
    button = element("button", "Copy", type="button", class_="copy", hidden=True)
    code = element("pre", element("code", " ".join(words)), tabindex="0")
    remark = element("p", sentence(seed), class_="remark") if seed else ""
    command = element("div", code, button, class_="command")
    return element("section", element("h2", "Measure it again"), command, remark)
