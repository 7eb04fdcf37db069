"""Splitting of SQL into statements, even with semicolons in strings, comments and triggers."""

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


class Position(NamedTuple):
    """Position in a file; line and column start at 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def error(self, text: str) -> UsageError:
        """Return an error whose message begins with this position."""
        return UsageError(f"{self}: {text}.")


class Statement(NamedTuple):
    """SQL statement of a file, without its semicolon, leading spaces and comments."""

    text: str
    place: Position
    start: int
    """Offset of the statement's first character in the text."""
    end: int
    """Offset of the first character after the semicolon; without a semicolon, after the last token."""
    words: tuple[str, ...]
    """Keywords and unquoted names in lower case, without parameters."""
    parameters: tuple[Token, ...]
    """Parameters such as "?" and ":id", in the order of the text."""
    comment: str
    """Text of the line comment before the statement; empty if there is none."""

    @property
    def verb(self) -> str:
        """First word in lower case, such as "select"; empty if the statement has no word."""
        return self.words[0] if self.words else ""

    @property
    def reads(self) -> bool:
        """Whether the statement only reads, as far as its words show."""
        # The word REPLACE without INTO may be the function replace().
        writes = (_WRITES - {"replace"}) & set(self.words) or ("replace", "into") in pairwise(self.words)
        with_only = self.verb == "with" and not writes
        return self.verb in _READS or with_only

    @property
    def returns(self) -> bool:
        """Whether the statement may return rows."""
        return self.verb not in _NO_ROWS or "returning" in self.words

    @property
    def redefines(self) -> bool:
        """Whether the statement may change the schema or the format of the database file."""
        return self.verb in _DEFINE

    @property
    def begins(self) -> bool:
        """Whether the statement starts a transaction if none is open, such as BEGIN."""
        return self.verb in _BEGINS

    @property
    def ends(self) -> bool:
        """Whether the statement ends a transaction or savepoint; False for ROLLBACK TO."""
        return self.verb in _ENDS and not (self.verb == "rollback" and "to" in self.words)

    @property
    def commits(self) -> bool:
        """Whether the statement commits the transaction: COMMIT or END."""
        return self.verb in ("commit", "end")


def position_at(file: str, text: str, at: int) -> Position:
    """Return file, line and column of an offset in a text."""
    return Position(file, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def dialect_of(driver: str) -> Dialect:
    """Return the SQL dialect of a driver: PostgreSQL's or SQLite's."""
    return POSTGRES if target_name(driver) == "postgres" else SQLITE


def tokens(
    file: str, text: str, start: int = 0, end: int | None = None, dialect: Dialect = SQLITE
) -> Iterator[Token]:
    """Yield the SQL tokens of a text, from offset `start` to `end`.

    Raises UsageError, with the position in `file`, for an unclosed string or a NUL character.
    """
    for token in dialect.tokens(text, start, end):
        if token.kind == "other" and token.text in dialect.quotes:
            place = position_at(file, text, token.start)
            raise place.error(f"{token.text} opens here and is never closed")
        if token.text == "\0":
            raise position_at(file, text, token.start).error("SQL must not contain a NUL character")
        yield token


def split_statements(
    file: str, text: str, start: int = 0, end: int | None = None, dialect: Dialect = SQLITE
) -> Iterator[Statement]:
    """Yield the SQL statements of a text; the last semicolon is optional.

    Raises UsageError, with the position, if the text cannot be split, or for a statement that must not run on
    a PostgreSQL server.
    """
    place = Position(file, 1, 1)
    line_offset = 0
    for parts, comment, after in _split(tokens(file, text, start, end, dialect), dialect):
        begin, last = parts[0].start, parts[-1]
        # Count lines only from the previous statement on, because a setup file may have a million lines.
        line = place.line + text.count("\n", line_offset, begin)
        place, line_offset = Position(file, line, begin - text.rfind("\n", 0, begin)), begin
        stop = last.start + len(last.text)
        parameters = tuple(token for token in parts if token.kind == "parameter")
        statement = Statement(
            text[begin:stop], place, begin, after or stop, _words(parts), parameters, comment
        )
        if dialect is POSTGRES and (problem := next(_problems(statement), None)):
            raise place.error(problem)
        yield statement


def _split(tokens: Iterator[Token], dialect: Dialect) -> Iterator[tuple[list[Token], str, int]]:
    """Yield each statement's tokens, the comment before it, and the offset after its semicolon.

    The offset is 0 if the last statement has no semicolon.
    """
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
    if not dialect.body.match(" ".join(_words(parts))):
        return False
    return len(parts) < 2 or not (parts[-1].text.lower() == "end" and parts[-2].kind == "end")


def _words(parts: list[Token]) -> tuple[str, ...]:
    return tuple(token.text.lower() for token in parts if token.kind == "word")


# Statements that are not sent to PostgreSQL: only SQLite knows them, or they change more than the schema that
# sqlstress creates for the trial.


_SQLITE_MODES = {"immediate", "exclusive", "deferred", "concurrent"}
_DEFINES = {"create", "alter", "drop", "truncate", "comment"}
_WRITING = {"insert", "update", "delete", "merge"}
_BEFORE_THE_NAME = {*_WRITING, "into", "from", "only"}
_SERVER_WIDE = {
    *("access", "collation", "database", "event", "extension", "foreign", "language", "operator"),
    *("publication", "role", "schema", "server", "subscription", "tablespace", "user", "group", "system"),
}
_ONE_SCHEMA = "all is made in one schema of ours, which is dropped"


def _problems(statement: Statement) -> Iterator[str]:
    """Yield the reasons why sqlstress refuses to run a statement on a PostgreSQL server."""
    verb, second = statement.verb, statement.words[1] if len(statement.words) > 1 else ""
    if verb == "begin" and second in _SQLITE_MODES:
        yield f"BEGIN {second.upper()} is SQLite's: write BEGIN, and SELECT ... FOR UPDATE before an UPDATE"
    if verb == "pragma":
        yield "PRAGMA is SQLite's"
    if verb == "copy":
        yield "COPY has a stream of its own, which is not here: use INSERT (pg_dump --inserts writes it so)"
    if verb in ("create", "alter", "drop", "comment") and second in _SERVER_WIDE:
        yield f"{verb.upper()} {second.upper()} would stay on the server: {_ONE_SCHEMA}"
    if (
        verb == "discard"
        or (verb == "reset" and second in ("all", "search_path"))
        or (verb == "set" and {"search_path", "schema"} & {*statement.words[1:3]})
        or ("set_config" in statement.words and "search_path" in statement.text)
    ):
        yield f"it lets names be looked for elsewhere: {_ONE_SCHEMA}"
    if _names_schema(statement):
        yield f"what another schema holds is not changed: leave its name out, {_ONE_SCHEMA}"


def _names_schema(statement: Statement) -> bool:
    """Return whether a statement changes an object and names its schema, as "audit" in "audit.log"."""
    tokens = (token.text for token in POSTGRES.tokens(statement.text) if token.kind != "space")
    head = takewhile(lambda text: text != "(" and text.lower() not in ("as", "is"), tokens)
    if statement.verb in _DEFINES:
        return "." in head
    rest = dropwhile(lambda word: word.lower() in _BEFORE_THE_NAME, head)
    return statement.verb in _WRITING and "." in islice(rest, 1, 2)
