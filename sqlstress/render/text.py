"""A report for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from tabulate import DataRow, TableFormat, tabulate

from sqlstress.analysis.advice import advise_group, missing
from sqlstress.analysis.group import Group, group_runs
from sqlstress.render import heading
from sqlstress.render.clean import brief
from sqlstress.render.legend import legend
from sqlstress.render.table import Table, build, give_way
from sqlstress.report import Report

WIDTH = 80


def report_text(report: Report) -> str:
    """Return a report as text: what was measured, the tables, and what they say, in lines of 80 columns."""
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
    yield "\n".join(map(_paragraph, (*about, *heading.warnings(group, environment, findings))))
    shown = build(group)
    yield _fitted(shown, give_way(group))
    yield _paragraph(legend(group, shown))
    if findings:
        yield "\n".join(_paragraph(finding.text, "- ") for finding in findings)


def _paragraph(text: str, bullet: str = "") -> str:
    return "\n".join(
        wrap(
            brief(text),
            WIDTH,
            initial_indent=bullet,
            subsequent_indent=" " * len(bullet),
            break_on_hyphens=False,
        )
    )


def _fitted(table: Table, leaving: tuple[str, ...]) -> str:
    """Return the table as text: with narrow gaps if need be, and without columns if it must be."""
    for gap in ("  ", " "):
        text = _drawn(table, gap)
        if max(map(len, text.splitlines())) <= WIDTH or (gap == " " and not leaving):
            return text
    return _fitted(table.without(leaving[0]), leaving[1:])


def _drawn(table: Table, gap: str) -> str:
    # tabulate knows headers of two lines in its own formats only, and those have wide gaps.
    first, second = ([column.heading[line] for column in table.columns] for line in (0, 1))
    lines = [first, second, *table.rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(table.columns))]
    drawn = tabulate(
        [first, second, ["-" * width for width in widths], *table.rows],
        tablefmt=TableFormat(None, None, None, None, DataRow("", gap, ""), DataRow("", gap, ""), 0, None),
        colalign=table.alignment,
        disable_numparse=True,
    )
    return "\n".join(line.rstrip() for line in drawn.splitlines())
