"""Ledger (--ledger): proof that acknowledged commits of the user's code are in the database.

SQLite's trace callback reports a COMMIT before it runs. At this moment, sqlstress inserts a numbered row into
the ledger table, as part of the user's transaction. A profile function (sys.setprofile) then sees how the
call that commits ends. If the call returns, the commit is acknowledged, and the row's number is appended to
the worker's file, which survives a kill. After the load, each number in a file must have a row in the table.

Statements in autocommit mode, and transactions that may have written only to attached databases, get no row
and are only counted.

Sources: https://www.sqlite.org/c3ref/trace_v2.html, https://docs.python.org/3/library/sys.html#sys.setprofile
"""

from __future__ import annotations

import os
import sqlite3
import sys
from array import array
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import get_ident
from types import FrameType
from typing import Any

from sqlstress.recording.failures import words_of
from sqlstress.user_work.notes import folder_of

TABLE = "sqlstress_ledger"
SETUP_SQL = (
    # A copy of the user's database may contain the table of an earlier trial.
    f"DROP TABLE IF EXISTS {TABLE}",
    f"CREATE TABLE {TABLE} (worker INTEGER, number INTEGER, PRIMARY KEY (worker, number)) WITHOUT ROWID",
    # Deleted rows stay, because an application may empty all tables in its database.
    f"CREATE TRIGGER {TABLE}_stays BEFORE DELETE ON {TABLE} BEGIN SELECT RAISE(IGNORE); END",
)
_INSERT = f"INSERT INTO main.{TABLE} VALUES (?, ?)"
_FIND = f"SELECT 1 FROM main.{TABLE} WHERE worker = ? AND number = ?"
_WRAPPERS = "sqlstress.recording.recorded_classes"
"""Our only module whose calls `_handle_profile_event` examines: it calls sqlite3 for the user."""
_LIBRARY = (sqlite3.Connection, sqlite3.Cursor)


def _file_of(where: Path, worker: int) -> Path:
    return folder_of(where) / f"ledger-{worker}"


def acknowledged(where: Path, worker: int) -> array[int]:
    """Return the row numbers in a worker's file: its acknowledged commits; empty without a file."""
    file = _file_of(where, worker)
    data = file.read_bytes() if file.is_file() else b""
    # The last record may be truncated if the process was killed or the disk was full.
    return array("q", data[: len(data) // 8 * 8])


class Ledger:
    """Writer of this process's rows in the ledger table, numbered from 1."""

    def __init__(self, where: Path, worker: int) -> None:
        """`where` is the data folder of the trial. `worker` is the worker's number, from 1."""
        self.worker, self.numbers, self.pid = worker, count(1), os.getpid()
        self.unproved = 0
        """Number of transactions that wrote data but have no row in the ledger."""
        self.shared = 0
        """Number of connections that several threads use at once: their transactions get no more rows."""
        self._commits: dict[int, CommitRecorder] = {}
        """Recorder of the connection on which a thread is about to commit, by the thread's id."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file = os.open(_file_of(where, worker), flags)
        self._is_whole = True

    def follow(self, connection: sqlite3.Connection) -> CommitRecorder:
        """Return a recorder for a connection. Call its method `begins` before each statement."""
        return CommitRecorder(self, connection)

    def install_profile(self) -> bool:
        """Install our profile function in this thread. Return False if the user's code has its own."""
        if sys.getprofile() is None:
            sys.setprofile(self._handle_profile_event)
        return sys.getprofile() == self._handle_profile_event

    def expect_commit(self, followed: CommitRecorder) -> None:
        """Record that this thread's current call is about to commit on the connection of `followed`."""
        self._commits[get_ident()] = followed

    def _handle_profile_event(self, frame: FrameType, event: str, arg: Any) -> None:
        # The first event after a COMMIT began is the end of the committing call.
        module = frame.f_globals.get("__name__", "")
        if get_ident() not in self._commits or (module.startswith("sqlstress.") and module != _WRAPPERS):
            return
        sys.setprofile(None)
        followed = self._commits.pop(get_ident())
        is_known = event in ("c_return", "c_exception") and isinstance(
            getattr(arg, "__self__", None), _LIBRARY
        )
        with suppress(sqlite3.Error):  # The connection was closed, so that the commit's result is unknown.
            followed.ended(event == "c_return" if is_known else None)

    def keep(self, numbers: list[int]) -> None:
        """Append row numbers of acknowledged commits to the file, until a write fails.

        A gap in the file would only leave commits unchecked, but a partial record would shift later numbers.
        """
        data = array("q", numbers).tobytes()
        with suppress(OSError):
            self._is_whole = self._is_whole and os.write(self._file, data) == len(data)


class CommitRecorder:
    """Recorder of a connection's commits, which adds a ledger row to each transaction."""

    def __init__(self, ledger: Ledger, connection: sqlite3.Connection) -> None:
        self._ledger, self._connection = ledger, connection
        self._changes = connection.total_changes
        """Value of the connection's `total_changes` at the end of the last transaction."""
        self._number = 0
        """Number of the ledger row that the open transaction has inserted; 0 if it has inserted none."""
        self._committing: list[int] = []
        """Numbers of the rows that the current call commits: a script may have several COMMITs."""
        self._undone = self._asks = False

    def begins(self, sql: str) -> None:
        """Handle a statement that is about to run. Before a COMMIT, add the transaction's ledger row."""
        if self._asks or os.getpid() != self._ledger.pid:
            return
        is_profiled = self._ledger.install_profile()
        if not self._connection.in_transaction:
            self._finish_transaction()
        word, second = words_of(sql)
        if word in ("COMMIT", "END") and is_profiled and self._connection.in_transaction:
            self._add_row()
        elif word == "ROLLBACK":
            # ROLLBACK TO may have removed the row, so the next COMMIT adds a new row in any case.
            self._number, self._undone = 0, self._undone or second != "TO"

    def _add_row(self) -> None:
        """Add a ledger row to the open transaction if it changed data and has no row yet.

        The transaction may have a row from an earlier COMMIT that failed.
        """
        if not self._number and self._connection.total_changes != self._changes:
            self._asks = True
            try:
                self._number = self._insert_row()
            except sqlite3.Error:  # For example, the user's code has removed the table.
                pass
            finally:
                self._asks = False
        if self._number:
            self._committing.append(self._number)
            self._ledger.expect_commit(self)

    def _insert_row(self) -> int:
        """Insert a row and return its number. With attached databases, insert no row and return 0.

        The transaction may have written only to an attached database.
        """
        cursor = sqlite3.Cursor(self._connection)
        cursor.row_factory = None
        if len(cursor.execute("PRAGMA database_list").fetchall()) > 1:
            return 0
        number = next(self._ledger.numbers)
        cursor.execute(_INSERT, (self._ledger.worker, number))
        return number

    def ended(self, returned: bool | None) -> None:
        """Handle the end of a committing call.

        `returned` is whether the call returned without an error. It is None if C code made the call, so that
        the result is unknown.
        """
        committed, self._committing = self._committing, []
        if returned is None:
            committed = [number for number in committed if self._is_there(number)]
        if returned is not False and committed:
            self._ledger.keep(committed)
        if not self._connection.in_transaction:
            self._changes, self._number = self._connection.total_changes, 0

    def _is_there(self, number: int) -> bool:
        if self._connection.in_transaction:
            return False
        self._asks = True
        try:
            cursor = sqlite3.Cursor(self._connection)
            return bool(cursor.execute(_FIND, (self._ledger.worker, number)).fetchall())
        finally:
            self._asks = False

    def count_shared(self) -> None:
        """Count a connection that several threads use at once, whose transactions get no more rows."""
        self._ledger.shared += 1

    def _finish_transaction(self) -> None:
        """Count the last transaction as unproved if it changed data but has no row in the ledger."""
        changes = self._connection.total_changes
        if changes != self._changes and not self._undone and not self._number:
            self._ledger.unproved += 1
        self._number, self._undone, self._changes = 0, False, changes
