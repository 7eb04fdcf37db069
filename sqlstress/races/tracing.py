"""Tracer: records the SQL statements of this process, and the tables and columns that they use.

The tracer is slow, so it is only used in the rehearsal: a few calls of the user's transactions without load,
in a test run before the measurement. Connections of sqlite3 and apsw are traced, in three steps:

1. SQLite's trace callback reports each statement before the statement runs.
2. The tracer runs EXPLAIN with the statement on the same connection. SQLite prepares the EXPLAIN, and reports
   each table and column of the statement to the authorizer callback (an event).
3. The tracer also runs each query itself, to see whether it finds a row.

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
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from sqlstress.races.listening import ConnectionUses, Listener, call_soon
from sqlstress.races.touched import (
    Row,
    WrittenTable,
    inserts_from_select,
    is_now,
    may_ignore,
    parse_change,
    parse_sets,
    random_texts,
    searches_for_any,
    sql_literal,
)
from sqlstress.races.traced_statements import (
    DELETE,
    INSERT,
    OVERWRITE,
    UPDATE,
    ScriptUse,
    Table,
    TracedStatement,
    Write,
)
from sqlstress.recording.callers import (
    CallSite,
    UserFrames,
    awaiting_task,
    current_task,
    is_background_thread,
    runner_id,
)
from sqlstress.recording.connections import on_apsw_connection, rows
from sqlstress.recording.failures import LEAD

_MAX_SQL_CHARS = 300
MAX_STATEMENTS = 200
"""Maximum number of recorded statements per call of a transaction; later statements are skipped."""

Events = list[tuple[Any, ...]]
"""Calls of SQLite's authorizer callback: (action, table, column, database, trigger or view).

The action is a code such as SQLITE_READ. The last item is None if no trigger or view makes the access.
"""

_ROWID = ("rowid", "oid", "_rowid_")
_OVERWRITES = re.compile(r"\s*(insert\s+or\s+)?replace\b", re.IGNORECASE)
_INSERTS_OR = re.compile(r"\binsert\s+or\b", re.IGNORECASE)
_REPLACING = re.compile(
    r"\b(unique|primary\s+key)(\s+asc|\s+desc|\s*\([^)]*\))?\s+on\s+conflict\s+replace\b", re.IGNORECASE
)
_DELETE_TRIGGER = re.compile(r"\bdelete\s+on\b", re.IGNORECASE)
_RETURNING = re.compile(r"\breturning\b[^)]*$", re.IGNORECASE)
_ONE_OF_MANY = re.compile(r"\blimit\b|\border\s+by\b", re.IGNORECASE)
_ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)
_LIMIT = re.compile(r"\blimit\s+(\d+)\s*;?\s*$", re.IGNORECASE)
_EXISTS = re.compile(r"\bexists\s*\(", re.IGNORECASE)
_COUNTS = re.compile(r"select\s+((coalesce|ifnull)\s*\(\s*)?(count|sum|total|avg)\s*\(", re.IGNORECASE)
_LEADS = re.compile(LEAD, re.DOTALL)
_SELECTS = re.compile(r"\bselect\b", re.IGNORECASE)
_EXPLAINABLE = re.compile(r"(select|values|with|insert|replace|update|delete)\b", re.IGNORECASE)
"""Pattern of statements with which the tracer runs EXPLAIN: queries and writes, no schema changes."""
_WRITES = {sqlite3.SQLITE_INSERT: INSERT, sqlite3.SQLITE_DELETE: DELETE, sqlite3.SQLITE_UPDATE: UPDATE}
_SUMMARIES = {"count", "max", "min", "sum", "total", "avg", "group_concat"}


class Tracer:
    """Recorder of the SQL statements on all connections that this process opens after `start`."""

    def __init__(self) -> None:
        self.call: list[TracedStatement] = []
        """Statements of the current call of a transaction, in order."""
        self.place = ""
        """Position of an SQL script's next statement, such as "a.sql:3", which the worker process sets."""
        self.script: ScriptUse | None = None
        """Variables of an SQL script's next statement, which the worker process sets."""
        self.before_statement: Callable[[int], None] | None = None
        """Function to call before each statement, with the number of earlier statements of the call."""
        self._frames: UserFrames | None = None
        """Finder of lines in the user's Python code; None for SQL scripts."""
        self.is_shared = False
        """Whether the trace of a connection ended early, because several threads use the connection."""
        self.numbers = count(1)
        self.forks = ForkReports()
        self.files = FileLocks()
        self.draws = RandomValues()
        self._uses = ConnectionUses()

    def start(self) -> None:
        """Trace new connections from now on, and record the user's random values."""
        self.draws.start()
        self._uses.start()
        sys.addaudithook(self._hook)
        on_apsw_connection(self._follow_apsw)

    def stop(self) -> None:
        """Stop recording random values. Connections stay traced."""
        self.draws.stop()

    def begin_call(self) -> None:
        """Begin a call of a transaction: forget the statements and random values of the last call.

        A query for a UUID that the same call has made looks for the id of a new row. No other process can add
        this row. In a later call, the UUID may be the id of an existing row.
        """
        self.call.clear()
        self.draws.texts.clear()

    def find_lines_in(self, folder: Path) -> None:
        """Record, for each later statement, also the line of the user's code in `folder` that runs it."""
        self._frames = UserFrames(folder)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect/handle":
            # The connection cannot be used before `connect` has returned.
            call_soon(lambda: self._follow(args[0]))
        self.files.handle_event(event, args)

    def _follow(self, connection: sqlite3.Connection) -> None:
        traced = TracedConnection(self, connection)
        connection.set_authorizer(traced.authorize)
        # If the trace ends, remove the authorizer, too: both callbacks wait for the GIL, and could deadlock.
        Listener(connection, traced.begins, lambda: self._leave(connection), self._uses)

    def _leave(self, connection: sqlite3.Connection) -> None:
        self.is_shared = True
        connection.set_authorizer(None)

    def _follow_apsw(self, connection: Any) -> None:
        traced = TracedConnection(self, connection)
        connection.authorizer = traced.authorize

        def begins(source: Any, sql: str, _: Any) -> bool:
            # `source` is a cursor, or a connection if the code uses the connection as a context manager.
            traced.begins(getattr(source, "expanded_sql", sql))
            return True

        connection.exec_trace = begins

    def call_site(self) -> CallSite:
        """Return the position in the user's code or SQL script from where the statement runs."""
        return self._frames.call_site() if self._frames else CallSite(self.place)

    def is_users_thread(self) -> bool:
        """Return whether the user's code started this thread for a function of its own."""
        return bool(self._frames and self._frames.is_users_thread())


class ForkReports:
    """Pipe by which forked processes report SQL statements on connections of their parent process."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def send(self, sql: str, at: str) -> None:
        """Send a statement, and its line of code `at`, from a forked process to the parent process."""
        os.write(self._writer, json.dumps((sql[:_MAX_SQL_CHARS], at)).encode() + b"\n")

    def drain(self) -> list[TracedStatement]:
        """Return the statements that forked processes sent since the last call of `drain`."""
        data = b""
        while multiprocessing.connection.wait([self._reader], 0) if sys.platform != "win32" else False:
            data += os.read(self._reader, 1 << 16)
        return [TracedStatement(sql, at, forked=True) for sql, at in map(json.loads, data.splitlines())]


class FileLocks:
    """Record of the files that this process has locked exclusively, as by `fcntl.flock`."""

    _UNIX, _WINDOWS = ("fcntl.flock", "fcntl.lockf"), "msvcrt.locking"
    _EXCLUSIVE = 2
    """Bit of an exclusive lock (LOCK_EX) in the mode for flock. On Windows, every mode except 0 locks."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[int, int, int]] = {}
        """Locks by file descriptor: device, inode, and a number that is new for each lock."""
        self._lock_count = 0

    def handle_event(self, event: str, args: tuple[Any, ...]) -> None:
        """Record a lock or unlock by an audit event, which Python sends before the system call."""
        # The system call will succeed, because no other process uses the files of a rehearsal.
        if event not in (*self._UNIX, self._WINDOWS):
            return
        descriptor = args[0]  # The event has the descriptor, even if the code passed a file object.
        locks = args[1] != 0 if event == self._WINDOWS else args[1] & self._EXCLUSIVE
        self._held.pop(descriptor, None)
        with suppress(OSError):
            if locks:
                self._lock_count += 1
                self._held[descriptor] = (*self._file(descriptor), self._lock_count)

    def held_locks(self) -> frozenset[tuple[int, int, int]]:
        """Return the locks that this process holds now: device, inode, number. A close ends a lock."""
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
    """Recorder of random values from os.urandom, secrets or uuid4, which a call may use as ids of rows."""

    _FEWEST, _LONGEST = 8, 64
    """Minimum and maximum length of a recorded value, in bytes. Shorter values may repeat by chance."""
    _MOST = 10_000
    """Maximum number of recorded texts per call; the oldest are dropped.

    Each random value is recorded as several texts: hexadecimal, base64 and others.
    """
    _FUNCTIONS = ((os, "urandom"), (random, "_urandom"))

    def __init__(self) -> None:
        self.texts: deque[str] = deque(maxlen=self._MOST)
        """Random values of the current call as texts, such as hexadecimal and base64."""
        self._draw = os.urandom

    def start(self) -> None:
        """Replace os.urandom, and its copy in the module random, by a function that records the values."""
        # Code that has already imported a function by name keeps the original.
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
    """Recorder of the statements of a single connection of sqlite3 or apsw, for a tracer."""

    def __init__(self, tracer: Tracer, connection: Any) -> None:
        self._tracer, self._connection = tracer, connection
        self._events: Events = []
        """Authorizer events of the tracer's last statement, such as an EXPLAIN."""
        self._events_by_sql: dict[str, Events] = {}
        self._runs_ours = False
        """Whether the tracer itself is running a statement, such as EXPLAIN, which is not recorded."""
        self._transaction = self._snapshot = 0
        """Number of the current transaction, and of the transaction that began the snapshot; 0 at first."""
        self._files: dict[str, str] = {}
        """Path of each database by schema, such as "main"."""
        self._in_wal = False
        """Whether all databases of the connection are in WAL mode."""
        self._keys: dict[str, tuple[frozenset[str], ...]] = {}
        """Columns of the unique keys of each table, first the primary key, by table name."""
        self._pending_insert: tuple[TracedStatement, tuple[int, int]] | None = None
        """Last INSERT, until its rowid is known, and the `_insert_state` before the INSERT; or None."""
        self._pid = os.getpid()
        self._task: Any = None
        """Asyncio task that waited for the last statement, if a thread ran the statement; else None."""
        self._runner = 0
        """Id of the task or thread that ran the last statement."""

    def authorize(self, *event: Any) -> int:
        """Allow an access, as SQLite's authorizer callback. Record it if the tracer is running EXPLAIN."""
        if self._runs_ours:
            self._events.append(event)
        return 0

    def begins(self, sql: str) -> None:
        """Record a statement that is about to run, with its tables, columns and rows."""
        sql = _LEADS.sub("", sql, count=1)
        if self._runs_ours or sql.startswith("--"):
            return  # The tracer runs the statement, or a trigger, which SQLite reports as a comment.
        if os.getpid() != self._pid:
            self._tracer.forks.send(sql, self._tracer.call_site().at)
            return
        if self._tracer.before_statement:
            self._tracer.before_statement(len(self._tracer.call))
        begins_transaction = not self._connection.in_transaction
        if begins_transaction:
            self._transaction = next(self._tracer.numbers)
        if len(self._tracer.call) >= MAX_STATEMENTS:
            return
        self._runs_ours = True
        self._note_runner(begins_transaction)
        try:
            if begins_transaction and not self._has_open_query():
                self._snapshot = self._transaction
            self._complete_insert()
            statement = self._statement(sql)
            if (write := statement.write) and write.kind == INSERT and not write.rows:
                reuses = "autoincrement" not in self._definition(write.table[1]).lower()
                statement = statement._replace(write=write._replace(reuses_ids=reuses))
                self._pending_insert = statement, self._insert_state()
            self._tracer.call.append(statement)
        except Exception:  # An error of sqlite3 or apsw: EXPLAIN failed, so the statement is skipped.
            return
        finally:
            self._runs_ours = False

    def _note_runner(self, begins_transaction: bool) -> None:
        # Successive tasks in a transaction count as a single task: asyncio.wait_for makes a task for each
        # statement. The statements of a task may run in its own thread and in helper threads.
        known = None if begins_transaction else self._task
        task = None
        if not self._tracer.is_users_thread():
            task = awaiting_task() or (current_task() if known else None)
        if not known or not (task in (None, known) or known.done()):
            self._runner = id(task) if task else runner_id()
        self._task = task or known

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
            runner=self._runner,
            in_background=is_background_thread(),
            begins_implicitly=getattr(self._connection, "isolation_level", None) is not None,
            locks=self._tracer.files.held_locks(),
            stack=spot.stack,
            script=self._tracer.script,
        )
        reads: dict[Table, frozenset[str]] = {}
        for action, table, column, database, _ in events:
            if action == sqlite3.SQLITE_READ and table and _is_shared(table, database):
                name = self._table(table, database)
                reads[name] = reads.get(name, frozenset()) | {_column(column)}
        write = self._write(sql, events)
        if write:
            counted = spot.counted or bool(_RETURNING.search(sql))
            ignores = may_ignore(sql)
            unseen = spot.unseen and not counted and (write.kind == UPDATE or ignores)
            unseen = unseen or (ignores and self._tracer.script is not None)
            write = write._replace(
                counted=counted, insists=spot.insists, unseen=unseen, trusts_id=spot.trusts_id
            )
        statement = partial(statement, reads=reads, in_wal=self._in_wal)
        if not reads or any(event[0] in _WRITES for event in events):
            return statement(write=write)
        functions = {str(event[2]).lower() for event in events if event[0] == sqlite3.SQLITE_FUNCTION}
        return statement(
            found=self._has_row(sql),
            seeks_drawn=searches_for_any(sql, [*self._tracer.draws.texts]),
            summarises=bool(functions & _SUMMARIES) or self._shows_first_rows(sql),
            counts=bool(_COUNTS.match(sql)) and len(self._rows(sql, 1)[0]) == 1,
            rows=self._rows_read(sql, reads),
        )

    def _rows(self, sql: str, most: int = 1000) -> list[tuple[Any, ...]]:
        return rows(self._connection, sql, most=most)

    def _rows_read(self, sql: str, reads: Mapping[Table, frozenset[str]]) -> frozenset[Row] | None:
        if len(reads) != 1:
            return None
        ((_, name),) = reads
        with suppress(Exception):  # An error of sqlite3 or apsw: the query was not understood.
            return self._target(name).queried(sql)
        return None

    def _has_open_query(self) -> bool:
        """Return whether a query of the connection still has rows to fetch."""
        try:  # During such a query, SQLite refuses a checkpoint.
            self._rows("PRAGMA main.wal_checkpoint(noop)")
        except Exception as error:  # An error of sqlite3 or apsw.
            return "table is locked" in str(error)
        return False

    def _complete_insert(self) -> None:
        """Add the new row to the record of the last INSERT, now that SQLite has assigned its rowid."""
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
        """Return the last inserted rowid, and the number of rows that the connection has changed so far."""
        ((number, changes),) = self._rows("SELECT last_insert_rowid(), total_changes()")
        return number, changes

    def _target(self, table: str) -> WrittenTable:
        return WrittenTable(table, self._keys_of(table), self._rows)

    def _explain(self, sql: str) -> Events:
        # The events are cached by SQL. SQLite sends events only when it prepares the EXPLAIN, and a library
        # with a statement cache prepares a statement only once.
        if sql not in self._events_by_sql:
            self._events.clear()
            self._rows(f"EXPLAIN {sql}", 1)
            self._events_by_sql[sql] = list(self._events)
        return self._events_by_sql[sql]

    def _has_row(self, sql: str) -> bool:
        row = next(iter(self._rows(sql, 1)), None)
        return any(row) if row and _EXISTS.search(sql) else row is not None

    def _shows_first_rows(self, sql: str) -> bool:
        """Return whether a query has ORDER BY or LIMIT, so that its first row depends on other rows."""
        # A LIMIT that cuts off no row does not count: ORMs use LIMIT 2 to test that a row is unique.
        limit = None if _ORDERED.search(sql) else _LIMIT.search(sql)
        if not limit:
            return bool(_ONE_OF_MANY.search(sql))
        most = int(limit[1])
        return len(self._rows(sql, most)) == most

    def _write(self, sql: str, events: Events) -> Write | None:
        """Return a statement's effect, from its authorizer events; None for queries and temporary tables."""
        direct = [event for event in events if event[4] is None]
        first = next((event for event in direct if event[0] in _WRITES), None)
        if not first or not _is_shared(first[1], first[3]):
            return None
        kind, table = _WRITES[first[0]], self._table(first[1], first[3])
        # For `SET a = b WHERE c = 1`, SQLite reports b, then a, and at the end c.
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
            # Ignore the columns of keys: SQLite reads them to detect a conflict.
            columns = [(n, column) for n, column in columns if column not in in_keys]
        computed = frozenset(
            _column(events[position][2])
            for previous, position in pairwise((-1, *sets))
            # SQLite computes a new value if the expression reads a column, as in `SET n = n + 1`. A column of
            # a key does not count: `SET n = CASE WHEN id = ? THEN ? END` only selects the row by its id.
            # But `SET id = id + 1` counts.
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
        if kind == OVERWRITE and not sets:  # An upsert deletes no row.
            write = write._replace(
                cascades=self._cascades(first[1]), skips_trigger=self._skips_trigger(first[1])
            )
        for refine in (self._with_rows, self._with_values, self._with_checks):
            with suppress(Exception):  # An error of sqlite3 or apsw: the statement was not understood.
                write = refine(write, sql)
        return write

    def _cascades(self, table: str) -> str:
        query = (
            "SELECT m.name FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table' "
            f"AND lower(f.[table]) = lower({sql_literal(table)}) "
            "AND f.on_delete NOT IN ('NO ACTION', 'RESTRICT')"
        )
        is_on = self._rows("PRAGMA foreign_keys")[0][0]
        return next((str(name) for (name,) in self._rows(query)), "") if is_on else ""

    def _skips_trigger(self, table: str) -> bool:
        query = f"SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = {sql_literal(table)}"
        is_on = self._rows("PRAGMA recursive_triggers")[0][0]
        return not is_on and any(_DELETE_TRIGGER.search(text) for (text,) in self._rows(query))

    def _replaces(self, table: str, sql: str) -> bool:
        """Return whether an INSERT replaces rows, because the schema has UNIQUE ON CONFLICT REPLACE."""
        if _INSERTS_OR.search(sql):
            return False
        return bool(_REPLACING.search(self._definition(table)))

    def _definition(self, table: str) -> str:
        query = f"SELECT sql FROM sqlite_master WHERE type = 'table' AND name = {sql_literal(table)}"
        return next((text for (text,) in self._rows(query)), "")

    def _with_rows(self, write: Write, sql: str) -> Write:
        target = self._target(write.table[1])
        if write.kind in (UPDATE, DELETE):
            return write._replace(rows=target.changed(sql))
        inserted = target.inserted(sql)
        write = write._replace(has_null_key=target.has_null_key(sql), has_null_twin=target.has_null_twin(sql))
        return write._replace(rows=inserted[0], existing=inserted[1]) if inserted else write

    def _with_values(self, write: Write, sql: str) -> Write:
        """Return an UPDATE with its new values: `kept` (unchanged columns) and `numbers` (integers)."""
        if write.kind != UPDATE:
            return write
        target = self._target(write.table[1])
        assignments = target.assigned_values(sql)
        kept = {
            column for column, (is_same, _) in assignments.items() if is_same and not target.has_triggers()
        }
        now = {column for column, (_, value) in assignments.items() if is_now(value)}
        source = parse_change(sql)
        subqueries = {
            column
            for column, value in parse_sets(source.sets if source else "").items()
            if _SELECTS.search(value)
        }
        numbers = {
            column: value
            for column, (_, value) in assignments.items()
            if type(value) is int and column not in {*kept, *now, *write.computed, *subqueries}
        }
        # Leave out columns that get the current time. It comes from the clock, not from an earlier query.
        times = now if write.computed else set[str]()
        return write._replace(kept=frozenset(kept), sets=write.sets - (times - write.wheres), numbers=numbers)

    def _with_checks(self, write: Write, sql: str) -> Write:
        if write.kind not in (UPDATE, OVERWRITE) or not write.computed:
            return write
        return write._replace(refused=self._target(write.table[1]).checked() & write.sets)

    def _table(self, name: str, database: str | None) -> Table:
        """Return the file and name of a table. `database` is "main" or the name of an attached database."""
        label = database or "main"
        if label not in self._files:
            databases = self._rows("PRAGMA database_list")
            self._files = {schema: path or f":memory: {schema} {id(self)}" for _, schema, path in databases}
            schemas = [sql_literal(schema) for schema in self._files if schema != "temp"]
            modes = [self._rows(f"PRAGMA {schema}.journal_mode")[0][0] for schema in schemas]
            self._in_wal = {*modes} == {"wal"}
        return self._files[label], name

    def _keys_of(self, table: str) -> tuple[frozenset[str], ...]:
        if table not in self._keys:
            columns = self._rows(f"SELECT name FROM pragma_table_info({sql_literal(table)}) WHERE pk")
            indexes = self._rows(
                f"SELECT name FROM pragma_index_list({sql_literal(table)}) WHERE [unique] AND NOT partial"
            )
            unique = [
                self._rows(f"SELECT name FROM pragma_index_info({sql_literal(name)})") for (name,) in indexes
            ]
            self._keys[table] = tuple(
                frozenset(_column(name) for (name,) in rows) for rows in (columns, *unique)
            )
        return self._keys[table]


def _is_shared(table: str, database: str | None) -> bool:
    """Return whether a table belongs to the user, and is not temporary."""
    return database != "temp" and not table.startswith("sqlite_")


def _compares_part_of(sql: str, column: str) -> bool:
    """Return whether WHERE compares only a part of the JSON in `column`, as in `data ->> 'n' = 5`."""
    where = sql[max(sql.lower().rfind("where"), 0) :]
    name = rf"[\"`\[]?\b{re.escape(column)}\b[\"`\]]?"
    return bool(re.search(rf"json_extract\s*\(\s*{name}|{name}\s*->", where, re.IGNORECASE))


def _column(name: str | None) -> str:
    """Return a column name in lower case; "rowid" for all names of the rowid."""
    lower = (name or "").lower()
    return "rowid" if lower in _ROWID else lower
