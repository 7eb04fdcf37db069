"""Tokens of SQL text, in the dialects of SQLite and PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Token(NamedTuple):
    """Token of an SQL text: its kind, text and place."""

    kind: str
    """Kind: space, quoted, parameter, word, number, end (a semicolon) or other."""
    text: str
    start: int
    """Index of the token's first character in the text."""


class Dialect(NamedTuple):
    """Lexical rules of SQL in SQLite or PostgreSQL, which split a text into tokens."""

    pattern: re.Pattern[str]
    """Pattern of any token. The matching group's name is the kind of the token."""
    quotes: str
    """Characters that open quoted text. A token of kind "other" with such a character is unclosed."""
    body: re.Pattern[str]
    """Pattern of the beginning of a statement, such as CREATE TRIGGER, that has semicolons before its END."""

    def tokens(self, text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
        """Yield the tokens of a text from `start` to `end`, including spaces and comments."""
        for match in self.pattern.finditer(text, start, len(text) if end is None else end):
            yield Token(str(match.lastgroup), match[0], match.start())


def _token_pattern(comment: str, quoted: str, parameter: str, word: str) -> re.Pattern[str]:
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


def _nested_comment(depth: int) -> str:
    inner = f"|{_nested_comment(depth - 1)}" if depth else ""
    return rf"/\*(?:[^*/]|\*(?!/)|/(?!\*){inner})*(?:\*/|\Z)"


SQLITE = Dialect(
    _token_pattern(
        r"/\*(?:.*?\*/|.*\Z)",
        rf"{_STRING}|{_NAME}|`(?:[^`]|``)*`|\[[^]]*]",
        r"[:@$][A-Za-z_]\w*|\?\d*",
        r"[A-Za-z_]\w*",
    ),
    "'\"`[",
    re.compile(r"create (?:temp |temporary )?trigger\b"),
)
POSTGRES = Dialect(
    _token_pattern(
        _nested_comment(3),
        rf"[eE]'(?:[^'\\]|''|\\.)*'|{_STRING}|{_NAME}|{_DOLLAR}",
        r":[A-Za-z_]\w*|\$\d+",
        r"[A-Za-z_][\w$]*",
    ),
    "'\"",
    re.compile(r"create .*\bbegin atomic\b"),
)
"""Dialect of PostgreSQL. Source: its documentation, "Lexical Structure"."""
