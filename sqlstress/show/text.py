"""A report as text for a terminal of 80 characters, either brief or with all details."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap

from tabulate import DataRow, TableFormat, tabulate

from sqlstress.analysis.wording import listing
from sqlstress.show.blocks import Block, Bullets, Legend, Lines, Note, Picture, Table, brief, clean, visible
from sqlstress.show.sections import Pages
from sqlstress.statistics.units import plural

WIDTH = 80


def draw(block: Block) -> str:
    """Return a block as text, in lines of at most 80 characters if possible."""
    match block:
        case Table():
            return _fit(block)[1]
        case Legend():
            return _paragraph(block.of(_fit(block.table)[0]))
        case Picture():
            return "\n".join(visible(line).rstrip() for line in block.lines)
        case Lines():
            return "\n".join(map(_paragraph, block.texts))
        case Bullets():
            return "\n".join(_paragraph(text, "- ") for text in block.texts)
    return _paragraph(block.text)


def _paragraph(text: str, bullet: str = "") -> str:
    indent = " " * len(bullet)
    return "\n".join(
        wrap(brief(text), WIDTH, initial_indent=bullet, subsequent_indent=indent, break_on_hyphens=False)
    )


def _fit(table: Table) -> tuple[Table, str]:
    """Return a table that fits into WIDTH, and its text: narrow the gaps, then drop columns, if necessary."""
    for gap in ("  ", " "):
        text = _tabulated(table, gap)
        if max(map(len, text.splitlines())) <= WIDTH or (gap == " " and not table.leaving):
            return table, text
    return _fit(table.narrower())


def _tabulated(table: Table, gap: str) -> str:
    # tabulate supports headers of two lines only in its own formats, which have wide gaps.
    first, second = ([clean(column.heading[line]) for column in table.columns] for line in (0, 1))
    rows = [[clean(cell) for cell in row] for row in table.rows]
    headings = [first, second] if any(first) else [second]
    lines = [*headings, *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(table.columns))]
    drawn = tabulate(
        [*headings, ["-" * width for width in widths], *rows],
        tablefmt=TableFormat(None, None, None, None, DataRow("", gap, ""), DataRow("", gap, ""), 0, None),
        colalign=table.alignment,
        disable_numparse=True,
    )
    return "\n".join(line.rstrip() for line in drawn.splitlines())


def draw_briefly(block: Block) -> str:
    """Return a block as text without details; "" for legends and notes."""
    match block:
        case Legend() | Note():
            return ""
        case Bullets():
            return draw(Bullets(block.texts[: block.first]))
    return draw(block)


MARKS = "±~*"
"""Marks at figures in tables. A legend explains them by clauses such as "±: 95% interval"."""


def _mark_meanings(blocks: Sequence[Block]) -> str:
    """Return a sentence that explains the marks in the tables of a brief page; "" without marks."""
    tables = [_fit(block) for block in blocks if isinstance(block, Table)]
    texts = [block.text for block in blocks if isinstance(block, Legend | Note)]
    clauses = [clause for text in texts for clause in text.rstrip(".").split("; ")]
    shown = [mark for mark in MARKS if any(mark in text for _, text in tables)]
    meanings = dict.fromkeys(clause for mark in shown for clause in clauses if clause.startswith(f"{mark}: "))
    return _paragraph(f"{'; '.join(meanings)}.") if meanings else ""


def _brief_closing(blocks: Sequence[Block]) -> str:
    """Return the last text of a brief page: meanings of marks, and a hint at --details."""
    more = sum(len(block.later) for block in blocks if isinstance(block, Bullets))
    details = [plural(more, "more finding")] * bool(more)
    details += ["all settings"] * any(isinstance(block, Note) for block in blocks)
    details += ["what each column means"] * any(isinstance(block, Legend) for block in blocks)
    closing = _paragraph(f"Add --details for {listing(details)}.") if details else ""
    return "\n".join(filter(None, (_mark_meanings(blocks), closing)))


BRIEF, FULL = Pages(draw_briefly, _brief_closing), Pages(draw)
report_text, comparison_text, check_text = FULL.report, FULL.comparison, FULL.check


_COLOURS = ((r"\bFAILED\b", "31;1"), (r"^Warning:", "33"), (r"(?<= )ok$", "32"))


def coloured(text: str) -> str:
    """Return the text of a page with verdicts and warnings in colours, for a terminal."""
    for pattern, colour in _COLOURS:
        text = re.sub(pattern, rf"\033[{colour}m\g<0>\033[0m", text, flags=re.MULTILINE)
    return text


def pages(details: bool) -> Pages:
    """Return the format of pages for a terminal: with all details, or brief."""
    return FULL if details else BRIEF
