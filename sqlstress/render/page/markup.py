"""HTML from texts and blocks: whatever is not markup of ours is escaped here."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from sqlstress.display.blocks import Block, Bullets, Lines, Paragraph, Picture, Table, Verdict
from sqlstress.display.clean import brief, visible
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


WIDE = 240
"""Characters of a text that takes two columns where there is room for them."""
Said = Paragraph | Verdict | Lines | Bullets | Picture
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
