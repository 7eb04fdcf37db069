"""Rows that a reader has passed over, because they were committed after rows with larger values.

A reader may follow a column: `SELECT ... WHERE created > ?` with the largest value that it has seen, its
bound. A time that is taken before the write lock does not have the order of the commits. So the reader may
see a larger value before the row with the smaller value is committed, and then never returns that row.

Each process publishes the bounds of its readers in shared memory. After an INSERT, and before the COMMIT, the
process that writes the row compares the row's value with these bounds. So the bound was certainly used before
the row was committed. No cost arises for other statements, as `History.end` does not see them again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from functools import cache, lru_cache
from threading import get_ident
from typing import Any, NamedTuple
from zlib import crc32

from sqlstress.recording import PASSED_OVER, PlainObservation
from sqlstress.recording.connections import rows
from sqlstress.recording.failures import short_sql

SLOT_BYTES, SLOTS = 64, 4
"""Size of a bound in shared memory, in bytes, and maximum number of readers (SQL texts) of a process."""
MIN_STEPS = 2
"""Number of times that a bound must have grown: a constant, as in `price > ?`, is no bound."""
MAX_SEARCHES = 3
"""Maximum number of searches of a process for the row with a bound."""
_NAME = r"[\w\"`\[\]]+"
_PARAMETER = r"\?\d*|%s|[:@$]\w+"
_READER = re.compile(
    rf"\s*select\b.*\bfrom\s+({_NAME})(?:\s+as\s+{_NAME})?\s+where\s+\(?(?:{_NAME}\.)?({_NAME})\s*(>=?)\s*"
    rf"({_PARAMETER})\s*\)?\s*(?:(?:order\s+by|limit)\b[^()]*)?;?\s*",
    re.IGNORECASE | re.DOTALL,
)
"""Pattern of a query with a single condition such as `created > ?`, with table, column and parameter."""
_INSERT = re.compile(
    rf"\s*insert\s+into\s+({_NAME})\s*(?:\(([^()]*)\))?\s*values\s*\(([^()]*)\)\s*(?:returning\b.*)?;?\s*",
    re.IGNORECASE | re.DOTALL,
)
"""Pattern of an INSERT of a row that refuses no row silently, with table, columns and values."""


class _FollowingQuery(NamedTuple):
    table: str
    column: str
    is_strict: bool
    """Whether the comparison is `>`, so that a row with the value of the bound itself is passed over."""
    parameter: int | str


class _RowInsert(NamedTuple):
    table: str
    columns: tuple[str, ...]
    """Names of the columns in order; empty if the statement does not name them."""
    parameters: tuple[int | str | None, ...]
    """Index or name of the parameter of each value; None if a value is no parameter."""


Value = tuple[str, Any]
"""Value of a column with its kind, "n" for numbers or "s" for texts. Only equal kinds are compared."""


class PassedRows:
    """Recorder of this process's rows that readers of any process have passed over."""

    def __init__(self) -> None:
        self._memory: memoryview | None = None
        self._first = 0
        """Offset in `_memory` of this process's first bound."""
        self._readers: dict[str, tuple[_FollowingQuery, int, str]] = {}
        """Readers of this process by SQL, each with the offset of its bound and its line."""
        self._bounds: dict[str, tuple[Value, int]] = {}
        """Last bound of each reader, and how often it has grown, by SQL. It grew -1 times if it ever fell."""
        self._followed: dict[str, set[str]] = {}
        """Columns that the readers of this process follow, by table, in lower case."""
        self._inserts: dict[str, set[str]] = {}
        """INSERTs into tables that no reader of this process followed then, by table."""
        self._last: dict[tuple[str, str, int], Value] = {}
        """Value of the last INSERT by SQL, column and thread."""
        self._unordered: set[tuple[str, str]] = set()
        """INSERTs, by SQL and column, whose values also fall, so that they are neither times nor counters."""
        self._passed = Counter[tuple[str, str, str]]()
        """Number of rows that were passed over, by INSERT, column and reader."""
        self._lines: dict[str, str] = {}
        """Line of each INSERT that inserted a row that was passed over."""
        self._searches = 0
        self._content = b""
        """Content of `_memory` at the last INSERT."""
        self._published_bounds: dict[bytes, list[tuple[Value, bool]]] = {}
        """Result of `_published` by column, for `_content`."""

    def share(self, memory: Any, worker: int) -> None:
        """Publish bounds in shared memory of size `bounds_words`. `worker` is the number of this process."""
        self._memory = memoryview(memory).cast("B")
        self._first = (worker - 1) * SLOT_BYTES * SLOTS

    def note(
        self, sql: str, parameters: Any, connection: Any, line: Callable[[], str], ordinary: set[str]
    ) -> bool:
        """Handle a statement that has run. Return whether its next runs must be handled, too.

        Such statements, and INSERTs into the table of a new reader, are not in `ordinary`. `line` returns the
        line of the user's code that runs the statement.
        """
        use = _use_of(sql) if self._memory and parameters else None
        if isinstance(use, _FollowingQuery):
            return self._note_reader(sql, use, parameters, line, ordinary)
        if isinstance(use, _RowInsert):
            columns = self._followed.get(use.table, ())
            if not columns:
                self._inserts.setdefault(use.table, set()).add(sql)
            for column in columns:
                self._note_insert(sql, use, column, parameters, connection, line)
            return bool(columns)
        return False

    def _note_reader(
        self, sql: str, reader: _FollowingQuery, parameters: Any, line: Callable[[], str], ordinary: set[str]
    ) -> bool:
        if sql not in self._readers:
            if len(self._readers) >= SLOTS:
                return False
            offset = self._first + SLOT_BYTES * len(self._readers)
            self._readers[sql] = reader, offset, line()
            self._followed.setdefault(reader.table, set()).add(reader.column)
            ordinary.difference_update(self._inserts.get(reader.table, ()))
        value = _value(parameters, reader.parameter)
        last, steps = self._bounds.get(sql, (value, 0))
        if not value or not last or steps < 0:
            return True
        is_back = value[0] != last[0] or value[1] < last[1]
        steps = -1 if is_back else steps + (value[1] > last[1])
        self._bounds[sql] = value, steps
        if is_back or steps >= MIN_STEPS:
            self._publish(reader, self._readers[sql][1], None if is_back else value)
        return True

    def _publish(self, reader: _FollowingQuery, offset: int, value: Value | None) -> None:
        """Publish the bound of a reader. `value` is None if the bound fell, so that no row is lost."""
        assert self._memory
        kind, text = (value[0], str(value[1])) if value else ("!", "")
        content = (
            _key(reader.table, reader.column) + f"{kind}{'>' if reader.is_strict else '='}{text}".encode()
        )
        if len(content) <= SLOT_BYTES:
            self._memory[offset : offset + SLOT_BYTES] = content.ljust(SLOT_BYTES, b"\0")

    def _note_insert(
        self,
        sql: str,
        insert: _RowInsert,
        column: str,
        parameters: Any,
        connection: Any,
        line: Callable[[], str],
    ) -> None:
        columns = insert.columns or _columns(connection, insert.table)
        if column not in columns or len(columns) != len(insert.parameters):
            return
        parameter = insert.parameters[columns.index(column)]
        value = None if parameter is None else _value(parameters, parameter)
        if not value or not connection.in_transaction:
            return
        key = sql, column, get_ident()
        last, self._last[key] = self._last.get(key, value), value
        if last[0] != value[0] or value[1] < last[1]:
            self._unordered.add((sql, column))
        for bound, is_strict in self._published(insert.table, column):
            is_behind = bound[0] == value[0] and (value[1] <= bound[1] if is_strict else value[1] < bound[1])
            if is_behind and self._is_seen(connection, insert.table, column, bound):
                self._lines.setdefault(sql, line())
                reader = next(s for s, (r, *_) in self._readers.items() if r[:2] == (insert.table, column))
                self._passed[sql, column, reader] += 1
                return

    def _published(self, table: str, column: str) -> list[tuple[Value, bool]]:
        """Return the bounds that all processes have published for a column, each with `is_strict`.

        The result is empty if any bound ever fell.
        """
        assert self._memory
        content = bytes(self._memory)
        if content != self._content:
            self._content = content
            self._published_bounds.clear()
        key = _key(table, column)
        if key not in self._published_bounds:
            self._published_bounds[key] = self._bounds_in(content, key)
        return self._published_bounds[key]

    def _bounds_in(self, content: bytes, key: bytes) -> list[tuple[Value, bool]]:
        bounds: list[tuple[Value, bool]] = []
        for offset in range(0, len(content), SLOT_BYTES):
            if not content.startswith(key, offset):
                continue
            text = content[offset + len(key) : offset + SLOT_BYTES].rstrip(b"\0").decode(errors="replace")
            if text.startswith("!"):
                return []
            with suppress(ValueError):  # Another process is writing the bound.
                bounds.append(((text[0], _number(text[2:]) if text[0] == "n" else text[2:]), text[1] == ">"))
        return bounds

    def _is_seen(self, connection: Any, table: str, column: str, bound: Value) -> bool:
        """Return whether a row has the bound as its value, so that the reader took the bound from a row."""
        if self._passed:
            return True
        if self._searches >= MAX_SEARCHES:
            return False
        self._searches += 1
        with suppress(Exception):  # An error of sqlite3.
            query = f'SELECT 1 FROM "{table}" WHERE "{column}" = ? LIMIT 1'
            return bool(rows(connection, query, [bound[1]]))
        return False

    def records(self) -> list[PlainObservation]:
        """Return an observation for each INSERT and reader, with the number of rows passed over."""
        result: list[PlainObservation] = []
        for (sql, column, reader_sql), count in self._passed.items():
            reader, _, at = self._readers[reader_sql]
            if (sql, column) not in self._unordered and self._published(reader.table, column):
                traits = {"table": reader.table, "column": column, "at": self._lines[sql]}
                traits |= {"reader": short_sql(reader_sql), "reader_at": at}
                result.append((PASSED_OVER, short_sql(sql), count, "", traits))
        return result


def bounds_words(processes: int) -> int:
    """Return the size of the shared memory for the bounds of `processes` workers, in words of 8 bytes."""
    return processes * SLOTS * SLOT_BYTES // 8


@cache
def _key(table: str, column: str) -> bytes:
    return b"%08x" % crc32(f"{table}.{column}".encode())


@lru_cache(1000)
def _use_of(sql: str) -> _FollowingQuery | _RowInsert | None:
    if match := _READER.fullmatch(sql):
        table, column, sign, parameter = match.groups()
        number = len(re.findall(_PARAMETER, sql[: match.start(4)]))
        is_simple = not re.search(r"\b(join|union|where.*where)\b|\(\s*select\b", sql, re.IGNORECASE)
        reader = _FollowingQuery(_plain(table), _plain(column), sign == ">", _parameter(parameter, number))
        return reader if is_simple else None
    if match := _INSERT.fullmatch(sql):
        table, columns, values = match.groups()
        parameters, number = list[int | str | None](), 0
        for value in map(str.strip, values.split(",")):
            is_parameter = bool(re.fullmatch(_PARAMETER, value))
            parameters.append(_parameter(value, number) if is_parameter else None)
            number += is_parameter
        names = tuple(map(_plain, columns.split(","))) if columns else ()
        return _RowInsert(_plain(table), names, tuple(parameters))
    return None


def _parameter(text: str, number: int) -> int | str:
    """Return the name of a parameter, such as "created" for `:created`, or its index."""
    return text[1:] if text[0] in ":@$" else int(text[1:]) - 1 if text[1:].isdigit() else number


def _plain(name: str) -> str:
    return name.strip().strip('"`[]').lower()


def _value(parameters: Any, parameter: int | str) -> Value | None:
    """Return the value of a parameter with its kind; None if it is neither a number nor a text or time."""
    try:
        value = parameters[parameter]
    except (LookupError, TypeError):
        return None
    if type(value) in (int, float):
        return "n", value
    if isinstance(value, date):
        value = str(value)  # As the default adapters of sqlite3 do.
    return ("s", value) if isinstance(value, str) else None


def _number(text: str) -> float | int:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _columns(connection: Any, table: str) -> Sequence[str]:
    names = rows(connection, "SELECT lower(name) FROM pragma_table_info(?)", [table])
    return [name for (name,) in names]
