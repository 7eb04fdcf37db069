"""SQL in a file: where each statement begins and ends, and what its tokens are.

Semicolons in strings, in quoted names, in comments and in triggers end nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile, islice, pairwise, takewhile
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
    place: Place
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
            raise place.error(f"{token.text} opens here and is never closed")
        if token.text == "\0":
            raise place_of(file, text, token.start).error("SQL must not contain a NUL character")
        yield token


def split(
    file: str, text: str, start: int = 0, end: int | None = None, dialect: Dialect = SQLITE
) -> Iterator[Statement]:
    """Yield the statements of a text; the last one may go without its semicolon.

    Raises UsageError, with the place, for what can't be split, and for what can't be run on a target.
    """
    place = Place(file, 1, 1)
    counted = 0
    for parts, comment, after in _split(tokens(file, text, start, end, dialect), dialect):
        begin, last = parts[0].start, parts[-1]
        # Counted once: a setup may have a million lines.
        line = place.line + text.count("\n", counted, begin)
        place, counted = Place(file, line, begin - text.rfind("\n", 0, begin)), begin
        stop = last.start + len(last.text)
        parameters = tuple(token for token in parts if token.kind == "parameter")
        one = Statement(text[begin:stop], place, begin, after or stop, _words(parts), parameters, comment)
        if dialect is POSTGRES and (problem := next(_problems(one), None)):
            raise place.error(problem)
        yield one


def _split(tokens: Iterator[Token], dialect: Dialect) -> Iterator[tuple[list[Token], str, int]]:
    """Yield the tokens of each statement, the comment before it, and where its semicolon ends; 0 without."""
    parts: list[Token] = []
    comment = ""
    for token in tokens:
        if token.kind == "end" and not _in_body(parts, dialect):
            if parts:
                yield parts, comment, token.start + 1
            parts, comment = [], ""
        elif token.kind != "space":
            parts.append(token)
        elif not parts and token.text.startswith("--"):
            comment = token.text[2:].strip()
    if parts:
        yield parts, comment, 0


def _in_body(parts: list[Token], dialect: Dialect) -> bool:
    """Return whether a semicolon after these tokens stands inside a body: its END comes after one."""
    if not dialect.body.match(" ".join(_words(parts))):
        return False
    return len(parts) < 2 or not (parts[-1].text.lower() == "end" and parts[-2].kind == "end")


def _words(parts: list[Token]) -> tuple[str, ...]:
    return tuple(token.text.lower() for token in parts if token.kind == "word")


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


def _problems(one: Statement) -> Iterator[str]:
    """Yield why a server of somebody's is not given this statement."""
    verb, second = one.verb, one.words[1] if len(one.words) > 1 else ""
    if verb == "begin" and second in _MODES:
        yield f"BEGIN {second.upper()} is SQLite's: write BEGIN, and SELECT ... FOR UPDATE before an UPDATE"
    if verb == "pragma":
        yield "PRAGMA is SQLite's"
    if verb == "copy":
        yield "COPY has a stream of its own, which is not here: use INSERT (pg_dump --inserts writes it so)"
    if verb in ("create", "alter", "drop", "comment") and second in _LASTING:
        yield f"{verb.upper()} {second.upper()} would stay on the server: {_OURS}"
    if (
        verb == "discard"
        or (verb == "reset" and second in ("all", "search_path"))
        or (verb == "set" and {"search_path", "schema"} & {*one.words[1:3]})
        or ("set_config" in one.words and "search_path" in one.text)
    ):
        yield f"it lets names be looked for elsewhere: {_OURS}"
    if _leaves(one):
        yield f"what another schema holds is not changed: leave its name out, {_OURS}"


def _leaves(one: Statement) -> bool:
    """Return whether a statement changes what has the name of a schema before its own."""
    tokens = (token.text for token in POSTGRES.tokens(one.text) if token.kind != "space")
    head = takewhile(lambda text: text != "(" and text.lower() not in ("as", "is"), tokens)
    if one.verb in _DEFINES:
        return "." in head
    rest = dropwhile(lambda word: word.lower() in _BEFORE_THE_NAME, head)
    return one.verb in _WRITING and "." in islice(rest, 1, 2)
