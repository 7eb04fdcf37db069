"""Acknowledged commits of the user's own code: each transaction gets a row of ours before it commits.

SQLite's trace tells of COMMIT before it runs, so the row belongs to the same transaction. A profile function
hears how the call that commits comes out: only what returned counts. The number of the row is kept in a file,
which stays when the process is killed. A statement that is a transaction by itself gets no row, and neither
does a transaction that may have written other databases only; they are counted.

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

from sqlstress.user_work.failures import words_of
from sqlstress.user_work.notes import folder_of

TABLE = "sqlstress_ledger"
MADE = (
    # A copy of the user's may have one of an earlier trial.
    f"DROP TABLE IF EXISTS {TABLE}",
    f"CREATE TABLE {TABLE} (worker INTEGER, number INTEGER, PRIMARY KEY (worker, number)) WITHOUT ROWID",
    # An application may empty all tables that it finds.
    f"CREATE TRIGGER {TABLE}_stays BEFORE DELETE ON {TABLE} BEGIN SELECT RAISE(IGNORE); END",
)
_INSERT = f"INSERT INTO main.{TABLE} VALUES (?, ?)"
_FIND = f"SELECT 1 FROM main.{TABLE} WHERE worker = ? AND number = ?"
_WRAPPERS = "sqlstress.user_work.failed_statements"
"""Module whose methods call those of the library."""
_LIBRARY = (sqlite3.Connection, sqlite3.Cursor)


def _file_of(where: Path, worker: int) -> Path:
    return folder_of(where) / f"ledger-{worker}"


def acknowledged(where: Path, worker: int) -> array[int]:
    """Return the numbers of the commits that a worker was told of in a trial."""
    file = _file_of(where, worker)
    data = file.read_bytes() if file.is_file() else b""
    # A record may be cut off where its process was killed, or the disk was full.
    return array("q", data[: len(data) // 8 * 8])


class Ledger:
    """The rows of this process, numbered from 1."""

    def __init__(self, where: Path, worker: int) -> None:
        """`where` is the place of the trial, whose folder of notes is there."""
        self.worker, self.numbers, self.pid = worker, count(1), os.getpid()
        self.unproved = 0
        """Transactions that wrote and got no row."""
        self.shared = 0
        """Connections of which nothing more is heard, since several threads use them at once."""
        self._commits: dict[int, Followed] = {}
        """By thread, the connection that commits in the call that is under way."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file = os.open(_file_of(where, worker), flags)
        self._is_whole = True

    def follow(self, connection: sqlite3.Connection) -> Followed:
        """Return what is to be told of each statement of a connection before it runs."""
        return Followed(self, connection)

    def listens(self) -> bool:
        """Hear from now on how this thread's calls come out; False where somebody else profiles it."""
        if sys.getprofile() is None:
            sys.setprofile(self._hear)
        return sys.getprofile() == self._hear

    def commits(self, followed: Followed) -> None:
        """Take that a call of this thread is about to commit."""
        self._commits[get_ident()] = followed

    def _hear(self, frame: FrameType, event: str, arg: Any) -> None:
        """Take what happens in this thread: what comes next after a COMMIT is how that came out."""
        module = frame.f_globals.get("__name__", "")
        if get_ident() not in self._commits or (module.startswith("sqlstress.") and module != _WRAPPERS):
            return
        sys.setprofile(None)
        followed = self._commits.pop(get_ident())
        is_known = event in ("c_return", "c_exception") and isinstance(
            getattr(arg, "__self__", None), _LIBRARY
        )
        with suppress(sqlite3.Error):  # it was closed meanwhile: then nothing is known
            followed.ended(event == "c_return" if is_known else None)

    def keep(self, numbers: list[int]) -> None:
        """Keep the numbers of commits that were acknowledged, as long as all of each can be written."""
        data = array("q", numbers).tobytes()
        with suppress(OSError):
            self._is_whole = self._is_whole and os.write(self._file, data) == len(data)


class Followed:
    """One connection."""

    def __init__(self, ledger: Ledger, connection: sqlite3.Connection) -> None:
        self._ledger, self._connection = ledger, connection
        self._changes = connection.total_changes
        """How many rows had been changed when the last transaction was over."""
        self._number = 0
        """Of the row in the open transaction; 0: there is none."""
        self._committing: list[int] = []
        """The rows of the transactions that the call under way commits; a script may have several."""
        self._undone = self._asks = False

    def begins(self, sql: str) -> None:
        """Take a statement."""
        if self._asks or os.getpid() != self._ledger.pid:
            return
        is_heard = self._ledger.listens()
        if not self._connection.in_transaction:
            self._over()
        word, second = words_of(sql)
        if word in ("COMMIT", "END") and is_heard and self._connection.in_transaction:
            self._enter()
        elif word == "ROLLBACK":
            # To a savepoint, too, which may be older than the row: the next COMMIT adds another one.
            self._number, self._undone = 0, self._undone or second != "TO"

    def _enter(self) -> None:
        """Add the row. If COMMIT failed before, it is there already."""
        if not self._number and self._connection.total_changes != self._changes:
            self._asks = True
            try:
                self._number = self._entered()
            except sqlite3.Error:  # such as: the user's code has removed the table
                pass
            finally:
                self._asks = False
        if self._number:
            self._committing.append(self._number)
            self._ledger.commits(self)

    def _entered(self) -> int:
        """Return the number of a new row; 0: the transaction may have written other databases only."""
        cursor = sqlite3.Cursor(self._connection)
        cursor.row_factory = None
        if len(cursor.execute("PRAGMA database_list").fetchall()) > 1:
            return 0
        number = next(self._ledger.numbers)
        cursor.execute(_INSERT, (self._ledger.worker, number))
        return number

    def ended(self, returned: bool | None) -> None:
        """Take how the call came out that commits; None: a library in C made it, so nobody heard."""
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

    def is_shared(self) -> None:
        """Take that it is told of no more: several threads use the connection at once."""
        self._ledger.shared += 1

    def _over(self) -> None:
        """Take the end of a transaction, if there was one since."""
        changes = self._connection.total_changes
        if changes != self._changes and not self._undone and not self._number:
            self._ledger.unproved += 1
        self._number, self._undone, self._changes = 0, False, changes
