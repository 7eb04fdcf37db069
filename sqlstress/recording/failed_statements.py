"""Records of the user's statements that SQLite refused, even if the user's code caught the exception.

Connections and cursors of the user's code, of Python's sqlite3 and of apsw, are instances of our subclasses,
which time each statement and catch its exception. Other facts are only read after a failure. Not covered are
connections from before `install`, connections from a factory that is not a class, and methods that the user's
classes override.

Terms: a call is one call of a function of the user's file. A caller is the position in Python code that calls
the SQLite library. A history has the last statements of a connection.
"""

from __future__ import annotations

import gc
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import get_ident
from time import perf_counter
from types import CodeType, FrameType
from typing import Any, Protocol, cast

from sqlstress.recording import (
    CHECKPOINT,
    IMMUTABLE,
    IN_MEMORY,
    LONG_HOLD_S,
    LOST_LOCKS,
    NO_EFFECT,
    NO_LOCKS,
    SCHEMA_CHANGE,
    SPLIT,
    THIS_THREAD,
    UNCLOSED,
    UNFETCHED,
    WAL_HOOK,
    PlainObservation,
    is_passive,
)
from sqlstress.recording.after_calls import LOOK_S, OpenQueries, OpenTransactions, RefusedWrites
from sqlstress.recording.backups import Backups
from sqlstress.recording.call_costs import CallCosts, Hold, LongHolds
from sqlstress.recording.callers import has_other_tasks, is_rollback_after_error
from sqlstress.recording.connections import (
    attached_files,
    has_open_statement,
    is_in_transaction,
    is_open,
    on_apsw_connection,
    pragma,
    reading_steps,
    rows,
    writes_temporary,
    written_schema,
)
from sqlstress.recording.failures import (
    UNKNOWN_CALLER,
    Caller,
    FailureCounter,
    FailureFacts,
    Kind,
    Line,
    TimedStep,
    count_kind,
    is_in_memory,
    is_within,
    is_write,
    short_sql,
    statement_kind,
    transaction_of,
    transaction_steps,
    words_of,
    written_name,
)
from sqlstress.recording.history import History, Transaction
from sqlstress.recording.overlaps import ActiveCalls, Overlaps
from sqlstress.recording.passed_rows import PassedRows
from sqlstress.recording.recorded_classes import (
    apsw_connection,
    apsw_cursor,
    runs_statement,
    sqlite3_connection,
)
from sqlstress.recording.slow_calls import SLOW_READ_S, LockOrders, SlowReads
from sqlstress.sqlite_codes import BUSY, CONSTRAINT
from sqlstress.target import OTHER_SQLITE

SYNCHRONOUS = {"0": "off", "1": "normal", "2": "full", "3": "extra"}
"""Names of the values of PRAGMA synchronous."""
MIN_UNCLOSED = 10
"""Minimum number of calls that left a connection open, per database, thread and line, for a finding.

A pool of fixed size opens all its connections in few calls, and so causes no finding.
"""
MIN_HOOK_FRAMES = 2000
"""Minimum number of frames in the WAL for an observation of a WAL hook that makes no checkpoint.

SQLite would have made a checkpoint at 1000 frames.
"""
LIBRARIES = ("django", "peewee", "sqlalchemy")
"""Libraries that begin transactions for the user's code, by the name of their package."""
KEY_EXISTS = (1555, 2067)
"""Result codes of a violated primary key or UNIQUE index."""
_TABLE_SCAN = re.compile(r"SCAN (?!CONSTANT ROW)(?!.*INDEX)")
"""Pattern of a step of a query plan that reads a whole table, or all rows of a subquery."""
_SUBQUERIES = ("CO-ROUTINE", "MATERIALIZE")
"""First words of the steps of a query plan that compute a subquery."""
SLOW_SCAN_S = 0.005
"""Minimum duration of a write in seconds, to search its query plan for a table scan."""
_UNLOCKED = {"nolock=1": NO_LOCKS, "immutable=1": IMMUTABLE}
"""Parameters of a database's URI with which SQLite takes no locks."""
_SELECTS = re.compile(r"\bselect\b.*\bfrom\b", re.IGNORECASE | re.DOTALL)


class UserLines(Protocol):
    """Finder of lines in the user's code; `callers.UserFrames` implements it."""

    def line(self, frame: FrameType | None) -> Line | None:
        """Return the file and line of the user's code that led to a stack frame; None if there is none."""

    def text(self, line: Line) -> str:
        """Return a line as text, such as "bank.py:27"; empty outside of the user's code."""

    def awaiting_line(self) -> Line | None:
        """Return the line of the coroutine that waits for this thread; None if unknown."""

    def active_calls(self, frame: FrameType | None) -> ActiveCalls:
        """Return the user's functions on the call stack of `frame`, with their current lines."""


class FailedStatements:
    """Recorder of failed statements and open transactions of this process, from `install` on."""

    def __init__(self, lines: UserLines, costs: CallCosts) -> None:
        self.lines = lines
        self.costs = costs
        self.on_open: Callable[[], None] = lambda: None
        """Callback after the user's code has opened a connection."""
        self.looks_up = False
        """Whether to search for the user's line at each statement that begins a transaction.

        The search is slow, so it starts after the first observation that needs the line.
        """
        self.used_files = set[str]()
        """Names of the databases on which statements other than PRAGMA ran."""
        self._libraries = set[str]()
        """Libraries that have opened a connection: "sqlite3", "apsw" or both."""
        self.failures = FailureCounter()
        self.holds = LongHolds()
        self.overlaps = Overlaps(lines)
        self.passed_rows = PassedRows()
        self._backups = Backups()
        self._no_effect = Counter[tuple[str, str, Transaction]]()
        """Number of PRAGMAs without effect, by statement, line and transaction."""
        self._open_transactions = OpenTransactions()
        self._open_queries = OpenQueries()
        self._slow_reads = SlowReads()
        self._refused_writes = RefusedWrites(self.failures)
        self._lock_orders = LockOrders()
        self._has_news = False
        """Whether SQLite refused a write in the current call, or a connection was closed in a transaction."""
        self._look_s = 0.0
        """Time of the next search for open queries, by `perf_counter`."""
        self._idle_ends = Counter[tuple[str, str, str]]()
        """Number of commits and rollbacks without open transaction, by statement, line and earlier write."""
        self._schema_changes = Counter[tuple[str, str]]()
        """Number of schema changes outside of a transaction, by statement and line."""
        self._splits = Counter[tuple[str, str, Transaction]]()
        """Number of transactions that were committed too early, by line, way (see `add_split`) and state."""
        self._unlocked = Counter[tuple[str, str, str]]()
        """Number of connections that take no locks, by NO_LOCKS or IMMUTABLE, name of the file and line."""
        self._in_memory = Counter[tuple[str, str]]()
        """Number of connections to in-memory databases, by name and line."""
        self._hooks: dict[str, int] = {}
        """Largest number of frames in the WAL at a call of a WAL hook, by the line that set the hook."""
        self._has_checkpoints = False
        """Whether the user's code has run a checkpoint."""
        self._histories: list[History] = []

    def install(self) -> None:
        """Record the statements of all connections that are opened from now on, permanently."""
        connect = sqlite3.connect

        def watched_connect(*args: Any, **options: Any) -> Any:
            file = str(args[0] if args else options.get("database", ""))
            is_new = not (file.startswith("file:") or Path(file).exists())
            begun = perf_counter()
            connection: Any = connect(*self._with_factory(args, options), **options)
            self.costs.add_connection(perf_counter() - begun, file, is_new=is_new)
            self._libraries.add("sqlite3")
            if history := getattr(connection, "_sqlstress", None):
                history.name = file
                history.opened_at = self.lines.line(sys._getframe(1))
                self._note_name(history.name)
                self.on_open()
            return connection

        sqlite3.connect = sqlite3.dbapi2.connect = watched_connect
        if on_apsw_connection(self._watch_apsw):
            apsw: Any = import_module("apsw")
            apsw.Connection = apsw_connection(apsw.Connection)

    def _note_name(self, name: str) -> None:
        file, _, parameters = name.partition("?")
        unlocked = [kind for parameter, kind in _UNLOCKED.items() if parameter in parameters]
        if not (unlocked or is_in_memory(name)):
            return
        line = self.line_text(self.lines.line(sys._getframe(2)))
        if is_in_memory(name):
            count_kind(self._in_memory, (name, line))
        for kind in unlocked:
            count_kind(self._unlocked, (kind, file.rpartition("/")[2], line))

    def _with_factory(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
        """Return the positional arguments of `sqlite3.connect` with our subclass as the connection's class.

        If the class is a keyword argument, change `options` in place.
        """
        index = 5
        factory = args[index] if len(args) > index else options.get("factory", sqlite3.Connection)
        if not (isinstance(factory, type) and issubclass(factory, sqlite3.Connection)):
            return args
        subclass = sqlite3_connection(cast(Any, factory), self)
        if len(args) > index:
            return (*args[:index], subclass, *args[index + 1 :])
        options["factory"] = subclass
        return args

    def _watch_apsw(self, connection: Any) -> None:
        history = self.watch(connection)
        if hasattr(type(connection), "_sqlstress"):
            connection._sqlstress = history
        self._libraries.add("apsw")
        history.name = connection.filename
        history.opened_at = self.lines.line(sys._getframe(1))
        self.costs.add_connection(0.0, history.name)  # The duration is unknown: apsw calls this afterwards.
        self.on_open()
        connection.cursor_factory = apsw_cursor(connection.cursor_factory, history)
        connection_class = type(connection)

        def note_block(source: Any, sql: str, _: Any) -> bool:
            # `with connection` runs its statements without a cursor: only a trace sees them.
            if isinstance(source, connection_class):
                begun = perf_counter()
                caller = history.begin(source, begun)
                history.add((sql, caller is None, caller, begun, begun))
            return True

        connection.exec_trace = note_block

    def watch(self, connection: Any) -> History:
        """Return a new connection's history. Drop the histories of deleted connections."""
        history = History(self, connection)
        for known in self._histories:
            if not known.connection():
                known.end_transaction()
        self._histories = [known for known in self._histories if known.connection()] + [history]
        return history

    def open_libraries(self, file: str) -> set[str]:
        """Return the libraries that have `file` open: "sqlite3", "apsw" or both."""
        return {
            "sqlite3" if isinstance(connection, sqlite3.Connection) else "apsw"
            for history in self._histories
            if file in history.name and is_open(connection := history.connection())
        }

    def apsw_settings(self, file: str) -> dict[str, str]:
        """Return the settings of apsw's open connections to `file`, such as journal_mode, by name.

        Different values of a setting are separated by " / ". The result is empty if sqlite3 has opened a
        connection, too.
        """
        found: dict[str, dict[str, None]] = {}
        for history in self._histories if self._libraries == {"apsw"} else ():
            connection = history.connection()
            if file in history.name and is_open(connection) and not is_in_transaction(connection):
                for name in ("journal_mode", "synchronous", "busy_timeout"):
                    value = pragma(connection, name)
                    text = SYNCHRONOUS.get(value, value) if name == "synchronous" else value
                    found.setdefault(name, {})[text] = None
        return {name: " / ".join(values) for name, values in found.items()}

    def holds_write_lock(self, file: str) -> bool:
        """Return whether this process has an open transaction that has written to `file`."""
        return any(
            file in history.name and is_in_transaction(history.connection()) and history.transaction().wrote
            for history in self._histories
        )

    def user_line(self, frame: FrameType) -> Caller:
        """Return the user's line that led to `frame`, or that waits for this thread; else UNKNOWN_CALLER.

        The search takes as long as a short statement.
        """
        return self.lines.line(frame) or self.lines.awaiting_line() or UNKNOWN_CALLER

    def line_text(self, at: Caller | None) -> str:
        """Return a position in code as text, such as "bank.py:27"; empty if unknown or not the user's."""
        if at is None:
            return ""
        origin, number = at
        if isinstance(origin, CodeType):
            spans = origin.co_lines()
            at = (
                origin.co_filename,
                next((line or 0 for start, end, line in spans if start <= number < end), 0),
            )
            return self.lines.text(at)
        return self.lines.text((origin, number))

    def _with_line(self, sql: str, at: Caller | None) -> str:
        line = self.line_text(at)
        return f"{short_sql(sql)} ({line})" if line else short_sql(sql)

    def add(self, history: History, code: int, message: str, waited_s: float) -> None:
        """Record the failure of a connection's last statement, with SQLite's result code and the duration."""
        *earlier, (sql, was_open, caller, *_) = history.steps
        line = self.lines.line(sys._getframe(3)) or self.lines.awaiting_line()
        kind = Kind(code, short_sql(sql), self.line_text(caller) or self.line_text(line))

        def examine() -> FailureFacts:
            refused, connection = history.refused(), history.connection()
            state, began, _ = transaction_of(earlier, refused) if was_open else ("none", "", None)
            if state == "written" and is_write(sql):
                state = _state_without_temporary(connection, earlier, refused)
            steps = transaction_steps(earlier) if was_open else []
            writes = [step[0] for step in steps if id(step) not in refused]
            (holder, held_since), blobs = self._holder(connection, history.name), history.open_blobs()
            timeout_ms = pragma(connection, "busy_timeout")
            return FailureFacts(
                timeout_ms=timeout_ms,
                journal=pragma(connection, "journal_mode"),
                statement=statement_kind(sql),
                transaction=state,
                began=began,
                open_cursor=has_open_statement(connection, history.is_shared),
                shared_cache="yes" if "cache=shared" in history.name else "no",
                holder=holder,
                held_since=held_since,
                reader=self._open_query(connection, history.name) if statement_kind(sql) == "commit" else "",
                scan=_slow_scan(connection, earlier, sql, refused) if is_write(sql) else "",
                locking_mode=pragma(connection, "locking_mode"),
                repeated="yes" if history.is_repeated() else "",
                lock_order=_lock_order(connection, [*writes, sql]),
                opened_by=history.opened_by if was_open else "",
                earlier_query=self._earlier_query(sql, earlier) if code in KEY_EXISTS else "",
                open_blob=self._with_line(blobs[-1][0], blobs[-1][2]) if blobs else "",
                rolled_back="yes" if was_open and _is_rolled_back(code, history) else "",
                sharers="yes" if history.is_shared or has_other_tasks() else "",
                busy_handler=history.busy_handler if timeout_ms == "0" else "",
                library=_library(sys._getframe(2)),
            )

        self.failures.add(kind, message, waited_s, examine)
        if code & 0xFF == BUSY:
            self._lock_orders.add_failure(history.steps[-1], kind, self._outer_line(sys._getframe(3)))
        if code & 0xFF in (BUSY, CONSTRAINT):
            self._has_news = True
            self._refused_writes.add(history, kind, *self._earlier_writes(history, earlier))

    def _outer_line(self, frame: FrameType) -> str:
        """Return the line at which the user's outermost function led to `frame`; "" if unknown."""
        calls = [*self.lines.active_calls(frame).items()]
        return self.lines.text((calls[-1][0][1].co_filename, calls[-1][1])) if calls else ""

    def _earlier_query(self, sql: str, earlier: Sequence[TimedStep]) -> str:
        """Return the call's last query, with its line, that read the table of the write `sql`; or "".

        `earlier` has the connection's statements before the write. Queries in a transaction do not count.
        """
        table = (written_name(sql) or ("",))[-1]
        for query, was_open, at, begun, _ in reversed(earlier):
            if begun < self.costs.begun_s:
                break
            if statement_kind(query) == "read" and not was_open and table and table in query:
                return self._with_line(query, at)
        return ""

    def note_raised(self, error: Exception) -> None:
        """Record the failure of a BEGIN or COMMIT that apsw ran for a block `with connection`.

        Our subclasses do not see this failure. So this method is called with each `error` that ended a call
        of the user's function, and looks for the statement that raised it.
        """
        if not isinstance(getattr(error, "extendedresult", None), int):
            return
        for history in self._histories:
            if history.thread != get_ident() or history.has_failed(error):
                continue
            steps = [*history.steps]
            while steps and words_of(steps[-1][0])[0] == "ROLLBACK":
                steps.pop()  # apsw rolls back after a failed COMMIT.
            sql, _, caller, begun, ended = steps.pop() if steps else ("", True, None, 0.0, 0.0)
            if begun == ended and begun > self.costs.begun_s:
                history.steps.clear()
                history.steps.extend(steps)
                history.fail(error, sql, caller, begun)
                return

    def _earlier_writes(self, history: History, earlier: Sequence[TimedStep]) -> tuple[str, str]:
        """Return the lines of the call's last committed write, and of its last uncommitted write.

        The first line is "" if the failed statement ran in a transaction; otherwise the second line is "".
        Both lines are "" if the failed statement is no write. `earlier` has the connection's statements
        before the failed statement.
        """
        sql, was_open, *_ = history.steps[-1]
        if not is_write(sql):
            return "", ""
        if was_open:
            return "", self._last_write(history, transaction_steps(earlier))
        return self._last_write(history, earlier), ""

    def _last_write(self, history: History, earlier: Sequence[TimedStep]) -> str:
        refused = history.refused()
        for step in reversed(earlier):
            sql, _, at, begun, _ = step
            if begun < self.costs.begun_s or words_of(sql)[0] == "ROLLBACK":
                break
            if is_write(sql) and id(step) not in refused:
                return self.line_text(at) or short_sql(sql)
        return ""

    def _holder(self, failed: Any, name: str) -> tuple[str, str]:
        """Return `holder` and `held_since` of `FailureFacts`, for a statement that failed because of a lock.

        `failed` is the connection of the failed statement, and `name` is the name of its database.
        """
        for history in self._histories:
            connection = history.connection()
            if connection is failed or history.name != name:
                continue
            owner = THIS_THREAD if history.thread == get_ident() else "this process"
            for sql, _, at, *_ in history.open_blobs():
                if is_write(sql):
                    return owner, str(Transaction("written", sql, self.line_text(at)))
            if not is_in_transaction(connection):
                continue
            transaction = history.transaction()
            if owner == THIS_THREAD:
                state = _state_without_temporary(connection, history.steps, history.refused())
                transaction = transaction._replace(state=state)
            if transaction.wrote and not runs_statement(history):
                return owner, str(transaction)
        return "", ""

    def _open_query(self, failed: Any, name: str) -> str:
        """Return a query with unfetched rows on another connection, with its line, as text; "" if unknown."""
        for history in self._histories:
            connection = history.connection()
            if connection is failed or history.name != name or not is_open(connection):
                continue
            if not runs_statement(history) and has_open_statement(connection, history.is_shared) == "yes":
                for sql, _, line, *_ in (*history.open_blobs(), *reading_steps(connection)):
                    return self._with_line(sql, line)
        return ""

    def add_hold(self, hold: Hold, first: TimedStep) -> None:
        at = self.line_text(first[2])
        self.holds.add(hold, *((at, "") if first[0] == hold.sql else ("", at)))
        self.looks_up = True

    def time_elsewhere(self, history: History, begun_s: float, ended_s: float) -> float:
        """Return the time of this thread's statements on other connections, in s, between two times.

        For example, a transaction on one file waits for the write lock of another file.
        """
        return sum(
            step[4] - step[3]
            for other in self._histories
            if other is not history and other.thread == get_ident()
            for step in other.steps
            if begun_s <= step[3] and step[4] <= ended_s
        )

    def add_slow_write(self, history: History, step: TimedStep, cpu_s: float) -> None:
        """Record a write that used `cpu_s` seconds of CPU time, if it was long or scanned a table."""
        sql, _, at, *_ = step
        scan = _scan(history.connection(), sql)
        if scan or cpu_s >= LONG_HOLD_S:
            line = self.line_text(at)
            self.holds.add_slow(sql, line, "" if line else history.transaction().at, cpu_s, scan)
            self.looks_up = True

    def add_unfinished(self, step: TimedStep, seconds: float) -> None:
        sql, _, at, *_ = step
        self.holds.add(Hold(sql, seconds, seconds), self.line_text(at), work=UNFETCHED)
        self.looks_up = True

    def add_checkpoint(self, step: TimedStep) -> None:
        """Record that a checkpoint ran. Also record its duration, if it waited for LONG_HOLD_S or longer.

        A PASSIVE checkpoint does not wait, so its duration is not recorded.
        """
        sql, _, at, begun, ended = step
        self._has_checkpoints = True
        if ended - begun >= LONG_HOLD_S and not is_passive(sql):
            self.holds.add(Hold(sql, ended - begun, ended - begun), self.line_text(at), work=CHECKPOINT)

    def note_hook(self, at: str, frames: int) -> None:
        self._hooks[at] = max(frames, self._hooks.get(at, 0))

    def add_no_effect(self, sql: str, transaction: Transaction) -> None:
        line = self.lines.line(sys._getframe(2))
        count_kind(self._no_effect, (short_sql(sql), self.line_text(line), transaction))

    def add_idle_end(self, statement: str, frame: FrameType, write: TimedStep) -> None:
        """Record a commit or rollback without effect, because no transaction was open.

        `write` is the call's first write, which SQLite had committed at once in autocommit mode. If a library
        ends the transaction, only a rollback after an error is recorded.
        """
        at = self.line_text((frame.f_code, frame.f_lasti))
        if not at and statement == "ROLLBACK" and is_rollback_after_error(frame):
            at = self.line_text(self.user_line(frame))
        if at:
            sql, _, line, *_ = write
            count_kind(self._idle_ends, (statement, at, self._with_line(sql, line)))

    def add_schema_change(self, step: TimedStep) -> None:
        """Record a schema change outside of a transaction, if any call of the user's functions has begun."""
        sql, _, at, *_ = step
        if self.costs.begun_s:
            count_kind(self._schema_changes, (short_sql(sql), self.line_text(at)))

    def add_split(self, transaction: Transaction, way: str, at: Caller) -> None:
        """Record that the code at `at` has committed, too early, a transaction that other code began.

        `way` is BLOCK, SCRIPT or RELEASE. Commits outside of the measured time are not recorded, because code
        often creates tables by a script when it starts.
        """
        window = self.failures.window
        if window is None or not is_within(window) or not (transaction.is_explicit or transaction.wrote):
            return
        count_kind(self._splits, (self.line_text(at), way, transaction))
        self.looks_up = True

    def add_backup(self, at: Caller, restarts: int, seconds: float) -> None:
        self._backups.add(self.line_text(at), restarts, seconds)

    def add_closed(self, transaction: Transaction) -> None:
        self._has_news = True
        self._open_transactions.add_closed(transaction, self.costs.begun_s)

    def end_call(self, call: str, *, returned: bool = True) -> None:
        """Handle the end of a call of the function `call`. `returned` is False if the call raised.

        Most calls are only counted, because the examination takes time.
        """
        costs, now_s = self.costs, perf_counter()
        is_plain = not (self._has_news or costs.connections or costs.commits > 1)
        is_short = now_s < self._look_s and now_s - costs.begun_s < SLOW_READ_S
        if is_plain and is_short and not self._is_any_open():
            costs.calls[call] = costs.calls.get(call, 0) + 1
        else:
            self.check_left_open(call, returned=returned)
            costs.end(call)

    def _is_any_open(self) -> bool:
        try:
            for history in self._histories:
                connection: Any = history.connection()
                if connection.in_transaction or history.opened_by:
                    return True
        except Exception:  # The connection was closed, or no longer exists.
            return True
        return False

    def check_left_open(self, call: str, *, returned: bool = True) -> None:
        """Record this thread's open transactions and queries after a call of the function `call`.

        `returned` is False if the call raised an exception. The search for open queries runs at most every
        LOOK_S seconds.
        """
        self._has_news = False
        self._refused_writes.end_call(call, self._histories, returned=returned)
        if perf_counter() >= self._look_s:
            self._look_s = perf_counter() + LOOK_S
            self._open_queries.look(self._histories, self.line_text)
        begun_s = self.costs.begun_s
        self._slow_reads.end_call(self._histories, begun_s, self.line_text)
        self._lock_orders.end_call(call, self._histories, begun_s, self.line_text)
        if self._open_transactions.end_call(call, self._histories, begun_s, returned=returned):
            self.looks_up = True

    def records(self) -> list[PlainObservation]:
        """Return all observations of this process, with counts. Call it at the end of the work."""
        self._open_transactions.end_work(self._histories)
        for history in self._histories:
            if not is_in_transaction(history.connection()):
                history.end_transaction()
        unlocked: Iterator[PlainObservation] = (
            (LOST_LOCKS, kind, count, "", {"file": file, "at": at})
            for (kind, file, at), count in self._unlocked.items()
            if any(history.has_changed_rows for history in self._histories)
        )
        memory: Iterator[PlainObservation] = (
            (IN_MEMORY, name, count, "", {"at": at}) for (name, at), count in self._in_memory.items()
        )
        return [
            *self.costs.records(),
            *self.failures.records(),
            *self._open_transactions.left_open(),
            *self._split_records(),
            *self._schema_records(),
            *self._no_effect_records(),
            *self.overlaps.records(),
            *self.passed_rows.records(),
            *self.holds.records(sum(self.costs.calls.values())),
            *self._backups.records(),
            *self._other_sqlite(),
            *self._unclosed_records(),
            *self._hook_records(),
            *self._open_queries.records(),
            *self._slow_reads.records(),
            *self._lock_orders.records(),
            *self._open_transactions.not_committed(),
            *self._refused_writes.records(),
            *unlocked,
            *memory,
        ]

    def _other_sqlite(self) -> Iterator[PlainObservation]:
        if self._libraries == {"apsw"}:
            yield OTHER_SQLITE, "apsw", 1, import_module("apsw").sqlite_lib_version(), {}

    def _unclosed_records(self) -> Iterator[PlainObservation]:
        if len(self._histories) < MIN_UNCLOSED:
            return
        gc.collect()  # A connection in a cycle of objects is no leak.
        calls: dict[tuple[str, int, str], list[float]] = {}
        for history in self._histories:
            if is_open(history.connection()):
                kind = history.name, history.thread, self.line_text(history.opened_at)
                calls.setdefault(kind, []).append(history.opened_in_s)
        for (_, _, at), begun_s in calls.items():
            if len({*begun_s}) >= MIN_UNCLOSED:
                yield UNCLOSED, at, 1, "", {"open": str(len(begun_s))}

    def _hook_records(self) -> Iterator[PlainObservation]:
        for at, frames in self._hooks.items():
            if frames >= MIN_HOOK_FRAMES and not self._has_checkpoints:
                yield WAL_HOOK, at, 1, "", {"frames": str(frames)}

    def _no_effect_records(self) -> Iterator[PlainObservation]:
        for (sql, at, transaction), count in self._no_effect.items():
            traits = {"at": at, "began": transaction.began, "began_at": transaction.at}
            yield NO_EFFECT, sql, count, "", traits
        for (sql, at, write), count in self._idle_ends.items():
            yield NO_EFFECT, sql, count, "", {"at": at, "began": "", "began_at": "", "write": write}

    def _schema_records(self) -> Iterator[PlainObservation]:
        for (sql, at), count in self._schema_changes.items():
            yield SCHEMA_CHANGE, sql, count, "", {"at": at}

    def _split_records(self) -> Iterator[PlainObservation]:
        for (at, way, transaction), count in self._splits.items():
            yield SPLIT, at, count, "", {**transaction._asdict(), "way": way}


def _library(frame: FrameType | None) -> str:
    while frame:
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module in LIBRARIES:
            return str(module)
        frame = frame.f_back
    return ""


def _state_without_temporary(connection: Any, steps: Sequence[TimedStep], refused: set[int]) -> str:
    """Return the state of a transaction ("none", "read" or "written"), without writes of temporary tables.

    A write of a temporary table takes no lock of the file, but an INSERT ... SELECT may read the file.
    `steps` has the connection's statements, and `refused` the `id()` of each step that got no lock.
    """
    temporary = [step for step in transaction_steps(steps) if writes_temporary(connection, step[0])]
    state, _, _ = transaction_of(steps, refused | {id(step) for step in temporary})
    reads = any(_SELECTS.search(step[0]) for step in temporary)
    return "read" if state == "none" and reads else state


def _is_rolled_back(code: int, history: History) -> bool:
    """Return whether a violated constraint has ended the transaction; False if another thread may have."""
    is_over = code & 0xFF == CONSTRAINT and not is_in_transaction(history.connection())
    return is_over and not history.is_shared


def _slow_scan(connection: Any, steps: Sequence[TimedStep], sql: str, refused: set[int]) -> str:
    """Return the table scan and duration of an earlier, slow run of a failed write; "" if there is none.

    An example is "SCAN t, 20 ms". A run is slow if it took SLOW_SCAN_S or longer. `sql` is the write, and
    `steps` has the statements before it.
    """
    times_s = [step[4] - step[3] for step in steps if step[0] == sql and id(step) not in refused]
    if max(times_s, default=0.0) < SLOW_SCAN_S:
        return ""
    scan = _scan(connection, sql)
    return f"{scan}, {max(times_s) * 1000:.0f} ms" if scan else ""


def _scan(connection: Any, sql: str) -> str:
    with suppress(Exception):  # An error of sqlite3 or apsw.
        plan = rows(connection, f"EXPLAIN QUERY PLAN {sql}", [""] * sql.count("?"))
        steps = [str(row[-1]) for row in plan]
        # The rows of a subquery, such as a recursive one, are in no table.
        subqueries = {f"SCAN {step.split()[-1]}" for step in steps if step.startswith(_SUBQUERIES)}
        return next((step for step in steps if _TABLE_SCAN.match(step) and step not in subqueries), "")
    return ""


def _lock_order(connection: Any, statements: Sequence[str]) -> str:
    """Return the files that a transaction locks, in order, separated by commas.

    The last of the transaction's `statements` has failed. The result is empty if the order is unknown, or the
    transaction locks a single file. It is also empty if the transaction had already locked the file that the
    failed statement writes.
    """
    files = attached_files(connection)
    if len(files) < 2:
        return ""
    if statement_kind(statements[-1]) == "begin":
        return ", ".join(files.values())
    schemas = [written_schema(connection, sql, [*files]) for sql in statements if is_write(sql)]
    order = [files[schema] for schema in dict.fromkeys(schemas) if schema]
    return ", ".join(order) if len(order) > 1 and schemas[-1] not in schemas[:-1] else ""
