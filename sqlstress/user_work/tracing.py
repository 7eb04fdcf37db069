"""What the statements of this process's connections read and write, told by SQLite itself.

As a statement begins, SQLite's trace names it. It is explained then, on the same connection: an authorizer
hears of each table and column that it reads or writes, and of views, temporary tables and the user's own
functions as that connection knows them. A query is run once more for its first row. Nothing here is cheap:
it is for a few calls, and not for a measurement. Connections of sqlite3 and of apsw are followed.

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

from sqlstress.user_work.callers import Frames, Spot, is_beside, who
from sqlstress.user_work.listening import Listener, Uses, next_moment
from sqlstress.user_work.suspicions import DELETE, INSERT, OVERWRITE, UPDATE, Statement, Table, Write
from sqlstress.user_work.touched import (
    Row,
    Target,
    is_now,
    literal,
    may_ignore,
    seeks_one_of,
    selects,
    spellings,
)

_LONGEST_TOLD = 300
MOST_STATEMENTS = 200
"""So many statements of a call are looked at."""

Events = list[tuple[Any, ...]]
"""What an authorizer heard: (action, table, column, database, trigger or view)."""

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
LEAD = r"(?:\s|/\*.*?\*/|--[^\n]*\n)*"
"""What may stand before a statement. What a trigger does is traced as a comment to its end."""
_LEADS = re.compile(LEAD, re.DOTALL)
_WORDS = re.compile(rf"{LEAD}([A-Za-z]+)(?:\s+([A-Za-z]+))?", re.DOTALL)
_EXPLAINED = re.compile(r"(select|values|with|insert|replace|update|delete)\b", re.IGNORECASE)
"""No other statement is explained: of one that changes the schema that has consequences."""
_WRITES = {sqlite3.SQLITE_INSERT: INSERT, sqlite3.SQLITE_DELETE: DELETE, sqlite3.SQLITE_UPDATE: UPDATE}
_SUMMARIES = {"count", "max", "min", "sum", "total", "avg", "group_concat"}


def words_of(sql: str) -> tuple[str, str]:
    """Return the first two words of a statement in capitals; none of a comment, as of what a trigger does."""
    words = _WORDS.match(sql)
    return (words[1].upper(), (words[2] or "").upper()) if words else ("", "")


class Connection(Protocol):
    """What a library's connection is asked."""

    def in_transaction(self) -> bool: ...

    def rows(self, sql: str, most: int = 1000) -> list[tuple[Any, ...]]:
        """Return the first rows of what a statement answers."""


class Sqlite3Connection:
    """One of Python's sqlite3."""

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


class ApswConnection:
    """One of apsw."""

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
    """Follows all connections that this process opens from now on."""

    def __init__(self) -> None:
        self.call: list[Statement] = []
        """The statements since it was emptied."""
        self.place = ""
        """Where the next statement stands, as who runs it says; unless the user's frames tell it."""
        self._frames: Frames | None = None
        self.is_shared = False
        """Whether it has let go of a connection, since threads use it at once."""
        self.numbers = count(1)
        self.forks = Forks()
        self.files = FileLocks()
        self.draws = Draws()
        self._uses = Uses()

    def start(self) -> None:
        """Follow connections, and see what is drawn at random."""
        self.draws.start()
        self._uses.start()
        sys.addaudithook(self._hook)
        if find_spec("apsw"):
            with suppress(ImportError):
                import_module("apsw").connection_hooks.append(self._follow_apsw)

    def stop(self) -> None:
        """Put the system's randomness back."""
        self.draws.stop()

    def begins_call(self) -> None:
        """Forget what the last call did."""
        self.call.clear()
        self.draws.texts.clear()

    def tells_lines_of(self, folder: Path) -> None:
        """Tell which lines run statements, of the user's code in a folder."""
        self._frames = Frames(folder)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect/handle":
            # It can't be used before `connect` has returned.
            next_moment(lambda: self._follow(args[0]))
        self.files.hear(event, args)

    def _follow(self, connection: sqlite3.Connection) -> None:
        followed = Followed(self, Sqlite3Connection(connection))
        connection.set_authorizer(followed.heard)
        # The authorizer waits for Python's lock in the same way.
        Listener(connection, followed.begins, lambda: self._leave(connection), self._uses)

    def _leave(self, connection: sqlite3.Connection) -> None:
        self.is_shared = True
        connection.set_authorizer(None)

    def _follow_apsw(self, connection: Any) -> None:
        followed = Followed(self, ApswConnection(connection))
        connection.authorizer = followed.heard

        def begins(source: Any, sql: str, _: Any) -> bool:
            # As a context manager it is the connection itself that begins and commits.
            followed.begins(getattr(source, "expanded_sql", sql))
            return True

        connection.exec_trace = begins

    def where(self) -> Spot:
        """Return where the user's code runs a statement now."""
        return self._frames.where() if self._frames else Spot(self.place)


class Forks:
    """What forks of this process do with its connections: they tell it through a pipe."""

    def __init__(self) -> None:
        self._ours, self._theirs = os.pipe()

    def tell(self, sql: str, at: str) -> None:
        """Tell of a statement, in a fork."""
        os.write(self._theirs, json.dumps((sql[:_LONGEST_TOLD], at)).encode() + b"\n")

    def heard(self) -> list[Statement]:
        """Return what was told meanwhile."""
        told = b""
        while multiprocessing.connection.wait([self._ours], 0) if sys.platform != "win32" else False:
            told += os.read(self._ours, 1 << 16)
        return [Statement(sql, at, forked=True) for sql, at in map(json.loads, told.splitlines())]


class FileLocks:
    """The files that this process has locked for itself alone, as Python's audit events tell of them."""

    _UNIX, _WINDOWS = ("fcntl.flock", "fcntl.lockf"), "msvcrt.locking"
    _EXCLUSIVE = 2
    """The bit of LOCK_EX; on Windows all but 0 lock."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[int, int, int]] = {}
        """By descriptor, the file, and how many locks had been taken with this one."""
        self._taken = 0

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Take what is about to happen: nobody else is here who could hold the lock."""
        if event not in (*self._UNIX, self._WINDOWS):
            return
        descriptor = args[0]  # also where a file was given
        locks = args[1] != 0 if event == self._WINDOWS else args[1] & self._EXCLUSIVE
        self._held.pop(descriptor, None)
        with suppress(OSError):
            if locks:
                self._taken += 1
                self._held[descriptor] = (*self._file(descriptor), self._taken)

    def held(self) -> frozenset[tuple[int, int, int]]:
        """Return the locks that are held: a file that was closed has none."""
        found = set()
        for descriptor, lock in [*self._held.items()]:
            with suppress(OSError):
                if self._file(descriptor) == lock[:2]:
                    found.add(lock)
        return frozenset(found)

    def _file(self, descriptor: int) -> tuple[int, int]:
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino


class Draws:
    """What a call draws from the system's randomness, which secrets, SystemRandom and uuid4 use."""

    _FEWEST, _LONGEST = 8, 64
    """Bytes: fewer may be drawn again by chance, and more are no token."""
    _MOST = 10_000
    _FUNCTIONS = ((os, "urandom"), (random, "_urandom"))

    def __init__(self) -> None:
        self.texts: deque[str] = deque(maxlen=self._MOST)
        self._draw = os.urandom

    def start(self) -> None:
        """See what is drawn from now on, also through names that are imported meanwhile."""
        for module, name in self._FUNCTIONS:
            setattr(module, name, self._seen)

    def stop(self) -> None:
        for module, name in self._FUNCTIONS:
            setattr(module, name, self._draw)

    def _seen(self, size: int, /) -> bytes:
        drawn = self._draw(size)
        if self._FEWEST <= len(drawn) <= self._LONGEST:
            self.texts.extend(spellings(drawn))
        return drawn


class Followed:
    """One connection that is followed."""

    def __init__(self, tracer: Tracer, connection: Connection) -> None:
        self._tracer, self._connection = tracer, connection
        self._heard: Events = []
        self._known: dict[str, Events] = {}
        self._asks = False
        """Whether what runs now is our own."""
        self._transaction = self._snapshot = 0
        self._file: str | None = None
        self._keys: dict[str, tuple[frozenset[str], ...]] = {}
        self._inserted: tuple[Statement, tuple[int, int]] | None = None
        """An INSERT whose row gets its number from SQLite, and what `_last` was before."""
        self._pid = os.getpid()

    def heard(self, *event: Any) -> int:
        """Hear of what a statement that is prepared reads and writes; all is allowed."""
        if self._asks:
            self._heard.append(event)
        return 0

    def begins(self, sql: str) -> None:
        """Take a statement that begins to run, before it has done anything."""
        sql = _LEADS.sub("", sql, count=1)
        if self._asks or sql.startswith("--"):
            return  # or what a trigger does
        if os.getpid() != self._pid:
            self._tracer.forks.tell(sql, self._tracer.where().at)
            return
        begins = not self._connection.in_transaction()
        if begins:
            self._transaction = next(self._tracer.numbers)
        if len(self._tracer.call) >= MOST_STATEMENTS:
            return
        self._asks = True
        try:
            if begins and not self._reads_still():
                self._snapshot = self._transaction
            self._take_number()
            statement = self._statement(sql)
            self._tracer.call.append(statement)
            if statement.write and statement.write.kind == INSERT and not statement.write.rows:
                self._inserted = statement, self._last()
        except Exception:  # of either library: it can't be explained, then it isn't
            return
        finally:
            self._asks = False

    def _statement(self, sql: str) -> Statement:
        events = self._explained(_RETURNING.sub("", sql)) if _EXPLAINED.match(sql) else []
        spot = self._tracer.where()
        statement = partial(
            Statement,
            sql=sql,
            at=spot.at,
            spot=spot.number,
            transaction=self._transaction,
            snapshot=self._snapshot,
            who=who(),
            beside=is_beside(),
            locks=self._tracer.files.held(),
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
            found=self._finds(sql),
            seeks_drawn=seeks_one_of(sql, [*self._tracer.draws.texts]),
            summarises=bool(functions & _SUMMARIES) or self._is_one_of_many(sql),
            rows=self._rows_read(sql, reads),
        )

    def _rows_read(self, sql: str, reads: Mapping[Table, frozenset[str]]) -> frozenset[Row] | None:
        """Return the rows that a query reads; None if they are not known."""
        if len(reads) != 1:
            return None
        ((_, name),) = reads
        with suppress(Exception):  # of either library: the query was not understood
            return self._target(name).queried(sql)
        return None

    def _reads_still(self) -> bool:
        """Return whether a query is still open, whose snapshot lasts: then SQLite makes no checkpoint."""
        try:
            self._connection.rows("PRAGMA main.wal_checkpoint(noop)")
        except Exception as error:  # of either library
            return "table is locked" in str(error)
        return False

    def _take_number(self) -> None:
        """Complete the last INSERT, now that it has run."""
        inserted, self._inserted = self._inserted, None
        call = self._tracer.call
        if not inserted or inserted[0] not in call or (last := self._last()) == inserted[1]:
            return
        statement, write = inserted[0], inserted[0].write
        if write:
            rows = self._target(write.table[1]).with_rowid(last[0])
            write = write._replace(rows=rows, numbered=True)
            call[call.index(statement)] = statement._replace(write=write)

    def _last(self) -> tuple[int, int]:
        """Return the number of the row that was inserted last, and how many rows were ever changed."""
        ((number, changes),) = self._connection.rows("SELECT last_insert_rowid(), total_changes()")
        return number, changes

    def _target(self, table: str) -> Target:
        return Target(table, self._keys_of(table), self._connection.rows)

    def _explained(self, sql: str) -> Events:
        # Asked once for each text: a library that keeps prepared statements prepares it once.
        if sql not in self._known:
            self._heard.clear()
            self._connection.rows(f"EXPLAIN {sql}", 1)
            self._known[sql] = list(self._heard)
        return self._known[sql]

    def _finds(self, sql: str) -> bool:
        row = next(iter(self._connection.rows(sql, 1)), None)
        return any(row) if row and _EXISTS.search(sql) else row is not None

    def _is_one_of_many(self, sql: str) -> bool:
        """Return whether a query shows the first of its rows, as far as can be seen.

        A mapper's `get` allows more rows than one to see that it is alone.
        """
        limit = None if _ORDERED.search(sql) else _LIMIT.search(sql)
        if not limit:
            return bool(_ONE_OF_MANY.search(sql))
        most = int(limit[1])
        return len(self._connection.rows(sql, most)) == most

    def _write(self, sql: str, events: Events) -> Write | None:
        """Return what a statement writes itself: triggers have their names in the last place."""
        direct = [event for event in events if event[4] is None]
        first = next((event for event in direct if event[0] in _WRITES), None)
        if not first or not _is_shared(first[1], first[3]):
            return None
        kind, table = _WRITES[first[0]], self._table(first[1])
        # SQLite hears of the values first, then of the column that is set, and of the WHERE at the end.
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
            if n > last and column and (sets or kind != INSERT) and not _looks_inside(sql, column)
        )
        keys = self._keys_of(first[1])
        in_keys = frozenset[str]().union(*keys)
        if kind == INSERT:
            kind = OVERWRITE if sets or _OVERWRITES.match(sql) or self._replaces(first[1], sql) else INSERT
            # ON CONFLICT names them.
            columns = [(n, column) for n, column in columns if column not in in_keys]
        computed = frozenset(
            _column(events[here][2])
            for before, here in pairwise((-1, *sets))
            # CASE WHEN id = ? THEN ? computes nothing.
            if any(
                before < n < here
                for n, column in columns
                if column not in in_keys or column == _column(events[here][2])
            )
        )
        if kind in (INSERT, OVERWRITE) and not sets:
            computed = frozenset(column for _, column in columns)
            wheres = computed if selects(sql) else frozenset()
        setting = frozenset(_column(events[n][2]) for n in sets)
        write = Write(table, kind, setting, computed, wheres, keys)
        for known in (self._with_rows, self._with_values, self._with_checks):
            with suppress(Exception):  # of either library: the statement was not understood
                write = known(write, sql)
        return write

    def _replaces(self, table: str, sql: str) -> bool:
        """Return whether a table says that a plain INSERT replaces a row of the same key."""
        if _INSERTS_OR.search(sql):
            return False
        named = f"SELECT sql FROM sqlite_master WHERE type = 'table' AND name = {literal(table)}"
        return any(_REPLACING.search(text) for (text,) in self._connection.rows(named))

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
        given = target.given(sql)
        kept = {column for column, (is_same, _) in given.items() if is_same and not target.has_triggers()}
        times = {column for column, (_, value) in given.items() if write.computed and is_now(value)}
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
        """Return the primary key of a table, which may be empty, and its other unique keys."""
        if table not in self._keys:
            columns = self._connection.rows(f"SELECT name FROM pragma_table_info({literal(table)}) WHERE pk")
            indexes = self._connection.rows(
                f"SELECT name FROM pragma_index_list({literal(table)}) WHERE [unique] AND NOT partial"
            )
            unique = [
                self._connection.rows(f"SELECT name FROM pragma_index_info({literal(name)})")
                for (name,) in indexes
            ]
            self._keys[table] = tuple(
                frozenset(_column(name) for (name,) in rows) for rows in (columns, *unique)
            )
        return self._keys[table]


def _is_shared(table: str, database: str | None) -> bool:
    """Return whether other connections have a table, too, and it is the user's."""
    return database != "temp" and not table.startswith("sqlite_")


def _looks_inside(sql: str, column: str) -> bool:
    """Return whether a WHERE compares a part of a document only, as far as can be seen."""
    where = sql[max(sql.lower().rfind("where"), 0) :]
    name = rf"[\"`\[]?\b{re.escape(column)}\b[\"`\]]?"
    return bool(re.search(rf"json_extract\s*\(\s*{name}|{name}\s*->", where, re.IGNORECASE))


def _column(name: str | None) -> str:
    lower = (name or "").lower()
    return "rowid" if lower in _ROWID else lower
