"""A report as Markdown, for an issue, a wiki or the summary of a job on GitHub.

Tables have all columns, while a terminal shows those that fit. Texts of the report are escaped, so that they
cannot add markup.
"""

from __future__ import annotations

import re
from html import escape

from tabulate import tabulate

from sqlstress.show.blocks import Block, Bullets, Lines, Picture, Table, brief, visible
from sqlstress.show.sections import Pages

# Characters that are escaped. An underscore within a word adds no markup, so it is not escaped, and names
# such as x86_64 remain readable.
_MARKUP = re.compile(r"[\\`*\[\]|~#!$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def draw(block: Block) -> str:
    """Return one block as GitHub Markdown."""
    match block:
        case Table():
            return _tabulated(block)
        case Picture():
            # A name may contain backticks, which would end the code block.
            lines = (visible(line).rstrip().replace("`", "'") for line in block.lines)
            return "\n".join(("```", *lines, "```"))
        case Lines():
            return "\n\n".join(map(_paragraph, block.texts))
        case Bullets():
            return "\n".join(f"- {_paragraph(text)}" for text in block.texts)
    return _paragraph(block.text)


def _paragraph(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", escape(brief(text), quote=False))


def _tabulated(table: Table) -> str:
    return tabulate(
        [[_paragraph(cell) for cell in row] for row in table.rows],
        headers=[_paragraph(header) for header in table.headers],
        tablefmt="pipe",
        colalign=table.alignment,
        disable_numparse=True,
    )


PAGES = Pages(draw)
report_markdown, comparison_markdown, check_markdown = PAGES.report, PAGES.comparison, PAGES.check
