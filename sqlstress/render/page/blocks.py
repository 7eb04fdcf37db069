"""The blocks of a report as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from sqlstress.render.blocks import Block, Bullets, Lines, Picture, Table
from sqlstress.render.clean import visible
from sqlstress.render.page.markup import element, sentence, text
from sqlstress.render.views.comparison import NOT_COMPARABLE
from sqlstress.render.views.verified import FAILED

_WARNING = "Warning: "


def drawn(block: Block) -> str:
    """Return one block as HTML."""
    match block:
        case Table():
            return _table(block)
        case Picture():
            lines = "\n".join(visible(line).rstrip() for line in block.lines)
            return element("pre", escape(lines), tabindex="0")
        case Lines():
            return "\n".join(map(_line, block.texts))
        case Bullets():
            return element("ul", *(element("li", sentence(each)) for each in block.texts), class_="findings")
    barred = block.text.startswith(NOT_COMPARABLE)
    return element("p", sentence(block.text), class_="warning" if barred else False)


def _line(words: str) -> str:
    if words.startswith(_WARNING):
        return element("p", sentence(words.removeprefix(_WARNING)), class_="warning")
    return element("p", sentence(words))


def _table(table: Table) -> str:
    head = _row("th", zip(map(text, table.headers), table.alignment, strict=True), scope="col")
    body = [
        _row("td", ((_cell(table, row, column), align) for column, align in enumerate(table.alignment)))
        for row in range(len(table.rows))
    ]
    inner = element("table", element("thead", head), element("tbody", *body))
    return element("div", inner, class_="table", tabindex="0")


def _row(name: str, cells: Iterable[tuple[str, str]], **attributes: str) -> str:
    return element("tr", *(element(name, cell, class_=align, **attributes) for cell, align in cells)) + "\n"


def _cell(table: Table, row: int, column: int) -> str:
    words = text(table.rows[row][column])
    if words == FAILED:
        return element("strong", words, class_="failed")
    return element("mark", words) if (row, column) in table.marked else words
