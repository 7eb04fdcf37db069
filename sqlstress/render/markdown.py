"""A report as Markdown, for an issue, a wiki or a job's summary on GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tabulate import tabulate

from sqlstress.analysis.advice import advise_group, missing
from sqlstress.analysis.group import Group, group_runs
from sqlstress.render import heading
from sqlstress.render.clean import brief
from sqlstress.render.legend import legend
from sqlstress.render.table import Table, build
from sqlstress.report import Report

# Inside a word an underscore marks nothing up, and names such as x86_64 stay readable.
_MARKUP = re.compile(r"[\\`*\[\]|~#!$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def report_markdown(report: Report) -> str:
    """Return a report as GitHub Markdown, with all columns; strings from elsewhere can't mark anything up."""
    blocks = [_paragraph(heading.origin(report))]
    for group in group_runs(report.runs):
        blocks += _group(group, report)
    blocks += [_paragraph(finding.text) for finding in missing(report)]
    if not report.runs:
        blocks.append("Nothing was measured.")
    return "\n\n".join(blocks) + "\n"


def _group(group: Group, report: Report) -> Iterator[str]:
    findings = advise_group(group)
    environment = report.environment
    about = (heading.describe(group, environment), *heading.durability(group, environment))
    yield from map(_paragraph, (*about, *heading.warnings(group, environment, findings)))
    shown = build(group)
    yield _drawn(shown)
    yield _paragraph(legend(group, shown))
    if findings:
        yield "\n".join(f"- {_paragraph(finding.text)}" for finding in findings)


def _paragraph(text: str) -> str:
    return _escaped(brief(text))


def _escaped(text: str) -> str:
    for character, entity in _HTML.items():
        text = text.replace(character, entity)
    return _MARKUP.sub(r"\\\g<0>", text)


def _drawn(table: Table) -> str:
    return tabulate(
        [[_escaped(cell) for cell in row] for row in table.rows],
        headers=[_escaped(header) for header in table.headers],
        tablefmt="pipe",
        colalign=table.alignment,
        disable_numparse=True,
    )
