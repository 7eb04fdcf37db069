"""SQL as text: its tokens, in the dialects of SQLite and PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Token(NamedTuple):
    """Token of SQL, with its index in the text."""

    kind: str
    """Kind: space, quoted, parameter, word, number, end (a semicolon) or other."""
    text: str
    start: int


class Dialect(NamedTuple):
    """Lexical rules of SQL in one product."""

    pattern: re.Pattern[str]
    """Pattern of a token, with a group named by its kind."""
    quotes: str
    """Characters that open a quoted text. As tokens of kind other, they open a text that is never closed."""
    body: re.Pattern[str]
    """First words of a statement that contains semicolons up to its END, such as CREATE TRIGGER."""

    def tokens(self, text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
        """Yield the tokens of a text, including spaces and comments, from `start` to `end`."""
        for match in self.pattern.finditer(text, start, len(text) if end is None else end):
            yield Token(str(match.lastgroup), match[0], match.start())


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
    """Return a pattern of comments that may be nested up to `depth` times."""
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
"""Source: documentation of PostgreSQL, "Lexical Structure"."""
