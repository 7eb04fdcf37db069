"""SQL as text: what the tokens are in which a target reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Token(NamedTuple):
    """A token of SQL: what it is by the names below, and where it begins in the text."""

    kind: str
    """space, quoted, parameter, word, number, end (a semicolon) or other."""
    text: str
    start: int


class Dialect(NamedTuple):
    """How a target reads SQL."""

    pattern: re.Pattern[str]
    """A token, by its kind as the group's name."""
    quotes: str
    """What opens a quoted text: by itself it is one that is never closed."""
    body: re.Pattern[str]
    """How the words of a statement begin whose body has semicolons of its own, up to its END."""

    def tokens(self, text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
        """Yield the tokens of a text, all of it."""
        for found in self.pattern.finditer(text, start, len(text) if end is None else end):
            yield Token(str(found.lastgroup), found[0], found.start())


def _pattern(comment: str, quoted: str, parameter: str, word: str) -> re.Pattern[str]:
    return re.compile(
        rf"""(?P<space>\s+|--[^\n]*|{comment})
        |(?P<quoted>{quoted})
        |(?P<parameter>{parameter})
        |(?P<word>{word})
        |(?P<number>\d[\w.]*)
        |(?P<end>;)
        |(?P<other>::|.)""",
        re.VERBOSE | re.DOTALL,
    )


_STRING, _NAME = r"'(?:[^']|'')*'", r'"(?:[^"]|"")*"'
_DOLLAR = r"\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$"


def _nested(depth: int) -> str:
    """Return a comment that may hold others, so deep."""
    inner = f"|{_nested(depth - 1)}" if depth else ""
    return rf"/\*(?:[^*/]|\*(?!/)|/(?!\*){inner})*(?:\*/|\Z)"


SQLITE = Dialect(
    _pattern(
        r"/\*(?:.*?\*/|.*\Z)",
        rf"{_STRING}|{_NAME}|`(?:[^`]|``)*`|\[[^]]*]",
        r"[:@$][A-Za-z_]\w*|\?\d*",
        r"[A-Za-z_]\w*",
    ),
    "'\"`[",
    re.compile(r"create (?:temp |temporary )?trigger\b"),
)
POSTGRES = Dialect(
    _pattern(
        _nested(3),
        rf"[eE]'(?:[^'\\]|''|\\.)*'|{_STRING}|{_NAME}|{_DOLLAR}",
        r":[A-Za-z_]\w*|\$\d+",
        r"[A-Za-z_][\w$]*",
    ),
    "'\"",
    re.compile(r"create .*\bbegin atomic\b"),
)
"""Source: PostgreSQL's documentation, "Lexical Structure"."""
