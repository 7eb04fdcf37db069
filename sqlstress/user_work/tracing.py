"""Tables and columns that this process's statements read and write, as SQLite reports them.


When a statement begins, SQLite's trace callback gets its text. EXPLAIN then prepares it once more on the same
connection: an authorizer callback gets each table and column that it reads or writes. So views, temporary
tables and the user's own functions are those of that connection. A query also runs once more for its first
row. All this is slow: it is meant for a few calls, not for a measurement. Connections of sqlite3 and apsw are
traced.

Sources: https://www.sqlite.org/c3ref/set_authorizer.html, https://docs.python.org/3/library/audit_events.html
"""

from __future__ import annotations

import json
import multiprocessing.connection
import os
import random
import re
import sqlite3
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Protocol

from sqlstress.user_work.callers import CallSite, UserFrames, is_background_thread, runner_id
from sqlstress.user_work.failures import LEAD
from sqlstress.user_work.listening import ConnectionUses, Listener, call_soon
from sqlstress.user_work.suspicions import DELETE, INSERT, OVERWRITE, UPDATE, Table, TracedStatement, Write
from sqlstress.user_work.touched import (
    Row,
    WrittenTable,
    inserts_from_select,
    is_now,
    may_ignore,
    random_texts,
    searches_for_any,
    sql_literal,
)

_MAX_SQL_CHARS = 300
MAX_STATEMENTS = 200
"""Maximum number of statements of a call that are examined; later statements are skipped."""

Events = list[tuple[Any, ...]]
"""Events of an authorizer: (action, table, column, database, trigger or view)."""

_ROWID = ("rowid", "oid", "_rowid_")
_OVERWRITES = re.compile(r"\s*(insert\s+or\s+)?replace\b", re.IGNORECASE)
_INSERTS_OR = re.compile(r"\binsert\s+or\b", re.IGNORECASE)
_REPLACING = re.compile(
    r"\b(unique|primary\s+key)(\s+asc|\s+desc|\s*\([^)]*\))?\s+on\s+conflict\s+replace\b", re.IGNORECASE
)
_RETURNING = re.compile(r"\breturning\b[^)]*$", re.IGNORECASE)
_ONE_OF_MANY = re.compile(r"\blimit\b|\border\s+by\b", re.IGNORECASE)
_ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)
_LIMIT = re.compile(r"\blimit\s+(\d+)\s*;?\s*$", re.IGNORECASE)
_EXISTS = re.compile(r"\bexists\s*\(", re.IGNORECASE)
_LEADS = re.compile(LEAD, re.DOTALL)
_EXPLAINABLE = re.compile(r"(select|values|with|insert|replace|update|delete)\b", re.IGNORECASE)
"""Begin of the statements that are explained. Others are not, as preparing a change of the schema has side
effects."""
_WRITES = {sqlite3.SQLITE_INSERT: INSERT, sqlite3.SQLITE_DELETE: DELETE, sqlite3.SQLITE_UPDATE: UPDATE}
_SUMMARIES = {"count", "max", "min", "sum", "total", "avg", "group_concat"}


class TracedLibrary(Protocol):
    """Operations of either library's connections that the tracer needs."""

    def in_transaction(self) -> bool: ...

    def rows(self, sql: str, most: int = 1000) -> list[tuple[Any, ...]]:
        """Return the first `most` rows of a statement."""


class Sqlite3Connection:
    """Connection of Python's sqlite3 module."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def rows(self, sql: str, most: int = 1000) -> list[tuple[Any, ...]]:
        cursor = sqlite3.Cursor(self._connection)
        cursor.row_factory = None
        try:
            return cursor.execute(sql).fetchmany(most)
        finally:
            cursor.close()


class TracedApsw:
    """Connection of apsw."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def rows(self, sql: str, most: int = 1000) -> list[tuple[Any, ...]]:
        cursor = self._connection.cursor()
        cursor.row_trace = None
        try:
            return [row for row, _ in zip(cursor.execute(sql), range(most), strict=False)]
        finally:
            cursor.close()


class Tracer:
    """Tracer of all connections that this process opens after `start`."""

    def __init__(self) -> None:
        self.call: list[TracedStatement] = []
        """Statements since the last `begins_call`."""
        self.place = ""
        """Position of the next statement, set by the caller; unused after `tells_lines_of`."""
        self._frames: UserFrames | None = None
        self.is_shared = False
        """Whether tracing of any connection stopped because several threads used the connection at once."""
        self.numbers = count(1)
        self.forks = ForkReports()
        self.files = FileLocks()
        self.draws = RandomValues()
        self._uses = ConnectionUses()

    def start(self) -> None:
        """Trace new connections, and record random values that the code draws."""
        self.draws.start()
        self._uses.start()
        sys.addaudithook(self._hook)
        if find_spec("apsw"):
            with suppress(ImportError):
                import_module("apsw").connection_hooks.append(self._follow_apsw)

    def stop(self) -> None:
        """Restore the system's random functions; connections stay traced."""
        self.draws.stop()

    def begins_call(self) -> None:
        """Forget the statements and random values of the last call."""
        self.call.clear()
        self.draws.texts.clear()

    def tells_lines_of(self, folder: Path) -> None:
        """Record the lines that run statements, in the user's code below a folder."""
        self._frames = UserFrames(folder)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect/handle":
            # The connection cannot be used before `connect` has returned.
            call_soon(lambda: self._follow(args[0]))
        self.files.hear(event, args)

    def _follow(self, connection: sqlite3.Connection) -> None:
        followed = TracedConnection(self, Sqlite3Connection(connection))
        connection.set_authorizer(followed.authorize)
        # Like the trace, the authorizer waits for Python's lock, so both end together.
        Listener(connection, followed.begins, lambda: self._leave(connection), self._uses)

    def _leave(self, connection: sqlite3.Connection) -> None:
        self.is_shared = True
        connection.set_authorizer(None)

    def _follow_apsw(self, connection: Any) -> None:
        followed = TracedConnection(self, TracedApsw(connection))
        connection.authorizer = followed.authorize

        def begins(source: Any, sql: str, _: Any) -> bool:
            # If the connection is a context manager, `source` is the connection, which begins and commits.
            followed.begins(getattr(source, "expanded_sql", sql))
            return True

        connection.exec_trace = begins

    def call_site(self) -> CallSite:
        """Return the position in the user's code that runs the current statement."""
        return self._frames.call_site() if self._frames else CallSite(self.place)


class ForkReports:
    """Statements that forks of this process run on its connections, reported through a pipe."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def tell(self, sql: str, at: str) -> None:
        """Report a statement to the parent; called in a fork."""
        os.write(self._writer, json.dumps((sql[:_MAX_SQL_CHARS], at)).encode() + b"\n")

    def drain(self) -> list[TracedStatement]:
        """Return the statements that forks have reported since the last call."""
        data = b""
        while multiprocessing.connection.wait([self._reader], 0) if sys.platform != "win32" else False:
            data += os.read(self._reader, 1 << 16)
        return [TracedStatement(sql, at, forked=True) for sql, at in map(json.loads, data.splitlines())]


class FileLocks:
    """Files that this process has locked exclusively, according to Python's audit events."""

    _UNIX, _WINDOWS = ("fcntl.flock", "fcntl.lockf"), "msvcrt.locking"
    _EXCLUSIVE = 2
    """Bit of LOCK_EX. On Windows every mode except 0 locks."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[int, int, int]] = {}
        """By descriptor: device, inode, and the number of the lock in this process."""
        self._lock_count = 0

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Record a lock or unlock before the call: it succeeds, as no other process can hold the lock."""
        if event not in (*self._UNIX, self._WINDOWS):
            return
        descriptor = args[0]  # the event has a descriptor even if the code passed a file object
        locks = args[1] != 0 if event == self._WINDOWS else args[1] & self._EXCLUSIVE
        self._held.pop(descriptor, None)
        with suppress(OSError):
            if locks:
                self._lock_count += 1
                self._held[descriptor] = (*self._file(descriptor), self._lock_count)

    def held_locks(self) -> frozenset[tuple[int, int, int]]:
        """Return the locks that are held; closing a file has released its locks."""
        locks = set()
        for descriptor, lock in [*self._held.items()]:
            with suppress(OSError):
                if self._file(descriptor) == lock[:2]:
                    locks.add(lock)
        return frozenset(locks)

    def _file(self, descriptor: int) -> tuple[int, int]:
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino


class RandomValues:
    """Values that a call draws from the system's random source, which secrets, SystemRandom and uuid4 use."""

    _FEWEST, _LONGEST = 8, 64
    """Range of the recorded lengths, in bytes: shorter values may be drawn twice by chance, and longer values
    are not used as tokens that identify a row or a call."""
    _MOST = 10_000
    _FUNCTIONS = ((os, "urandom"), (random, "_urandom"))

    def __init__(self) -> None:
        self.texts: deque[str] = deque(maxlen=self._MOST)
        self._draw = os.urandom

    def start(self) -> None:
        """Record values from now on, also those drawn through names that are imported later."""
        for module, name in self._FUNCTIONS:
            setattr(module, name, self._record)

    def stop(self) -> None:
        for module, name in self._FUNCTIONS:
            setattr(module, name, self._draw)

    def _record(self, size: int, /) -> bytes:
        drawn = self._draw(size)
        if self._FEWEST <= len(drawn) <= self._LONGEST:
            self.texts.extend(random_texts(drawn))
        return drawn


class TracedConnection:
    """Traced connection."""

    def __init__(self, tracer: Tracer, connection: TracedLibrary) -> None:
        self._tracer, self._connection = tracer, connection
        self._events: Events = []
        self._events_by_sql: dict[str, Events] = {}
        self._runs_ours = False
        """Whether the running statement is our own, so that its events are recorded."""
        self._transaction = self._snapshot = 0
        self._file: str | None = None
        self._keys: dict[str, tuple[frozenset[str], ...]] = {}
        self._pending_insert: tuple[TracedStatement, tuple[int, int]] | None = None
        """INSERT whose row gets its rowid from SQLite, and `_insert_state` before it ran."""
        self._pid = os.getpid()

    def authorize(self, *event: Any) -> int:
        """Record an access of a statement that is prepared, and allow it."""
        if self._runs_ours:
            self._events.append(event)
        return 0

    def begins(self, sql: str) -> None:
        """Examine a statement that is about to run."""
        sql = _LEADS.sub("", sql, count=1)
        if self._runs_ours or sql.startswith("--"):
            return  # our own statement, or a trigger's
        if os.getpid() != self._pid:
            self._tracer.forks.tell(sql, self._tracer.call_site().at)
            return
        begins_transaction = not self._connection.in_transaction()
        if begins_transaction:
            self._transaction = next(self._tracer.numbers)
        if len(self._tracer.call) >= MAX_STATEMENTS:
            return
        self._runs_ours = True
        try:
            if begins_transaction and not self._has_open_query():
                self._snapshot = self._transaction
            self._complete_insert()
            statement = self._statement(sql)
            self._tracer.call.append(statement)
            if statement.write and statement.write.kind == INSERT and not statement.write.rows:
                self._pending_insert = statement, self._insert_state()
        except Exception:  # of either library: the statement cannot be explained, so it is skipped
            return
        finally:
            self._runs_ours = False

    def _statement(self, sql: str) -> TracedStatement:
        events = self._explain(_RETURNING.sub("", sql)) if _EXPLAINABLE.match(sql) else []
        spot = self._tracer.call_site()
        statement = partial(
            TracedStatement,
            sql=sql,
            at=spot.at,
            spot=spot.number,
            transaction=self._transaction,
            snapshot=self._snapshot,
            who=runner_id(),
            beside=is_background_thread(),
            locks=self._tracer.files.held_locks(),
            calls=spot.calls,
        )
        reads: dict[Table, frozenset[str]] = {}
        for action, table, column, database, _ in events:
            if action == sqlite3.SQLITE_READ and table and _is_shared(table, database):
                name = self._table(table)
                reads[name] = reads.get(name, frozenset()) | {_column(column)}
        write = self._write(sql, events)
        if write:
            counted = spot.counted or bool(_RETURNING.search(sql))
            unseen = spot.unseen and not counted and (write.kind == UPDATE or may_ignore(sql))
            write = write._replace(counted=counted, insists=spot.insists, unseen=unseen)
        if not reads or any(event[0] in _WRITES for event in events):
            return statement(reads=reads, write=write)
        functions = {str(event[2]).lower() for event in events if event[0] == sqlite3.SQLITE_FUNCTION}
        return statement(
            reads=reads,
            found=self._has_row(sql),
            seeks_drawn=searches_for_any(sql, [*self._tracer.draws.texts]),
            summarises=bool(functions & _SUMMARIES) or self._shows_first_rows(sql),
            rows=self._rows_read(sql, reads),
        )

    def _rows_read(self, sql: str, reads: Mapping[Table, frozenset[str]]) -> frozenset[Row] | None:
        """Return the rows that a query reads; None if not known."""
        if len(reads) != 1:
            return None
        ((_, name),) = reads
        with suppress(Exception):  # of either library: the query was not understood
            return self._target(name).queried(sql)
        return None

    def _has_open_query(self) -> bool:
        """Return whether a query is open and keeps its snapshot. If so, SQLite refuses a checkpoint."""
        try:
            self._connection.rows("PRAGMA main.wal_checkpoint(noop)")
        except Exception as error:  # of either library
            return "table is locked" in str(error)
        return False

    def _complete_insert(self) -> None:
        """Add the rowid that SQLite assigned to the last INSERT, which has run by now."""
        pending, self._pending_insert = self._pending_insert, None
        call = self._tracer.call
        if not pending or pending[0] not in call or (state := self._insert_state()) == pending[1]:
            return
        statement, write = pending[0], pending[0].write
        if write:
            rows = self._target(write.table[1]).with_rowid(state[0])
            write = write._replace(rows=rows, numbered=True)
            call[call.index(statement)] = statement._replace(write=write)

    def _insert_state(self) -> tuple[int, int]:
        """Return the rowid of the last insert, and the number of rows changed since the connection opened."""
        ((number, changes),) = self._connection.rows("SELECT last_insert_rowid(), total_changes()")
        return number, changes

    def _target(self, table: str) -> WrittenTable:
        return WrittenTable(table, self._keys_of(table), self._connection.rows)

    def _explain(self, sql: str) -> Events:
        # Cached: a library with a statement cache prepares a text once, and only preparing reports events.
        if sql not in self._events_by_sql:
            self._events.clear()
            self._connection.rows(f"EXPLAIN {sql}", 1)
            self._events_by_sql[sql] = list(self._events)
        return self._events_by_sql[sql]

    def _has_row(self, sql: str) -> bool:
        row = next(iter(self._connection.rows(sql, 1)), None)
        return any(row) if row and _EXISTS.search(sql) else row is not None

    def _shows_first_rows(self, sql: str) -> bool:
        """Return whether a query shows only the first of its rows, as far as can be seen.

        A LIMIT that was not reached does not count: an ORM's `get` has LIMIT 2 to see that its row is unique.
        """
        limit = None if _ORDERED.search(sql) else _LIMIT.search(sql)
        if not limit:
            return bool(_ONE_OF_MANY.search(sql))
        most = int(limit[1])
        return len(self._connection.rows(sql, most)) == most

    def _write(self, sql: str, events: Events) -> Write | None:
        """Return the direct write of a statement. Events of triggers have the trigger's name at the end."""
        direct = [event for event in events if event[4] is None]
        first = next((event for event in direct if event[0] in _WRITES), None)
        if not first or not _is_shared(first[1], first[3]):
            return None
        kind, table = _WRITES[first[0]], self._table(first[1])
        # SQLite reports the values of a column first, then the column that is set, and the WHERE at the end.
        sets = [n for n, event in enumerate(events) if event[0] == sqlite3.SQLITE_UPDATE and event in direct]
        last = sets[-1] if sets else -1
        columns = [
            (n, _column(event[2]))
            for n, event in enumerate(events)
            if event[0] == sqlite3.SQLITE_READ and event[1] == first[1] and (not event[4] or event[4] in sql)
        ]
        wheres = frozenset(
            column
            for n, column in columns
            if n > last and column and (sets or kind != INSERT) and not _compares_part_of(sql, column)
        )
        keys = self._keys_of(first[1])
        in_keys = frozenset[str]().union(*keys)
        if kind == INSERT:
            kind = OVERWRITE if sets or _OVERWRITES.match(sql) or self._replaces(first[1], sql) else INSERT
            # Columns of keys are read for ON CONFLICT.
            columns = [(n, column) for n, column in columns if column not in in_keys]
        computed = frozenset(
            _column(events[position][2])
            for previous, position in pairwise((-1, *sets))
            # CASE WHEN id = ? THEN ? computes nothing from the columns of keys.
            if any(
                previous < n < position
                for n, column in columns
                if column not in in_keys or column == _column(events[position][2])
            )
        )
        if kind in (INSERT, OVERWRITE) and not sets:
            computed = frozenset(column for _, column in columns)
            wheres = computed if inserts_from_select(sql) else frozenset()
        setting = frozenset(_column(events[n][2]) for n in sets)
        write = Write(table, kind, setting, computed, wheres, keys)
        for refine in (self._with_rows, self._with_values, self._with_checks):
            with suppress(Exception):  # of either library: the statement was not understood
                write = refine(write, sql)
        return write

    def _replaces(self, table: str, sql: str) -> bool:
        """Return whether a table's schema makes a plain INSERT replace a row with the same key."""
        if _INSERTS_OR.search(sql):
            return False
        query = f"SELECT sql FROM sqlite_master WHERE type = 'table' AND name = {sql_literal(table)}"
        return any(_REPLACING.search(text) for (text,) in self._connection.rows(query))

    def _with_rows(self, write: Write, sql: str) -> Write:
        target = self._target(write.table[1])
        if write.kind in (UPDATE, DELETE):
            return write._replace(rows=target.changed(sql))
        inserted = target.inserted(sql)
        return write._replace(rows=inserted[0], there=inserted[1]) if inserted else write

    def _with_values(self, write: Write, sql: str) -> Write:
        if write.kind != UPDATE:
            return write
        target = self._target(write.table[1])
        assignments = target.assigned_values(sql)
        kept = {
            column for column, (is_same, _) in assignments.items() if is_same and not target.has_triggers()
        }
        times = {column for column, (_, value) in assignments.items() if write.computed and is_now(value)}
        return write._replace(kept=frozenset(kept), sets=write.sets - (times - write.wheres))

    def _with_checks(self, write: Write, sql: str) -> Write:
        if write.kind not in (UPDATE, OVERWRITE) or not write.computed:
            return write
        return write._replace(refused=self._target(write.table[1]).checked() & write.sets)

    def _table(self, name: str) -> Table:
        if self._file is None:
            self._file = self._connection.rows("PRAGMA database_list")[0][2] or f":memory: {id(self)}"
        return self._file, name

    def _keys_of(self, table: str) -> tuple[frozenset[str], ...]:
        """Return the columns of a table's primary key, which may be empty, and of its other unique keys."""
        if table not in self._keys:
            columns = self._connection.rows(
                f"SELECT name FROM pragma_table_info({sql_literal(table)}) WHERE pk"
            )
            indexes = self._connection.rows(
                f"SELECT name FROM pragma_index_list({sql_literal(table)}) WHERE [unique] AND NOT partial"
            )
            unique = [
                self._connection.rows(f"SELECT name FROM pragma_index_info({sql_literal(name)})")
                for (name,) in indexes
            ]
            self._keys[table] = tuple(
                frozenset(_column(name) for (name,) in rows) for rows in (columns, *unique)
            )
        return self._keys[table]


def _is_shared(table: str, database: str | None) -> bool:
    """Return whether a table is the user's and visible to other connections, too."""
    return database != "temp" and not table.startswith("sqlite_")


def _compares_part_of(sql: str, column: str) -> bool:
    """Return whether a WHERE compares only a part of a JSON document in a column, as far as can be seen."""
    where = sql[max(sql.lower().rfind("where"), 0) :]
    name = rf"[\"`\[]?\b{re.escape(column)}\b[\"`\]]?"
    return bool(re.search(rf"json_extract\s*\(\s*{name}|{name}\s*->", where, re.IGNORECASE))


def _column(name: str | None) -> str:
    lower = (name or "").lower()
    return "rowid" if lower in _ROWID else lower
