"""Rows that a query for new rows misses, because larger values were committed before.

A reader is a query for new rows, such as `SELECT ... WHERE created > ?`. Its parameter is its bound: the
largest value that the program has read so far. For example, process A takes the time 10 for a row and then
waits for the write lock. Process B takes the time 11 and commits. The reader returns the row with 11, so 11
is its next bound. Then A commits the row with 10: `created > 11` passes over this row in all later queries.

Each process publishes the last bound of each of its readers in shared memory. After an INSERT, and before the
COMMIT, the inserting process compares the value of its row (10) with all published bounds (11). If the value
is smaller, the row is passed over: the reader used the bound before the row was committed.

If a bound falls, for example from 11 to 0, the reader reads earlier rows again and finds the row with 10. So
from then on, no row of its column counts as passed over.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from threading import get_ident
from typing import Any, NamedTuple
from zlib import crc32

from sqlstress.recording import PASSED_OVER, PlainObservation
from sqlstress.recording.connections import rows
from sqlstress.recording.failures import short_sql

SLOT_BYTES, SLOTS = 64, 4
"""Size of a published bound, in bytes, and maximum number of readers (SQL texts) of a process."""
MIN_INCREASES = 2
"""Number of increases after which a bound is published. A constant, as in `price > ?`, never increases."""
MAX_SEARCHES = 3
"""Maximum number of queries that a process runs in `_is_from_row`. Each may read a whole table."""
_NAME = r"[\w\"`\[\]]+"
_PARAMETER = r"\?\d*|%s|[:@$]\w+"
_READER = re.compile(
    rf"\s*select\b.*\bfrom\s+({_NAME})(?:\s+as\s+{_NAME})?\s+where\s+\(?(?:{_NAME}\.)?({_NAME})\s*(>=?)\s*"
    rf"({_PARAMETER})\s*\)?\s*(?:(?:order\s+by|limit)\b[^()]*)?;?\s*",
    re.IGNORECASE | re.DOTALL,
)
"""Pattern of a query with a single condition such as `created > ?`: table, column, sign and parameter."""
_INSERT = re.compile(
    rf"\s*insert\s+into\s+({_NAME})\s*(?:\(([^()]*)\))?\s*values\s*\(([^()]*)\)\s*(?:returning\b.*)?;?\s*",
    re.IGNORECASE | re.DOTALL,
)
"""Pattern of an INSERT of one row: table, columns and values.

INSERT OR IGNORE does not match, because it succeeds even if it inserts no row.
"""
Value = tuple[str, Any]
"""Kind and value of a column: ("n", 11) is a number, ("s", "2026-11-29") is a text."""


class _ReaderQuery(NamedTuple):
    table: str
    column: str
    is_strict: bool
    """Whether the condition is `column > ?`; False for `column >= ?`."""
    parameter: int | str


class _RowInsert(NamedTuple):
    table: str
    columns: tuple[str, ...]
    """Names of the columns in order; empty if the statement does not name them."""
    parameters: tuple[int | str | None, ...]
    """Index or name of the parameter of each value; None if a value is no parameter."""


class _Bound(NamedTuple):
    value: Value
    is_strict: bool

    def passes_over(self, value: Value) -> bool:
        """Return whether the query leaves out rows with `value`: `created > 11` leaves out 10 and 11."""
        kind, limit = self.value
        return kind == value[0] and (value[1] <= limit if self.is_strict else value[1] < limit)


@dataclass(slots=True)
class _ReaderState:
    query: _ReaderQuery
    offset: int
    """Position of the published bound in the shared memory, in bytes."""
    at: str
    """Line of the user's code that runs the query."""
    bound: Value | None = None
    """Parameter of the last query; None before the first."""
    increases: int = 0
    has_fallen: bool = False

    def set_bound(self, value: Value) -> None:
        kind, last = self.bound or value
        if kind != value[0] or value[1] < last:
            self.has_fallen = True
        else:
            self.increases += value[1] > last
        self.bound = value


class PassedRows:
    """Recorder of rows that this process inserts and that a reader of any process passes over."""

    def __init__(self) -> None:
        self._memory: memoryview | None = None
        """Shared memory with the bounds of all processes."""
        self._first_offset = 0
        """Position of this process's bounds in the shared memory, in bytes."""
        self._readers: dict[str, _ReaderState] = {}
        """Readers of this process, by SQL."""
        self._followed: dict[str, set[str]] = {}
        """Columns that the readers of this process compare with a bound, by table (in lower case)."""
        self._unfollowed_inserts: dict[str, set[str]] = {}
        """SQL of INSERTs that ran before this process had a reader of their table, by table."""
        self._last: dict[tuple[str, str, int], Value] = {}
        """Value of the last INSERT by SQL, column and thread."""
        self._unordered: set[tuple[str, str]] = set()
        """INSERTs (SQL, column) whose values sometimes fall, unlike times and counters: not reported."""
        self._passed = Counter[tuple[str, str, str]]()
        """Number of rows that were passed over, by the INSERT's SQL, the column and the reader's SQL."""
        self._lines: dict[str, str] = {}
        """Line of the user's code of each INSERT in `_passed`."""
        self._searches = 0
        self._content = b""
        """Content of the shared memory at the last INSERT."""
        self._bounds: dict[bytes, list[_Bound]] = {}
        """Bounds in `_content`, by the checksum of the column."""

    def share(self, memory: Any, worker: int) -> None:
        """Publish bounds in `memory` of size `bounds_words`. `worker` is this process's number, from 1."""
        self._memory = memoryview(memory).cast("B")
        self._first_offset = (worker - 1) * SLOT_BYTES * SLOTS

    def note(
        self, sql: str, parameters: Any, connection: Any, line: Callable[[], str], skipped: set[str]
    ) -> bool:
        """Publish the bound of a reader, or compare the row of an INSERT with the published bounds.

        Return True for a reader, and for an INSERT into a table with a reader: the caller must pass each run
        to this method. For others return False: the caller may add their SQL to `skipped`, and pass no more
        runs. A new reader removes INSERTs into its table from `skipped`. `line` returns the user's code line.
        """
        use = _use_of(sql) if self._memory and parameters else None
        if isinstance(use, _ReaderQuery):
            return self._note_reader(sql, use, parameters, line, skipped)
        if isinstance(use, _RowInsert):
            columns = self._followed.get(use.table, ())
            if not columns:
                self._unfollowed_inserts.setdefault(use.table, set()).add(sql)
            for column in columns:
                value = _inserted_value(use, column, parameters, connection)
                if value and connection.in_transaction:
                    self._note_insert(sql, use.table, column, value, connection, line)
            return bool(columns)
        return False

    def _note_reader(
        self, sql: str, query: _ReaderQuery, parameters: Any, line: Callable[[], str], skipped: set[str]
    ) -> bool:
        if sql not in self._readers:
            if len(self._readers) >= SLOTS:
                return False
            offset = self._first_offset + SLOT_BYTES * len(self._readers)
            self._readers[sql] = _ReaderState(query, offset, line())
            self._followed.setdefault(query.table, set()).add(query.column)
            skipped.difference_update(self._unfollowed_inserts.get(query.table, ()))
        reader, value = self._readers[sql], _value(parameters, query.parameter)
        if value and not reader.has_fallen:
            reader.set_bound(value)
            self._publish(reader)
        return True

    def _publish(self, reader: _ReaderState) -> None:
        """Write the checksum of the reader's column and then its bound, as "n>11", to shared memory.

        If the bound once fell, for example from 11 to 0, write "!" instead of the bound.
        """
        query, (kind, value) = reader.query, reader.bound or ("", "")
        text = "!" if reader.has_fallen else f"{kind}{'>' if query.is_strict else '='}{value}"
        content = _checksum(query.table, query.column) + text.encode()
        is_due = reader.has_fallen or reader.increases >= MIN_INCREASES
        if self._memory and is_due and len(content) <= SLOT_BYTES:
            self._memory[reader.offset : reader.offset + SLOT_BYTES] = content.ljust(SLOT_BYTES, b"\0")

    def _note_insert(
        self, sql: str, table: str, column: str, value: Value, connection: Any, line: Callable[[], str]
    ) -> None:
        key = sql, column, get_ident()
        last, self._last[key] = self._last.get(key, value), value
        if last[0] != value[0] or value[1] < last[1]:
            self._unordered.add((sql, column))
        for bound in self._all_bounds(table, column):
            if bound.passes_over(value) and self._is_from_row(connection, table, column, bound.value):
                self._lines.setdefault(sql, line())
                reader_sql = next(s for s, r in self._readers.items() if r.query[:2] == (table, column))
                self._passed[sql, column, reader_sql] += 1
                return

    def _all_bounds(self, table: str, column: str) -> list[_Bound]:
        """Return the published bounds of a column's readers in all processes.

        If one of these bounds ever fell, return an empty list, because its reader reads earlier rows again.
        """
        assert self._memory
        content = bytes(self._memory)
        if content != self._content:
            self._content = content
            self._bounds.clear()
        key = _checksum(table, column)
        if key not in self._bounds:
            self._bounds[key] = _bounds_in(content, key)
        return self._bounds[key]

    def _is_from_row(self, connection: Any, table: str, column: str, bound: Value) -> bool:
        """Return whether a row has the value `bound`, so that the program took the bound from a row.

        A program may compute other bounds, such as the current time minus 5 s, and leave out rows on purpose.
        If a row was passed over before, return True without a query, to save time.
        """
        if self._passed or self._searches >= MAX_SEARCHES:
            return bool(self._passed)
        self._searches += 1
        with suppress(Exception):  # An error of sqlite3.
            query = f'SELECT 1 FROM "{table}" WHERE "{column}" = ? LIMIT 1'
            return bool(rows(connection, query, [bound[1]]))
        return False

    def records(self) -> list[PlainObservation]:
        """Return an observation for each INSERT and reader, with the number of rows passed over."""
        result: list[PlainObservation] = []
        for (sql, column, reader_sql), count in self._passed.items():
            reader = self._readers[reader_sql]
            table = reader.query.table
            if (sql, column) not in self._unordered and self._all_bounds(table, column):
                traits = {"table": table, "column": column, "at": self._lines[sql]}
                traits |= {"reader": short_sql(reader_sql), "reader_at": reader.at}
                result.append((PASSED_OVER, short_sql(sql), count, "", traits))
        return result


def bounds_words(processes: int) -> int:
    """Return the size of the shared memory for the bounds of `processes` workers, in words of 8 bytes."""
    return processes * SLOTS * SLOT_BYTES // 8


@cache
def _checksum(table: str, column: str) -> bytes:
    return b"%08x" % crc32(f"{table}.{column}".encode())


def _bounds_in(content: bytes, checksum: bytes) -> list[_Bound]:
    bounds: list[_Bound] = []
    for offset in range(0, len(content), SLOT_BYTES):
        if not content.startswith(checksum, offset):
            continue
        text = content[offset + len(checksum) : offset + SLOT_BYTES].rstrip(b"\0").decode(errors="replace")
        kind, sign, value = text[:1], text[1:2], text[2:]
        if kind == "!":
            return []
        with suppress(ValueError):  # Another process is writing the bound.
            bounds.append(_Bound((kind, _number(value) if kind == "n" else value), sign == ">"))
    return bounds


@lru_cache(1000)
def _use_of(sql: str) -> _ReaderQuery | _RowInsert | None:
    if match := _READER.fullmatch(sql):
        table, column, sign, parameter = match.groups()
        number = len(re.findall(_PARAMETER, sql[: match.start(4)]))
        is_simple = not re.search(r"\b(join|union|where.*where)\b|\(\s*select\b", sql, re.IGNORECASE)
        query = _ReaderQuery(_plain(table), _plain(column), sign == ">", _parameter(parameter, number))
        return query if is_simple else None
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
    """Return a parameter's name, "created" for `:created`, or index: 1 for `?2`, `number` for `?`."""
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


def _inserted_value(insert: _RowInsert, column: str, parameters: Any, connection: Any) -> Value | None:
    query = "SELECT lower(name) FROM pragma_table_info(?)"
    columns = insert.columns or tuple(name for (name,) in rows(connection, query, [insert.table]))
    if column not in columns or len(columns) != len(insert.parameters):
        return None
    parameter = insert.parameters[columns.index(column)]
    return None if parameter is None else _value(parameters, parameter)
