"""Last statements of a connection: the facts of a failure that follow from the statements before it."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections import deque
from threading import get_ident
from time import perf_counter
from types import FrameType
from typing import Any, NamedTuple, Protocol
from weakref import ref

from sqlstress.sqlite_codes import BUSY, CONSTRAINT
from sqlstress.user_work.call_costs import LONG_HOLD_S, CallCosts, Hold, hold_of
from sqlstress.user_work.connections import is_in_transaction, is_open, pragma
from sqlstress.user_work.failures import (
    IMPLICIT_BEGIN,
    MAX_HISTORY,
    Caller,
    TimedStep,
    is_busy,
    is_checkpoint,
    statement_kind,
    transaction_of,
    transaction_steps,
    words_of,
)
from sqlstress.user_work.overlaps import Overlaps, OverlapWatch

_SILENT = re.compile(r"\s*pragma\s+(?:\w+\.)?(foreign_keys|journal_mode)\s*[=(]\s*['\"]?(\w+)", re.IGNORECASE)
"""Pattern of the PRAGMAs that SQLite ignores in a transaction, without an error."""
_ON = ("1", "on", "yes", "true")


class Transaction(NamedTuple):
    """State of an open transaction."""

    state: str
    """"none", "read" or "written"; empty if unknown."""
    began: str
    """Statement that began it, such as "BEGIN IMMEDIATE"; empty if unknown."""
    at: str
    """Line of the user's code that began it; empty if unknown."""

    @property
    def wrote(self) -> bool:
        return self.state == "written"

    @property
    def is_explicit(self) -> bool:
        """Whether the user's code began the transaction by a statement, such as BEGIN."""
        return self.began not in ("", IMPLICIT_BEGIN)

    def __str__(self) -> str:
        """Return the statement that began the transaction, with its line if known."""
        return f"{self.began} ({self.at})" if self.at else self.began


class FactCollector(Protocol):
    """Collector of the facts of all connections; `failed_statements.FailedStatements` is one."""

    costs: CallCosts
    overlaps: Overlaps
    used_files: set[str]
    """Names of the databases on which statements other than PRAGMA have run."""

    def caller(self, frame: FrameType) -> Caller:
        """Return the position in `frame` that calls the library, or the user's line if it is needed."""

    def line_text(self, at: Caller | None) -> str:
        """Return a line as text, such as "bank.py:27"; empty if unknown, or not in the user's code."""

    def add(self, history: History, code: int, message: str, waited_s: float) -> None:
        """Record the failure of the last statement of a connection, with its SQLite result code."""

    def add_hold(self, hold: Hold, first: TimedStep) -> None:
        """Record a long hold of the write lock. `first` is the first statement of its transaction."""

    def add_no_effect(self, sql: str, transaction: Transaction) -> None:
        """Record a PRAGMA that had no effect because it ran in this transaction."""

    def add_split(self, transaction: Transaction) -> None:
        """Record that executescript has committed this open transaction."""

    def watch(self, connection: Any) -> History:
        """Return a new history for a connection that was just made."""


class History:
    """Last statements of a connection, and the state of its transaction."""

    def __init__(self, recorder: FactCollector, connection: Any) -> None:
        self.recorder = recorder
        self.connection = ref(connection)
        self.name = ""
        """Name under which the database was opened."""
        self.steps: deque[TimedStep] = deque(maxlen=MAX_HISTORY)
        """Last statements, each added after its end."""
        self.add = self.steps.append
        self.thread = 0
        """Thread that ran the last statement; 0 if there is none."""
        self.is_shared = False
        """Whether several threads have used the connection."""
        self._uses: OverlapWatch | None = None
        """Watch of the threads' transactions; None until the connection is shared."""
        self.opened_by = ""
        """Name of the user's function that left the transaction open first; empty if none is open."""
        self.left_open = Transaction("", "", "")
        """That transaction, as it was when this function returned."""
        self.open_calls = 0
        """Number of calls that have returned while this transaction was open."""
        self.open_wrote = False
        """Whether this transaction has written."""
        self.statement_open_s: float | None = None
        """Time of `perf_counter` when an open statement was first seen, in seconds; None if none is open."""
        self.open_queries: tuple[TimedStep, ...] = ()
        """Queries that may be the open statement; empty until they are looked up."""
        self.is_new = True
        """Whether only PRAGMAs have run: the next statement parses the schema."""
        self._is_sqlite3 = isinstance(connection, sqlite3.Connection)
        self._began_s = 0.0
        """Time of `perf_counter` when the last statement outside of a transaction began, in seconds."""
        self._changed_rows = 0
        self._failed: deque[tuple[int, TimedStep]] = deque(maxlen=MAX_HISTORY)
        """Last statements that failed, with their result codes."""

    def begin(self, connection: Any, begun: float) -> Caller | None:
        """Handle the beginning of a statement at `begun`, a time of `perf_counter`.

        Return the caller of the library; None if a transaction is open.
        """
        thread = get_ident()
        if thread != self.thread:
            self.is_shared = self.is_shared or self.thread != 0
            self.thread = thread
        if self.is_shared:
            self._uses = self._uses or self.recorder.overlaps.new_uses()
            caller = sys._getframe(1)
            self._uses.note(
                caller, caller.f_locals.get("statement"), in_transaction=connection.in_transaction
            )
        if connection.in_transaction:
            return None
        if self._last_was_long():
            self.end_transaction()
        self._began_s = begun
        changed_rows = connection.total_changes if self._is_sqlite3 else connection.total_changes()
        if changed_rows != self._changed_rows:  # since the last transaction began
            self.recorder.costs.commits += 1
            self._changed_rows = changed_rows
        return self.recorder.caller(sys._getframe(2))

    def end(self, step: TimedStep, cursor: Any) -> None:
        """Handle the end of a successful statement: the first one, or one outside of a transaction."""
        sql, was_open, _, begun, ended = step
        if self.is_new:
            self._end_first(sql, ended - begun)
        if not was_open:
            cursor._sqlstress_step = step
            if is_checkpoint(sql):
                self._note_checkpoint(cursor, ended - begun)

    def check_pragma(self, sql: str) -> None:
        """Record a PRAGMA that has just run if it had no effect, because a transaction is open."""
        connection, setting = self.connection(), _SILENT.match(sql)
        if not setting or not is_in_transaction(connection):
            return
        name, value = setting[1].lower(), setting[2].lower()
        wanted = value if name == "journal_mode" else str(int(value in _ON))
        if pragma(connection, name) not in (wanted, ""):
            self.recorder.add_no_effect(sql, self.transaction())

    def fail(self, error: Exception, sql: Any, caller: Caller | None, begun: float) -> None:
        """Record the failure of a statement, which began at `begun`, a time of `perf_counter`."""
        step: TimedStep = (sql, caller is None, caller, begun, perf_counter())
        code = getattr(error, "sqlite_errorcode", getattr(error, "extendedresult", None))
        if isinstance(code, int):
            self.add(step)
            self._failed.append((code, step))
            self.recorder.add(self, code, str(error), step[4] - begun)
        elif isinstance(sql, str):  # No library runs another statement.
            self.add(step)

    def end_transaction(self) -> None:
        """Record the last transaction, which has ended, if it held the write lock for long."""
        steps = transaction_steps(self.steps)
        if self.is_shared or not self._last_was_long() or not steps[-1][1]:
            return
        hold = hold_of(steps, self.refused())
        if hold and hold.seconds >= LONG_HOLD_S:
            self.recorder.add_hold(hold, steps[0])
        self._began_s = steps[-1][4]

    def _last_was_long(self) -> bool:
        """Return whether the last transaction or statement took LONG_HOLD_S or longer."""
        return bool(self.steps) and self.steps[-1][4] - self._began_s >= LONG_HOLD_S

    def count_row_commits(self) -> None:
        """Count a commit for each row that the last statement has changed."""
        connection: Any = self.connection()
        changed_rows = connection.total_changes if self._is_sqlite3 else connection.total_changes()
        self.recorder.costs.commits += changed_rows - self._changed_rows
        self._changed_rows = changed_rows

    def _end_first(self, sql: Any, seconds: float) -> None:
        """Add the time of a new connection's statement to the time that opening took."""
        self.recorder.costs.opening_s += seconds
        self.is_new = isinstance(sql, str) and words_of(sql)[0] == "PRAGMA"
        if not self.is_new:
            self.recorder.used_files.add(self.name)

    def _note_checkpoint(self, cursor: Any, waited_s: float) -> None:
        """Record the last statement, a checkpoint, as failed if its result says that it was busy."""
        from sqlstress.user_work.checkpoint_answers import rows_ahead

        if is_busy(rows := rows_ahead(cursor)):
            self.recorder.add(self, BUSY, f"its answer was {rows[0]}", waited_s)

    def transaction(self) -> Transaction:
        """Return the state of the transaction that the last statement belongs to."""
        state, began, line = transaction_of(self.steps, self.refused())
        return Transaction(state, began, self.recorder.line_text(line))

    def is_uncommitted(self) -> bool:
        """Return whether the last transaction is still open, or the connection was closed before its end."""
        connection = self.connection()
        if is_open(connection):
            return is_in_transaction(connection)
        last = statement_kind(self.steps[-1][0]) if self.steps else "commit"
        return last != "commit" and words_of(self.steps[-1][0])[0] not in ("ROLLBACK", "RELEASE")

    def last_end(self) -> str:
        """Return the kind of the end of the last transaction: "commit" or "rollback"; empty if unknown."""
        released = False
        for sql, *_ in reversed(self.steps):
            word, second = words_of(sql)
            if statement_kind(sql) == "commit":
                return "commit"
            if word == "ROLLBACK" and (released or second != "TO"):
                return "rollback"
            if released:
                return "commit"
            released = word == "RELEASE"  # It commits if SAVEPOINT began the transaction.
        return "commit" if released else ""

    def refused(self) -> set[int]:
        """Return the ids of the statements that failed and got no lock.

        A statement that broke a constraint has the lock.
        """
        return {id(step) for code, step in self._failed if code & 0xFF != CONSTRAINT}

    def failed_commit(self) -> int:
        """Return the result code of a COMMIT that failed in the open transaction; 0 if there is none."""
        codes = {id(step): code for code, step in self._failed if statement_kind(step[0]) == "commit"}
        steps = transaction_steps(self.steps)
        return next((codes[id(step)] for step in reversed(steps) if id(step) in codes), 0)

    def is_repeated(self) -> bool:
        """Return whether a lock has refused the last statement before in its transaction."""
        *earlier, (sql, *_) = transaction_steps(self.steps)
        failed = {id(step) for code, step in self._failed if code & 0xFF == BUSY}
        return any(step[0] == sql and id(step) in failed for step in earlier)
