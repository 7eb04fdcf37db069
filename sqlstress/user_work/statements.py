"""SQL in a file: where each statement begins and ends, and what its tokens are.

Semicolons in strings, in quoted names, in comments and in triggers end nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile, islice, pairwise
from typing import NamedTuple

from sqlstress.errors import UsageError
from sqlstress.options.sql_text import POSTGRES, SQLITE, Dialect, Token
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


# SQL that a server would take, and that a measurement can't: it is told with its place, before any load.


_MODES = {"immediate", "exclusive", "deferred", "concurrent"}
_DEFINES = {"create", "alter", "drop", "truncate", "comment"}
_WRITING = {"insert", "update", "delete", "merge"}
_BEFORE_THE_NAME = {*_WRITING, "into", "from", "only"}
_LASTING = {
    *("access", "collation", "database", "event", "extension", "foreign", "language", "operator"),
    *("publication", "role", "schema", "server", "subscription", "tablespace", "user", "group", "system"),
}
_OURS = "all is made in one schema of ours, which is dropped"


def refuse(file: str, text: str, one: Statement, dialect: Dialect) -> None:
    """Raise UsageError for a statement of a text that can't be run on a target, as its words say it."""
    if dialect is POSTGRES and (problem := _at_server(one)):
        raise place_of(file, text, one.start).error(problem)


def _at_server(one: Statement) -> str | None:
    """Say why a server of somebody's is not given this statement; None where it is."""
    second = one.words[1] if len(one.words) > 1 else ""
    if one.verb == "begin" and second in _MODES:
        return f"BEGIN {second.upper()} is SQLite's: write BEGIN, and SELECT ... FOR UPDATE before an UPDATE"
    if one.verb == "pragma":
        return "PRAGMA is SQLite's"
    if one.verb == "copy":
        return "COPY has a stream of its own, which is not here: use INSERT (pg_dump --inserts writes it so)"
    if one.verb in ("create", "alter", "drop", "comment") and second in _LASTING:
        return f"{one.verb.upper()} {second.upper()} would stay on the server: {_OURS}"
    if _moves(one, second):
        return f"it lets names be looked for elsewhere: {_OURS}"
    if _leaves(one):
        return f"what another schema holds is not changed: leave its name out, {_OURS}"
    return None


def _moves(one: Statement, second: str) -> bool:
    """Return whether a statement changes in which schema names are looked for."""
    if one.verb == "discard" or (one.verb == "reset" and second in ("all", "search_path")):
        return True
    if one.verb == "set" and {"search_path", "schema"} & {*one.words[1:3]}:
        return True
    return "set_config" in one.words and "search_path" in one.text


def _leaves(one: Statement) -> bool:
    """Return whether a statement changes what has the name of a schema before its own."""
    if one.verb in _DEFINES:
        return "." in _head(one)
    if one.verb not in _WRITING:
        return False
    rest = dropwhile(lambda word: word.lower() in _BEFORE_THE_NAME, _head(one))
    return "." in islice(rest, 1, 2)


def _head(one: Statement) -> list[str]:
    """Return the tokens of a statement up to its first parenthesis, AS or IS."""
    found = []
    for token in POSTGRES.tokens(one.text):
        if token.text == "(" or token.text.lower() in ("as", "is"):
            break
        if token.kind != "space":
            found.append(token.text)
    return found
