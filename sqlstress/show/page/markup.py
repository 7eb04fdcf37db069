"""HTML of texts and blocks. All texts are escaped here, so that they cannot add markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
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
    Note,
    Paragraph,
    Picture,
    Table,
    VerdictLine,
    brief,
    visible,
)
from sqlstress.show.comparison_view import NOT_COMPARABLE

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]{1,40}(?![\w-])")


def text(words: str) -> str:
    """Return any text as HTML: one line of limited length, with escaped markup."""
    return escape(brief(words))


def sentence(words: str) -> str:
    """Return a text as HTML, like `text`. Options such as --repeat become code without line breaks."""
    return _OPTION.sub(r"<code>\g<0></code>", text(words))


def element(name: str, *content: str, **attributes: str | bool) -> str:
    """Return an HTML element. `content` must be HTML.

    The attribute `class_` is written as class, and `aria_label` as aria-label. The value True writes only the
    name of the attribute, and False leaves the attribute out.
    """
    attributes_text = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not False
    )
    return f"<{name}{attributes_text}>{''.join(content)}</{name}>"


def data(plain: Any) -> str:
    """Return plain data as JSON for a script element, escaped so that it cannot end the element."""
    written = json.dumps(_rounded(plain), allow_nan=False, separators=(",", ":"))
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _rounded(plain: Any) -> Any:
    """Return plain data with floats rounded to seven digits. More digits depend on the version of Python."""
    if isinstance(plain, float):
        return float(f"{plain:.7g}")
    if isinstance(plain, dict):
        return {key: _rounded(value) for key, value in plain.items()}
    return [_rounded(value) for value in plain] if isinstance(plain, (list, tuple)) else plain


LONG_TEXT = 240
"""Maximum characters of a paragraph in one column of a wide page. For several paragraphs: twice as many."""
TextBlock = Paragraph | VerdictLine | Lines | Bullets | Note | Picture | Legend
"""Block other than a table, such as a paragraph."""
WARNING = "Warning: "


def draw(block: TextBlock) -> str:
    """Return a block other than a table as HTML."""
    match block:
        case Picture():
            lines = "\n".join(visible(line).rstrip() for line in block.lines)
            return element("pre", escape(lines), tabindex="0")
        case Lines():
            return "\n".join(
                element("p", sentence(words.removeprefix(WARNING)), class_="warning")
                if words.startswith(WARNING)
                else element("p", sentence(words))
                for words in block.texts
            )
        case Bullets():
            return element("ul", *(element("li", sentence(item)) for item in block.texts), class_="findings")
    kind: str | bool = "long" if len(block.text) > LONG_TEXT else False
    if isinstance(block, VerdictLine):
        kind = "verdict"
    elif block.text.startswith(NOT_COMPARABLE):
        kind = "warning"
    return element("p", sentence(block.text), class_=kind)


def text_columns(blocks: Sequence[Block]) -> str:
    """Return the HTML of all blocks except tables. On a wide page, long texts get two columns."""
    shown = [block for block in blocks if not isinstance(block, Table)]
    length = 0
    for block in shown:
        if isinstance(block, Lines | Bullets):
            length += sum(map(len, block.texts))
        elif not isinstance(block, Picture):
            length += len(block.text)
    return element("div", *map(draw, shown), class_="said two" if length > 2 * LONG_TEXT else "said")


# Tables of a page: important columns come first. Long tables are folded: a click opens them.


MAX_OPEN_ROWS = 60
"""Maximum number of table rows of a section that are shown without a click."""


def tables_html(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield blocks as HTML. If the tables have more than MAX_OPEN_ROWS rows in total, fold tables.

    A click opens a folded table. All tables with a caption (a paragraph that ends with a colon) are folded,
    because a single open table would look like the most important table. Tables without a caption remain open
    until MAX_OPEN_ROWS rows are shown.
    """
    parts = list(_captioned(blocks))
    total = sum(len(table.rows) for _, tables in parts for table in tables)
    open_rows = 0
    for caption, tables in parts:
        rows = sum(len(table.rows) for table in tables)
        if caption and not tables:
            yield draw(caption)
        elif total <= MAX_OPEN_ROWS or (not caption and open_rows + rows <= MAX_OPEN_ROWS):
            open_rows += rows
            if caption:
                yield draw(caption)
            yield from map(_table, tables)
        else:
            yield _folded(caption, tables)


def _captioned(blocks: Iterable[Block]) -> Iterator[tuple[TextBlock | None, list[Table]]]:
    """Yield (caption or None, its tables), or (block, []) for a block that is neither table nor caption."""
    caption: TextBlock | None = None
    tables: list[Table] = []
    for block in blocks:
        if isinstance(block, Table) and (caption or not tables):
            tables.append(block)
            continue
        if tables or caption:
            yield caption, tables
        caption, tables = None, []
        if isinstance(block, Table):
            tables.append(block)
        elif isinstance(block, Paragraph) and block.text.endswith(":"):
            caption = block
        else:
            yield block, []
    if tables or caption:
        yield caption, tables


def _folded(caption: TextBlock | None, tables: Sequence[Table]) -> str:
    """Return HTML of tables that are hidden until the user clicks on their summary."""
    rows = max(len(table.rows) for table in tables)
    columns = [column.name for column in tables[0].columns if column.role == FIGURE]
    summary = f"Table: {', '.join(filter(None, columns))}"
    if isinstance(caption, Paragraph):
        summary = caption.text.removesuffix(":")
    count = element("span", f"{rows:,} rows", class_="count")
    return element("details", element("summary", text(summary), " ", count), *map(_table, tables))


def _table(table: Table) -> str:
    roles = [column.role for column in table.columns]
    order = sorted(range(len(roles)), key=lambda column: (NAME, FIGURE, DETAIL).index(roles[column]))
    firsts = [row[0] for row in table.rows]
    # Indices of rows with a line above: each begins a series of rows with equal first cells.
    begins = {column for column, (previous, current) in enumerate(pairwise(firsts), 1) if previous != current}
    if len(begins) >= len(firsts) - 1:
        begins = set()
    head = _row(
        "th", [(text(table.headers[column]), table.alignment[column]) for column in order], scope="col"
    )
    body = [
        _row("td", [(_cell(table, row, column), table.alignment[column]) for column in order], row in begins)
        for row in range(len(table.rows))
    ]
    inner = element("table", element("thead", head), element("tbody", *body))
    names = str(min(max(1, roles.count(NAME)), 2))
    return element("div", inner, class_="table", tabindex="0", data_names=names)


def _row(name: str, cells: Sequence[tuple[str, str]], begins_group: bool = False, **attributes: str) -> str:
    """Return a table row of `cells` (HTML, alignment). `name`: td or th. `begins_group` adds a line above."""
    drawn_cells = (element(name, cell, class_=align, **attributes) for cell, align in cells)
    return element("tr", *drawn_cells, class_="next" if begins_group else False) + "\n"


def _cell(table: Table, row: int, column: int) -> str:
    words = text(table.rows[row][column])
    if words == FAILED:
        return element("strong", words, class_="failed")
    return words
