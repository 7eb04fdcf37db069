"""History of a connection: its last statements (steps), and the state of its transaction.

The history shows what led to a failure, and reports transactions that held the write lock for MIN_HOLD_S or
longer. A step is a statement that has run, with its position in the user's code, begin and end.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections import deque
from collections.abc import Sequence, Set
from itertools import pairwise
from threading import get_ident
from time import perf_counter, thread_time
from types import FrameType
from typing import Any, NamedTuple, Protocol
from weakref import ref

from sqlstress.recording import BLOCK, MIN_HOLD_S, RELEASE, SLOW_WRITE_S
from sqlstress.recording.call_costs import CallCosts, Hold, hold_of
from sqlstress.recording.connections import cursor_steps, has_open_write, is_in_transaction, is_open, pragma
from sqlstress.recording.failures import (
    IMPLICIT_BEGIN,
    MAX_HISTORY,
    Caller,
    TimedStep,
    is_busy,
    is_checkpoint,
    is_write,
    short_sql,
    statement_kind,
    transaction_of,
    transaction_steps,
    words_of,
)
from sqlstress.recording.overlaps import Overlaps, OverlapWatch
from sqlstress.recording.passed_rows import PassedRows
from sqlstress.sqlite_codes import BUSY, CONSTRAINT

_SILENT = re.compile(r"\s*pragma\s+(?:\w+\.)?(foreign_keys|journal_mode)\s*[=(]\s*['\"]?(\w+)", re.IGNORECASE)
"""Pattern of PRAGMAs that SQLite silently ignores in a transaction."""
_CHANGES_SCHEMA = re.compile(r"\s*(create|drop|alter)\s+(?!temp)", re.IGNORECASE)
_ROW_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")
_ON = ("1", "on", "yes", "true")
MAX_ORDINARY, MAX_ORDINARY_CHARS = 1000, 1000
"""Maximum number, and maximum length in characters, of the SQL texts in `_ordinary`."""
_ordinary: set[str] = set()
"""SQL of ordinary statements (reads, writes, BEGIN, COMMIT) that have run, shared by all connections.

If such a statement succeeds again, `History.end` is not called, to save time.
"""
_returning: set[str] = set()
"""SQL of writes with RETURNING that have run, shared by all connections."""
_CLOSING = ("close", "__exit__", "__aexit__")
"""Functions by which a library, such as SQLAlchemy, closes a connection or session."""
MAX_DEPTH = 20
"""Maximum number of callers of a rollback to search for a library's `close`."""


class Transaction(NamedTuple):
    """State and beginning of an open transaction."""

    state: str
    """"written" if a statement wrote, "read" if statements only read, else "none"; empty if unknown."""
    began: str
    """Statement that began the transaction, such as "BEGIN IMMEDIATE"; empty if unknown."""
    at: str
    """Line of the user's code that began the transaction; empty if unknown."""

    @property
    def wrote(self) -> bool:
        return self.state == "written"

    @property
    def is_explicit(self) -> bool:
        """Whether a statement, such as BEGIN, began the transaction."""
        return self.began not in ("", IMPLICIT_BEGIN)

    def __str__(self) -> str:
        return f"{self.began} ({self.at})" if self.at else self.began


class FactCollector(Protocol):
    """Collector of facts on all connections; `failed_statements.FailedStatements` implements it."""

    costs: CallCosts
    overlaps: Overlaps
    passed_rows: PassedRows
    used_files: set[str]
    """Names of the databases on which statements other than PRAGMA ran."""

    looks_up: bool
    """Whether to search for the user's line, by `user_line`, when a transaction begins."""

    def user_line(self, frame: FrameType) -> Caller:
        """Return the user's line that led to `frame`; UNKNOWN_CALLER if there is none."""

    def line_text(self, at: Caller | None) -> str:
        """Return a position in code as text, such as "bank.py:27"; empty if unknown or not the user's."""

    def add(self, history: History, code: int, message: str, waited_s: float) -> None:
        """Record the failure of a connection's last statement, with its SQLite result code and duration."""

    def add_hold(self, hold: Hold, first: TimedStep) -> None:
        """Record a long hold of the write lock. `first` is the first statement of the transaction."""

    def time_elsewhere(self, history: History, begun_s: float, ended_s: float) -> float:
        """Return the time of this thread's statements on other connections, in s, between two times."""

    def add_slow_write(self, history: History, step: TimedStep, cpu_s: float) -> None:
        """Record a write that used `cpu_s` seconds of CPU time while it held the write lock."""

    def add_checkpoint(self, step: TimedStep) -> None:
        """Record a checkpoint, which may have waited for other connections."""

    def note_hook(self, at: str, frames: int) -> None:
        """Record that SQLite called the WAL hook set at the line `at`, with `frames` frames in the WAL."""

    def add_unfinished(self, step: TimedStep, seconds: float) -> None:
        """Record a write whose rows were not all fetched, so that it kept the write lock for `seconds`."""

    def add_no_effect(self, sql: str, transaction: Transaction) -> None:
        """Record a PRAGMA that had no effect because `transaction` was open."""

    def add_idle_end(self, statement: str, frame: FrameType, write: TimedStep) -> None:
        """Record that `frame` called a commit or rollback without effect, after the write `write`."""

    def add_schema_change(self, step: TimedStep) -> None:
        """Record a statement outside of a transaction that changed the schema."""

    def add_split(self, transaction: Transaction, way: str, at: Caller) -> None:
        """Record that code at `at` committed a transaction of other code; `way` is such as SCRIPT."""

    def add_closed(self, transaction: Transaction) -> None:
        """Record that a connection was closed in `transaction`, which had changed rows."""

    def add_backup(self, at: Caller, restarts: int, seconds: float) -> None:
        """Record a backup in several steps that began again `restarts` times, and took `seconds`."""

    def watch(self, connection: Any) -> History:
        """Return the history of a new connection."""


class History:
    """Recorder of the last statements of a connection, and of the state of its transaction.

    A transaction is left open if it is open when a call returns.
    """

    def __init__(self, recorder: FactCollector, connection: Any) -> None:
        self.recorder = recorder
        self._costs = recorder.costs
        self.connection = ref(connection)
        self.name = ""
        """Name with which the database was opened."""
        self.opened_at: Caller | None = None
        """Line of the user's code that opened the connection; None if unknown."""
        self.opened_in_s = recorder.costs.begun_s
        """Start time of the call that opened the connection, as an identifier of the call."""
        self.steps: deque[TimedStep] = deque(maxlen=MAX_HISTORY)
        """Last statements that have ended, in order."""
        self.add = self.steps.append
        self.busy_handler = ""
        """Line that set the connection's busy handler; empty if none was set."""
        self.thread = 0
        """Id of the thread that ran the last statement; 0 before the first."""
        self.is_shared = False
        """Whether several threads have used the connection."""
        self._uses: OverlapWatch | None = None
        """Watch for overlapping transactions of threads; None until several threads use the connection."""
        self.opened_by = ""
        """Name of the user's function that left a transaction open; empty if no function did."""
        self.left_open = Transaction("", "", "")
        """State of the transaction when the call that left it open returned."""
        self.open_calls = 0
        """Number of calls that returned while the transaction was open."""
        self.open_wrote = False
        """Whether the transaction that was left open has written."""
        self.statement_open_s: float | None = None
        """Time of `perf_counter` when unfetched rows were first seen; None if there are none."""
        self.open_queries: tuple[TimedStep, ...] = ()
        """Queries that may have unfetched rows; empty until they are searched for."""
        self.ordinary: Set[str] = frozenset()
        """Statements for which `end` need not be called; empty while only PRAGMAs have run."""
        self._is_sqlite3 = isinstance(connection, sqlite3.Connection)
        self._was_long = False
        """Whether a transaction took SLOW_WRITE_S. Until then, CPU time is not read, as that is slow."""
        self._began_s = self._began_cpu_s = 0.0
        """Start of the last statement outside of a transaction, by `perf_counter` and `thread_time`."""
        self._changed_rows = 0
        """Number of rows that the connection had changed when commits were last counted."""
        self._failed: deque[tuple[int, TimedStep]] = deque(maxlen=MAX_HISTORY)
        """Last failed statements, each with its SQLite result code."""
        self.blocks: list[bool] = []
        """For each open block `with connection`, outermost first: whether a transaction was open before."""
        self._inner_end: tuple[Transaction, str, Caller] | None = None
        """Arguments of `add_split` for an inner block that has committed; None if there was no such block."""
        self._blobs: deque[tuple[ref[Any], TimedStep]] = deque(maxlen=MAX_HISTORY)
        """Last blob handles, each with its opening as a statement."""
        self._unfinished: TimedStep | None = None
        """Last write that `_note_unfinished` has reported; None before the first."""
        self._last_error = 0
        """`id()` of the last exception; 0 before the first. A reference would keep its frames alive."""

    def begin(self, connection: Any, begun: float) -> Caller | None:
        """Handle the beginning of a statement. `begun` is a time of `perf_counter`.

        Return the position in Python code that runs the statement; None if a transaction is open.
        """
        if self.is_shared or get_ident() != self.thread:
            self._note_thread(sys._getframe(1), connection)
        if connection.in_transaction:
            return None
        # The last transaction cannot have been long if it began less than SLOW_WRITE_S ago.
        if begun - self._began_s >= SLOW_WRITE_S:
            self.end_transaction()
            if _returning:
                self._note_unfinished(begun)
        self._began_s = begun
        if self._was_long:
            self._began_cpu_s = thread_time()
        changed_rows = connection.total_changes if self._is_sqlite3 else connection.total_changes()
        if changed_rows != self._changed_rows:  # The last transaction has changed rows, so it counts.
            self._costs.commits += 1
            self._changed_rows = changed_rows
        frame = sys._getframe(2)
        return self.recorder.user_line(frame) if self.recorder.looks_up else (frame.f_code, frame.f_lasti)

    def _note_thread(self, frame: FrameType, connection: Any) -> None:
        """Handle a statement of a new thread, or on a connection that several threads use.

        `frame` is that of our method that runs the statement, whose local variable `statement` has the SQL.
        """
        thread = get_ident()
        if thread != self.thread:
            self.is_shared = self.thread != 0
            self.thread = thread
        if self.is_shared:
            self._uses = self._uses or self.recorder.overlaps.new_watch()
            self._uses.note(frame, frame.f_locals.get("statement"), in_transaction=connection.in_transaction)

    def end(self, step: TimedStep, cursor: Any, parameters: Any = ()) -> None:
        """Examine a statement that succeeded, such as a PRAGMA that SQLite may have ignored.

        Do not call this method if `self.ordinary` has the SQL: an earlier run has been examined, and another
        examination would find nothing new. `parameters` are the values for the statement's placeholders.
        """
        sql, was_open, _, begun, ended = step
        word, _ = words_of(sql)
        if self.ordinary is not _ordinary:  # The connection is new, and has run only PRAGMAs before.
            is_counted = self.name not in self._costs.created
            self._costs.opening_s += is_counted * (ended - begun)
            if word != "PRAGMA":
                self._costs.first_s += is_counted * (ended - begun)
                self.recorder.used_files.add(self.name)
                self.ordinary = _ordinary
        if word == "PRAGMA":
            if was_open:
                self._check_pragma(sql)
            elif is_checkpoint(sql):
                self._note_checkpoint(cursor, step)
        elif word in ("CREATE", "DROP", "ALTER"):
            is_temporary = not _CHANGES_SCHEMA.match(sql)
            if not (was_open or is_temporary or is_in_transaction(self.connection())):
                self.recorder.add_schema_change(step)
        elif len(sql) <= MAX_ORDINARY_CHARS and not self._is_followed(sql, parameters, sys._getframe(1)):
            if len(_ordinary) >= MAX_ORDINARY:
                _ordinary.clear()
                _returning.clear()
            _ordinary.add(sql)
            if word in _ROW_WRITES and "returning" in sql.lower():
                _returning.add(sql)

    def _is_followed(self, sql: str, parameters: Any, frame: FrameType) -> bool:
        """Examine a query for new rows, or an INSERT. Return whether its next runs must be examined, too."""
        return self.recorder.passed_rows.note(
            sql,
            parameters,
            self.connection(),
            lambda: self.recorder.line_text(self.recorder.user_line(frame)),
            _ordinary,
        )

    def _check_pragma(self, sql: str) -> None:
        connection, setting = self.connection(), _SILENT.match(sql)
        if not setting or not is_in_transaction(connection):
            return
        name, value = setting[1].lower(), setting[2].lower()
        wanted = value if name == "journal_mode" else str(int(value in _ON))
        if pragma(connection, name) not in (wanted, ""):
            self.recorder.add_no_effect(sql, self.transaction())

    def fail(self, error: Exception, sql: Any, caller: Caller | None, begun: float) -> None:
        """Record a failed statement. `begun` is its start, by `perf_counter`."""
        step: TimedStep = (sql, caller is None, caller, begun, perf_counter())
        code = getattr(error, "sqlite_errorcode", getattr(error, "extendedresult", None))
        self._last_error = id(error)
        if isinstance(code, int):
            self.add(step)
            self._failed.append((code, step))
            self.recorder.add(self, code, str(error), step[4] - begun)
        elif isinstance(sql, str):  # Neither sqlite3 nor apsw runs a statement that is not a text.
            self.add(step)

    def has_failed(self, error: Exception) -> bool:
        """Return whether `error` is the last exception that a statement of the connection raised."""
        return self._last_error == id(error)

    def end_block(self, connection: Any, frame: FrameType, *, is_error: bool) -> None:
        """Handle the end of a block `with connection`; `is_error` is whether an exception ends the block.

        If blocks are nested, the end of the inner block commits the transaction of the outer block. This is
        recorded if the outer block later writes or fails, because a ROLLBACK cannot undo all its work.
        """
        began_before = self.blocks.pop() if self.blocks else False
        if self.is_shared:
            return
        if self.blocks and began_before and not is_error:
            self._inner_end = self.transaction(), BLOCK, self.recorder.user_line(frame)
        elif not self.blocks and self._inner_end:
            if is_error or connection.in_transaction:
                self.recorder.add_split(*self._inner_end)
            self._inner_end = None

    def note_close(self, connection: Any) -> None:
        """Record that the connection is about to be closed, if the close undoes changes of rows.

        A close after an error is not recorded, because it may be meant as the rollback.
        """
        if not is_in_transaction(connection) or sys.exc_info()[0] is not None:
            return
        in_transaction = {id(step) for step in transaction_steps(self.steps)}
        is_failed = any(id(step) in in_transaction for _, step in self._failed)
        if connection.total_changes != self._changed_rows and not is_failed:
            self.recorder.add_closed(self.transaction())

    def note_rollback(self, connection: Any) -> None:
        """Record a rollback by a library that closes a connection, if the rollback undoes changes of rows."""
        frame: FrameType | None = sys._getframe(2)
        # If the user's code itself rolls back, the loop meets a library's `rollback` before any `close`.
        for _ in range(MAX_DEPTH):
            if not frame or frame.f_code.co_name == "rollback":
                return
            if frame.f_code.co_name in _CLOSING:
                self.note_close(connection)
                return
            frame = frame.f_back

    def note_idle_end(self, statement: str, frame: FrameType) -> None:
        """Record a commit or rollback without an open transaction, after writes in autocommit mode.

        A rollback is recorded if the current call has written before, and a commit if the call has written
        at least twice. `statement` is "COMMIT" or "ROLLBACK", and `frame` the frame of its caller.
        """
        if self.is_shared:  # Another thread may have ended the transaction.
            return
        if statement == "ROLLBACK" and self.note_released_savepoint(frame):
            return
        failed = {id(step) for _, step in self._failed}
        writes, was_open_after = [], False
        for step in reversed(self.steps):
            sql, was_open, _, begun, _ = step
            if begun < self._costs.begun_s or words_of(sql)[0] in ("COMMIT", "END", "ROLLBACK"):
                break
            # If the next statement found a transaction open, this write began it, so the write was not in
            # autocommit mode. As the transaction ended without COMMIT, `executescript` ended it.
            is_alone = not (was_open or was_open_after)
            if is_alone and words_of(sql)[0] in _ROW_WRITES and id(step) not in failed:
                writes.append(step)
            was_open_after = was_open
        if len(writes) >= (1 if statement == "ROLLBACK" else 2):
            self.recorder.add_idle_end(statement, frame, writes[-1])

    def note_released_savepoint(self, frame: FrameType) -> bool:
        """Record that a rollback came after a RELEASE that had committed; return whether there was a RELEASE.

        `frame` is that of the rollback's caller.
        """
        savepoint = self._released_savepoint()
        if not savepoint or self.is_shared:
            return False
        state, began, line = transaction_of(savepoint, self.refused())
        if state == "written":
            transaction = Transaction(state, began, self.recorder.line_text(line))
            self.recorder.add_split(transaction, RELEASE, self.recorder.user_line(frame))
        return True

    def _released_savepoint(self) -> Sequence[TimedStep]:
        """Return the steps of a transaction that SAVEPOINT began and RELEASE committed; empty otherwise.

        It is the call's last transaction. After an error, it may also be an earlier transaction: a library
        that rolls back its transaction wants to undo all that came after its last BEGIN or COMMIT.
        """
        steps = [step for step in self.steps if step[3] >= self._costs.begun_s]
        while steps:
            if not steps[-1][1] and statement_kind(steps[-1][0]) == "read":
                steps.pop()  # Queries after the RELEASE do not count.
                continue
            transaction = transaction_steps(steps)
            first, last = (words_of(transaction[place][0])[0] for place in (0, -1))
            if (first, last) == ("SAVEPOINT", "RELEASE"):
                return transaction
            if first == "BEGIN" or last in ("COMMIT", "END") or sys.exc_info()[1] is None:
                break
            del steps[-len(transaction) :]
        return []

    def end_transaction(self) -> None:
        """Report a long hold of the write lock, or a slow write, in the last transaction."""
        if self.is_shared or not self._last_was_long():
            return
        steps = transaction_steps(self.steps)
        if self._was_long:
            self._report_slow_write(steps)
        self._was_long = True
        if steps[-1][1]:
            hold = hold_of(steps, self.refused())
            if hold and hold.seconds >= MIN_HOLD_S:
                elsewhere_s = self.recorder.time_elsewhere(self, steps[0][3], steps[-1][4])
                outside_s = max(0.0, hold.outside_s - elsewhere_s)
                self.recorder.add_hold(hold._replace(outside_s=outside_s), steps[0])
        self._began_s = steps[-1][4]

    def _note_unfinished(self, now_s: float) -> None:
        """Report a write with RETURNING that still keeps the write lock at the current time `now_s`.

        Not all its rows have been fetched: SQLite commits such a write only after the last row.
        """
        connection = self.connection()
        steps = [step for step in self.steps if step[0] in _returning and not step[1]]
        if not steps or steps[-1] is self._unfinished or now_s - steps[-1][4] < MIN_HOLD_S:
            return
        if self.is_shared or self.open_blobs() or not has_open_write(connection):
            return
        if len({step[0] for step in steps}) > 1:  # Only the cursors show which of the writes is open.
            steps = [step for step in cursor_steps(connection) if step[0] in _returning]
        self._unfinished = steps[-1] if len({step[0] for step in steps}) == 1 else None
        if self._unfinished:
            self.recorder.add_unfinished(self._unfinished, now_s - self._unfinished[4])

    def _report_slow_write(self, steps: Sequence[TimedStep]) -> None:
        """Report the longest write of a transaction if it used SLOW_WRITE_S of CPU time or more.

        Unlike the duration, CPU time excludes waits for the lock. Time outside of statements does not count.
        """
        refused = self.refused()
        writes = [step for step in steps if is_write(step[0]) and id(step) not in refused]
        slow = max(writes, key=lambda step: step[4] - step[3], default=None)
        if not slow or slow[4] - slow[3] < SLOW_WRITE_S or get_ident() != self.thread:
            return
        outside_s = perf_counter() - steps[-1][4] + sum(then[3] - step[4] for step, then in pairwise(steps))
        cpu_s = thread_time() - self._began_cpu_s - outside_s
        if cpu_s >= SLOW_WRITE_S:
            self.recorder.add_slow_write(self, slow, cpu_s)

    def _last_was_long(self) -> bool:
        return bool(self.steps) and self.steps[-1][4] - self._began_s >= SLOW_WRITE_S

    def note_blob(self, blob: Any, step: TimedStep, frame: FrameType) -> None:
        """Record a new blob handle, with its opening as a statement. `frame` is the caller's frame."""
        statement, was_open, _, begun, ended = step
        self._blobs.append((ref(blob), (statement, was_open, self.recorder.user_line(frame), begun, ended)))
        if statement not in self.ordinary:
            self.end(step, None)

    def open_blobs(self) -> list[TimedStep]:
        """Return the openings of this thread's blob handles that are still open."""
        return [step for blob, step in self._blobs if _is_open_blob(blob())]

    def count_row_commits(self) -> None:
        """Count a commit for each row that `executemany` has just changed in autocommit mode."""
        connection: Any = self.connection()
        changed_rows = connection.total_changes if self._is_sqlite3 else connection.total_changes()
        self._costs.commits += changed_rows - self._changed_rows
        self._changed_rows = changed_rows

    def _note_checkpoint(self, cursor: Any, step: TimedStep) -> None:
        from sqlstress.recording.checkpoint_answers import rows_ahead

        if is_busy(rows := rows_ahead(cursor)):
            self.recorder.add(self, BUSY, f"its answer was {rows[0]}", step[4] - step[3])
        self.recorder.add_checkpoint(step)

    def transaction(self) -> Transaction:
        """Return the state of the last statement's transaction."""
        state, began, line = transaction_of(self.steps, self.refused())
        return Transaction(state, began, self.recorder.line_text(line))

    @property
    def has_changed_rows(self) -> bool:
        """Whether the connection had changed rows when it last ran a statement outside of a transaction."""
        return self._changed_rows > 0

    def is_uncommitted(self) -> bool:
        """Return whether the last transaction is open, or the connection was closed in it."""
        connection = self.connection()
        if is_open(connection):
            return is_in_transaction(connection)
        last = statement_kind(self.steps[-1][0]) if self.steps else "commit"
        return last != "commit" and words_of(self.steps[-1][0])[0] not in ("ROLLBACK", "RELEASE")

    def last_end(self) -> str:
        """Return "commit" or "rollback", by which the last transaction ended; empty if unknown."""
        released = False
        for sql, *_ in reversed(self.steps):
            word, second = words_of(sql)
            if statement_kind(sql) == "commit":
                return "commit"
            if word == "ROLLBACK" and (released or second != "TO"):
                return "rollback"
            if released:
                return "commit"
            released = word == "RELEASE"  # RELEASE commits if SAVEPOINT began the transaction.
        return "commit" if released else ""

    def _divided(self, step: TimedStep) -> tuple[list[TimedStep], list[TimedStep]]:
        """Return the statements before `step`, and those after it (none if it is no longer kept)."""
        steps = [*self.steps]
        index = next((number for number, other in enumerate(steps) if other is step), len(steps))
        return steps[:index], steps[index + 1 :]

    def end_after(self, step: TimedStep) -> str:
        """Return "commit" or "rollback", by which the transaction of `step` ended; empty if unknown.

        A rollback to a savepoint counts as "rollback".
        """
        for sql, *_ in self._divided(step)[1]:
            if statement_kind(sql) == "commit":
                return "commit"
            if words_of(sql)[0] == "ROLLBACK":
                return "rollback"
        return ""

    def lost_writes(self, step: TimedStep) -> bool:
        """Return whether a ROLLBACK after `step`, a refused write, undid writes that were not made again.

        For example, the undone transaction had 3 writes, and the call later committed 2 writes. A rollback
        to a savepoint does not count.
        """
        before, after = self._divided(step)
        undone = sum(is_write(sql) for sql, *_ in transaction_steps([*before, step])[:-1])
        made = 0
        is_undone = False
        for sql, *_ in after:
            if words_of(sql)[0] == "ROLLBACK":
                if is_undone or words_of(sql)[1] == "TO":
                    return False
                is_undone = True
            elif statement_kind(sql) == "commit":
                return is_undone and 0 < made < undone
            else:
                made += is_write(sql)
        return False

    def writes_after(self, step: TimedStep) -> list[str]:
        """Return the SQL of the writes that followed `step`, up to the next COMMIT or ROLLBACK."""
        writes = []
        for sql, *_ in self._divided(step)[1]:
            if statement_kind(sql) == "commit" or words_of(sql)[0] == "ROLLBACK":
                break
            if is_write(sql):
                writes.append(sql)
        return writes

    def write_repeated_after(self, step: TimedStep) -> str:
        """Return the SQL of a committed write that the call repeated after `step`, a refused BEGIN; or "".

        The call first committed a transaction. After `step` it committed the same writes again, and then
        other writes, for which the refused BEGIN was meant.
        """
        transactions: list[list[TimedStep]] = []
        refused = self.refused()
        for other in self.steps:
            if other[3] >= self._costs.begun_s and id(other) not in refused:
                if not (other[1] and transactions):
                    transactions.append([])
                transactions[-1].append(other)
        committed = [steps for steps in transactions if words_of(steps[-1][0])[0] != "ROLLBACK"]
        writes = [(steps[0][3], [sql for sql, *_ in steps if is_write(sql)]) for steps in committed]
        before = [texts for begun, texts in writes if texts and begun < step[3]]
        after = [texts for begun, texts in writes if texts and begun > step[3]]
        is_repeated = (
            before and after and before[-1] == after[0] and any(texts != after[0] for texts in after)
        )
        return before[-1][0] if is_repeated else ""

    def has_committed_since(self, time_s: float) -> bool:
        """Return whether a commit, or a write in autocommit mode, succeeded after `time_s`.

        `time_s` is a time of `perf_counter`, in seconds.
        """
        failed = {id(step) for _, step in self._failed}
        for step in reversed(self.steps):
            sql, was_open, _, begun, _ = step
            if begun < time_s:
                break
            ends = statement_kind(sql) == "commit" or words_of(sql)[0] == "RELEASE"
            if (ends or (is_write(sql) and not was_open)) and id(step) not in failed:
                return True
        return False

    def has_run_since(self, sql: str, time_s: float) -> bool:
        """Return whether a statement with the shortened text `sql` succeeded after `time_s`.

        `time_s` is a time of `perf_counter`, in seconds.
        """
        failed = {id(step) for _, step in self._failed}
        return any(
            step[3] >= time_s and short_sql(step[0]) == sql and id(step) not in failed for step in self.steps
        )

    def refused(self) -> set[int]:
        """Return the `id()` of each of the last statements that failed, perhaps because it got no lock.

        Statements that violated a constraint had the lock, so they are left out.
        """
        return {id(step) for code, step in self._failed if code & 0xFF != CONSTRAINT}

    def failed_commit(self) -> int:
        """Return the result code of the transaction's last failed COMMIT; 0 if none failed."""
        codes = {id(step): code for code, step in self._failed if statement_kind(step[0]) == "commit"}
        steps = transaction_steps(self.steps)
        return next((codes[id(step)] for step in reversed(steps) if id(step) in codes), 0)

    def is_repeated(self) -> bool:
        """Return whether the last statement had failed before, with SQLITE_BUSY, in this transaction."""
        *earlier, (sql, *_) = transaction_steps(self.steps)
        failed = {id(step) for code, step in self._failed if code & 0xFF == BUSY}
        return any(step[0] == sql and id(step) in failed for step in earlier)


def _is_open_blob(blob: Any) -> bool:
    try:
        return blob is not None and blob.tell() >= 0
    except Exception:  # The blob handle or its connection was closed.
        return False
