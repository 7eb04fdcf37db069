"""A report for a terminal of 80 columns."""

from __future__ import annotations

from textwrap import wrap

from tabulate import DataRow, TableFormat, tabulate

from sqlstress.show.blocks import Block, Bullets, Legend, Lines, Picture, Table, brief, clean, visible
from sqlstress.show.views import Pages

WIDTH = 80
MARK = "*"


def drawn(block: Block) -> str:
    """Return one block as text, in lines of 80 columns."""
    match block:
        case Table():
            return _fitted(block)[1]
        case Legend():
            return _paragraph(block.of(_fitted(block.table)[0]))
        case Picture():
            return "\n".join(visible(line).rstrip() for line in block.lines)
        case Lines():
            return "\n".join(map(_paragraph, block.texts))
        case Bullets():
            return "\n".join(_paragraph(text, "- ") for text in block.texts)
    return _paragraph(block.text)


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


def _fitted(table: Table) -> tuple[Table, str]:
    """Return the table as it is shown, and as text.

    The gaps are narrow if need be, and columns leave it if they must.
    """
    for gap in ("  ", " "):
        text = _tabulated(table, gap)
        if max(map(len, text.splitlines())) <= WIDTH or (gap == " " and not table.leaving):
            return table, text
    return _fitted(table.narrower())


def _tabulated(table: Table, gap: str) -> str:
    # tabulate knows headers of two lines in its own formats only, and those have wide gaps.
    first, second = ([clean(column.heading[line]) for column in table.columns] for line in (0, 1))
    rows = _with_marks(table)
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


def _with_marks(table: Table) -> list[list[str]]:
    """Return the rows with a star at what stands out, and a space at the rest of its column."""
    wide = {index for _, index in table.marked}
    return [
        [
            clean(cell) + (MARK if (place, index) in table.marked else " " if index in wide else "")
            for index, cell in enumerate(row)
        ]
        for place, row in enumerate(table.rows)
    ]


PAGES = Pages(drawn)
report_text, comparison_text, check_text = PAGES.report, PAGES.comparison, PAGES.check
