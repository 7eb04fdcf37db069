"""HTML from texts and blocks: whatever is not markup of ours is escaped here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from sqlstress.show.blocks import (
    DETAIL,
    FAILED,
    FIGURE,
    NAME,
    Block,
    Bullets,
    Legend,
    Lines,
    Paragraph,
    Picture,
    Table,
    Verdict,
    brief,
    visible,
)
from sqlstress.show.comparison_view import NOT_COMPARABLE

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


WIDE = 240
"""Characters of a text that takes two columns where there is room for them."""
Said = Paragraph | Verdict | Lines | Bullets | Picture | Legend
WARNING = "Warning: "
"""How a line begins that warns."""


def drawn(block: Said) -> str:
    """Return a block that is no table as HTML."""
    match block:
        case Picture():
            lines = "\n".join(visible(line).rstrip() for line in block.lines)
            return element("pre", escape(lines), tabindex="0")
        case Lines():
            return "\n".join(map(_line, block.texts))
        case Verdict():
            return element("p", sentence(block.text), class_="verdict")
        case Bullets():
            return element("ul", *(element("li", sentence(each)) for each in block.texts), class_="findings")
    if block.text.startswith(NOT_COMPARABLE):
        return element("p", sentence(block.text), class_="warning")
    return element("p", sentence(block.text), class_="long" if len(block.text) > WIDE else False)


def said(blocks: Sequence[Block]) -> str:
    """Return what was done and what it says, in two columns where there is room and much is said."""
    shown = [block for block in blocks if not isinstance(block, Table)]
    long = sum(len(words) for block in shown for words in _words(block)) > 2 * WIDE
    return element("div", *map(drawn, shown), class_="said two" if long else "said")


def _words(block: Said) -> tuple[str, ...]:
    match block:
        case Lines() | Bullets():
            return block.texts
        case Picture():
            return ()
    return (block.text,)


def _line(words: str) -> str:
    if words.startswith(WARNING):
        return element("p", sentence(words.removeprefix(WARNING)), class_="warning")
    return element("p", sentence(words))


# Tables of a page: what is looked for stands first, and long ones are folded.


LONG = 60
"""Rows that stand open below each other."""


@dataclass(frozen=True, slots=True)
class Folded:
    """Tables that are opened with a click, and what is said of them until then."""

    summary: str
    tables: tuple[Table, ...]


def folded(blocks: Sequence[Block]) -> Iterator[Block | Folded]:
    """Yield the blocks, with tables folded from where they are more rows than can be taken in.

    Where that is so, those with a caption of their own (a paragraph that ends with a colon) are folded from
    the first on: one open among many closed ones would look like the one that counts.
    """
    parts = list(_captioned(blocks))
    total = sum(_rows(part) for part in parts)
    open_rows = 0
    for part in parts:
        if not isinstance(part, Folded):
            yield part
        elif total <= LONG or (not part.summary and open_rows + _rows(part) <= LONG):
            open_rows += _rows(part)
            if part.summary:
                yield Paragraph(part.summary)
            yield from part.tables
        else:
            yield part


def drawn_folded(part: Folded) -> str:
    """Return folded tables as HTML."""
    rows = max(len(table.rows) for table in part.tables)
    columns = [column.name for column in part.tables[0].columns if column.role == FIGURE]
    summary = part.summary.removesuffix(":") or f"Table: {', '.join(filter(None, columns))}"
    count = element("span", f"{rows:,} rows", class_="count")
    return element("details", element("summary", text(summary), " ", count), *map(drawn_table, part.tables))


def drawn_table(table: Table) -> str:
    """Return a table as HTML: names first, then what is looked for, then the details."""
    begins = _beginnings(table)
    order = _order(table)
    head = _row("th", [(text(table.headers[place]), table.alignment[place]) for place in order], scope="col")
    body = [
        _row("td", [(_cell(table, row, place), table.alignment[place]) for place in order], row in begins)
        for row in range(len(table.rows))
    ]
    names = max(1, sum(column.role == NAME for column in table.columns))
    inner = element("table", element("thead", head), element("tbody", *body))
    return element("div", inner, class_="table", tabindex="0", data_names=str(min(names, 2)))


def _captioned(blocks: Sequence[Block]) -> Iterator[Block | Folded]:
    """Yield the blocks, tables with what is said of them."""
    caption, tables = "", list[Table]()
    for block in blocks:
        if isinstance(block, Table) and (caption or not tables):
            tables.append(block)
            continue
        if tables or caption:
            yield _part(caption, tables)
        caption, tables = "", [block] if isinstance(block, Table) else []
        if isinstance(block, Paragraph) and block.text.endswith(":"):
            caption = block.text
        elif not tables:
            yield block
    if tables or caption:
        yield _part(caption, tables)


def _part(caption: str, tables: Sequence[Table]) -> Block | Folded:
    return Folded(caption, tuple(tables)) if tables else Paragraph(caption)


def _rows(part: Block | Folded) -> int:
    return sum(len(table.rows) for table in part.tables) if isinstance(part, Folded) else 0


def _order(table: Table) -> list[int]:
    """Return the places of the columns in the page's order."""
    order = (NAME, FIGURE, DETAIL)
    return sorted(range(len(table.columns)), key=lambda place: order.index(table.columns[place].role))


def _beginnings(table: Table) -> set[int]:
    """Return the rows where the next of several groups begins: those of one layout, of one schema."""
    firsts = [row[0] for row in table.rows]
    found = {place for place, (one, other) in enumerate(pairwise(firsts), 1) if one != other}
    return found if len(found) < len(firsts) - 1 else set()


def _row(name: str, cells: Sequence[tuple[str, str]], begins: bool = False, **attributes: str) -> str:
    drawn_cells = (element(name, cell, class_=align, **attributes) for cell, align in cells)
    return element("tr", *drawn_cells, class_="next" if begins else False) + "\n"


def _cell(table: Table, row: int, column: int) -> str:
    words = text(table.rows[row][column])
    if words == FAILED:
        return element("strong", words, class_="failed")
    return element("mark", words) if (row, column) in table.marked else words
