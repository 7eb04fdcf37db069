"""HTML from texts and blocks: whatever is not markup of ours is escaped here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from itertools import pairwise
from typing import Any

from sqlstress.display.blocks import Block, Bullets, Lines, Picture, Table, Verdict
from sqlstress.display.clean import brief, visible
from sqlstress.display.figures import FAILED
from sqlstress.render.views.comparison import NOT_COMPARABLE

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]{1,40}(?![\w-])")


def text(words: str) -> str:
    """Return a text from anywhere as HTML: one line, of bounded length, without markup of its own."""
    return escape(brief(words))


def sentence(words: str) -> str:
    """Return the same with options set off, so that no line breaks in one."""
    return _OPTION.sub(r"<code>\g<0></code>", text(words))


def element(name: str, *content: str, **attributes: str | bool) -> str:
    """Return an element around content that is HTML already; a trailing underscore in a name is left out."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not False
    )
    return f"<{name}{given}>{''.join(content)}</{name}>"


def data(plain: Any) -> str:
    """Return JSON that can stand in a script element: nothing in it ends the element, or begins another."""
    written = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


WARNING = "Warning: "
"""How a line begins that warns."""


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
        case Verdict():
            return element("p", sentence(block.text), class_="verdict")
        case Bullets():
            return element("ul", *(element("li", sentence(each)) for each in block.texts), class_="findings")
    barred = block.text.startswith(NOT_COMPARABLE)
    return element("p", sentence(block.text), class_="warning" if barred else False)


def _line(words: str) -> str:
    if words.startswith(WARNING):
        return element("p", sentence(words.removeprefix(WARNING)), class_="warning")
    return element("p", sentence(words))


def _table(table: Table) -> str:
    begins = _beginnings(table)
    head = _row("th", zip(map(text, table.headers), table.alignment, strict=True), scope="col")
    body = [
        _row(
            "td",
            ((_cell(table, row, column), align) for column, align in enumerate(table.alignment)),
            begins=row in begins,
        )
        for row in range(len(table.rows))
    ]
    inner = element("table", element("thead", head), element("tbody", *body))
    return element("div", inner, class_="table", tabindex="0")


def _beginnings(table: Table) -> set[int]:
    """Return the rows where the next of several groups begins: those of one layout, of one schema."""
    firsts = [row[0] for row in table.rows]
    found = {place for place, (one, other) in enumerate(pairwise(firsts), 1) if one != other}
    return found if len(found) < len(firsts) - 1 else set()


def _row(name: str, cells: Iterable[tuple[str, str]], *, begins: bool = False, **attributes: str) -> str:
    drawn_cells = (element(name, cell, class_=align, **attributes) for cell, align in cells)
    return element("tr", *drawn_cells, class_="next" if begins else False) + "\n"


def _cell(table: Table, row: int, column: int) -> str:
    words = text(table.rows[row][column])
    if words == FAILED:
        return element("strong", words, class_="failed")
    return element("mark", words) if (row, column) in table.marked else words
