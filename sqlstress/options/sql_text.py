"""Tokens of SQL text, in the dialects of SQLite and PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Token(NamedTuple):
    """Token of a text in SQL."""

    kind: str
    """Kind: space, quoted, parameter, word, number, end (a semicolon) or other."""
    text: str
    start: int
    """Index of the first character of the token in the text."""


class Dialect(NamedTuple):
    """Lexical rules of SQL in one product."""

    pattern: re.Pattern[str]
    """Pattern of any token. The name of the group that matches is the kind of the token."""
    quotes: str
    """Characters that open a quoted text. A token of kind "other" with such a character never ends."""
    body: re.Pattern[str]
    """Beginning of a statement that may contain semicolons before its END, such as CREATE TRIGGER."""

    def tokens(self, text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
        """Yield the tokens of a text, including spaces and comments, from `start` to `end`."""
        for match in self.pattern.finditer(text, start, len(text) if end is None else end):
            yield Token(str(match.lastgroup), match[0], match.start())


def _pattern(comment: str, quoted: str, parameter: str, word: str) -> re.Pattern[str]:
    """Return the pattern of any token. The parameters are the patterns in which dialects differ."""
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
    """Return the pattern of a comment with comments nested up to `depth` times."""
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
"""Dialect of PostgreSQL. Source: its documentation, "Lexical Structure"."""
