"""HTML from texts: whatever is not markup of ours is escaped here."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from sqlstress.display.clean import brief

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
