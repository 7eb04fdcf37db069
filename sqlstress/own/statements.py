"""SQL in a file: where each statement begins and ends, and what its tokens are.

Semicolons in strings, in quoted names, in comments and in triggers end nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from sqlstress.errors import UsageError
from sqlstress.options.dialects import POSTGRES, SQLITE, Dialect, Token
from sqlstress.target import target_name

_READS = ("select", "values", "explain", "pragma", "show", "table")
_WRITES = {"insert", "update", "delete", "replace", "merge"}
_BEGINS, _ENDS = ("begin", "start", "savepoint"), ("commit", "end", "rollback", "abort", "release")
_NO_ROWS = {*_WRITES, *_BEGINS, *_ENDS, "create", "drop", "alter"}
_DEFINE = {
    *("create", "drop", "alter", "vacuum", "reindex", "analyze", "pragma", "attach", "detach", "truncate"),
    *("cluster", "refresh"),
}


class Place(NamedTuple):
    """Where something stands in a file: both count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def error(self, text: str) -> UsageError:
        """Return an error that begins with the place."""
        return UsageError(f"{self}: {text}.")


class Statement(NamedTuple):
    """One statement, without its semicolon and what stands before it."""

    text: str
    start: int
    """Where it begins in the text that was split."""
    end: int
    """Where what follows it begins."""
    words: tuple[str, ...]
    """Its words in lower case: neither quoted ones nor parameters."""
    parameters: tuple[Token, ...]
    """As they stand in it."""
    comment: str
    """What stands in the line of comment before it, if anything does."""

    @property
    def verb(self) -> str:
        """The first word."""
        return self.words[0] if self.words else ""

    @property
    def reads(self) -> bool:
        """Whether it can write nothing, as far as its words say it."""
        # REPLACE alone is a function too.
        writes = (_WRITES - {"replace"}) & set(self.words) or ("replace", "into") in pairwise(self.words)
        with_only = self.verb == "with" and not writes
        return self.verb in _READS or with_only

    @property
    def returns(self) -> bool:
        """Whether it may return rows."""
        return self.verb not in _NO_ROWS or "returning" in self.words

    @property
    def redefines(self) -> bool:
        """Whether it may change what is defined, or how the file is kept."""
        return self.verb in _DEFINE

    @property
    def begins(self) -> bool:
        """Whether it begins a transaction, if there is none."""
        return self.verb in _BEGINS

    @property
    def ends(self) -> bool:
        """Whether it ends one: a ROLLBACK TO does not."""
        return self.verb in _ENDS and not (self.verb == "rollback" and "to" in self.words)

    @property
    def commits(self) -> bool:
        """Whether it makes what was written last."""
        return self.verb in ("commit", "end")


def place_of(file: str, text: str, at: int) -> Place:
    """Return the line and the column of a position in a text."""
    return Place(file, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def dialect_of(driver: str) -> Dialect:
    """Return the dialect of a driver's target."""
    return POSTGRES if target_name(driver) == "postgres" else SQLITE


def tokens(
    file: str, text: str, start: int = 0, end: int | None = None, dialect: Dialect = SQLITE
) -> Iterator[Token]:
    """Yield the tokens of a text. Raises UsageError for a string that is never closed."""
    for token in dialect.tokens(text, start, end):
        if token.kind == "other" and token.text in dialect.quotes:
            place = place_of(file, text, token.start)
            raise place.error(f"{token.text} is opened here and never closed")
        if token.text == "\0":
            raise place_of(file, text, token.start).error("a NUL character can't stand in SQL")
        yield token


def split(
    file: str, text: str, start: int = 0, end: int | None = None, dialect: Dialect = SQLITE
) -> Iterator[Statement]:
    """Yield the statements of a text; the last one may go without its semicolon. Raises UsageError."""
    own: list[Token] = []
    comment = ""
    for token in tokens(file, text, start, end, dialect):
        if token.kind == "end" and not _in_body(own, dialect):
            if own:
                yield _statement(text, own, token.start + 1, comment)
            own, comment = [], ""
        elif token.kind != "space":
            own.append(token)
        elif not own and token.text.startswith("--"):
            comment = token.text[2:].strip()
    if own:
        last = own[-1]
        yield _statement(text, own, last.start + len(last.text), comment)


def _in_body(own: list[Token], dialect: Dialect) -> bool:
    """Return whether a semicolon after these tokens stands inside a body: its END comes after one."""
    if not dialect.body.match(" ".join(_words(own))):
        return False
    return len(own) < 2 or not (own[-1].text.lower() == "end" and own[-2].kind == "end")


def _words(own: list[Token]) -> tuple[str, ...]:
    return tuple(token.text.lower() for token in own if token.kind == "word")


def _statement(text: str, own: list[Token], end: int, comment: str) -> Statement:
    first, last = own[0], own[-1]
    return Statement(
        text[first.start : last.start + len(last.text)],
        first.start,
        end,
        _words(own),
        tuple(token for token in own if token.kind == "parameter"),
        comment,
    )
