"""A report as Markdown, for an issue, a wiki or a job's summary on GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from tabulate import tabulate

from sqlstress.analysis.check import Checked
from sqlstress.analysis.comparison import Comparison
from sqlstress.display.blocks import Block, Bullets, Lines, Picture, Table
from sqlstress.display.clean import brief, visible
from sqlstress.render.views import report_blocks
from sqlstress.render.views.check import check_blocks
from sqlstress.render.views.comparison import comparison_blocks
from sqlstress.report import Report

# Inside a word an underscore marks nothing up, and names such as x86_64 stay readable.
_MARKUP = re.compile(r"[\\`*\[\]|~#!$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def report_markdown(*reports: Report) -> str:
    """Return reports as GitHub Markdown, with all columns; strings from elsewhere can't mark anything up."""
    return _page(chain.from_iterable(map(report_blocks, reports)))


def comparison_markdown(comparison: Comparison) -> str:
    """Return reports side by side as GitHub Markdown."""
    return _page(comparison_blocks(comparison))


def check_markdown(checked: Checked, metric: str, max_drop: float) -> str:
    """Return a report beside its baseline as GitHub Markdown, and how far that can be trusted."""
    return _page(check_blocks(checked, metric, max_drop))


def _page(blocks: Iterable[Block]) -> str:
    return "\n\n".join(map(drawn, blocks)) + "\n"


def drawn(block: Block) -> str:
    """Return one block as GitHub Markdown."""
    match block:
        case Table():
            return _tabulated(block)
        case Picture():
            return "\n".join(("```", *(visible(line).rstrip() for line in block.lines), "```"))
        case Lines():
            return "\n\n".join(map(_paragraph, block.texts))
        case Bullets():
            return "\n".join(f"- {_paragraph(text)}" for text in block.texts)
    return _paragraph(block.text)


def _paragraph(text: str) -> str:
    return _escaped(brief(text))


def _escaped(text: str) -> str:
    for character, entity in _HTML.items():
        text = text.replace(character, entity)
    return _MARKUP.sub(r"\\\g<0>", text)


def _tabulated(table: Table) -> str:
    return tabulate(
        [
            [_cell(cell, (place, index) in table.marked) for index, cell in enumerate(row)]
            for place, row in enumerate(table.rows)
        ],
        headers=[_escaped(header) for header in table.headers],
        tablefmt="pipe",
        colalign=table.alignment,
        disable_numparse=True,
    )


def _cell(text: str, marked: bool) -> str:
    shown = _paragraph(text)
    return f"**{shown}**" if marked else shown
