"""Acknowledged commits of the user's own code: each transaction gets a row of ours before it commits.

SQLite's trace tells of COMMIT before it runs, so the row belongs to the same transaction. When the next thing
happens in that thread, COMMIT has returned; if the transaction is over then, it was acknowledged. The number
of the row is kept in a file, which stays when the process is killed. A statement that is a transaction by
itself gets no row, and is counted.

Source: https://www.sqlite.org/c3ref/trace_v2.html
"""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from sqlstress.user_work.notes import folder_of
from sqlstress.user_work.tracing import next_moment, words_of

TABLE = "sqlstress_ledger"
CREATE = f"CREATE TABLE {TABLE} (worker INTEGER, number INTEGER, PRIMARY KEY (worker, number)) WITHOUT ROWID"
_INSERT = f"INSERT INTO main.{TABLE} VALUES (?, ?)"


def _file_of(where: Path, worker: int) -> Path:
    return folder_of(where) / f"ledger-{worker}"


def acknowledged(where: Path, worker: int) -> array[int]:
    """Return the numbers of the commits that a worker was told of in a trial."""
    file = _file_of(where, worker)
    data = file.read_bytes() if file.is_file() else b""
    # A record may be cut off where its process was killed.
    return array("q", data[: len(data) // 8 * 8])


class Ledger:
    """The rows of this process, numbered from 1."""

    def __init__(self, where: Path, worker: int) -> None:
        """`where` is the place of the trial, whose folder of notes is there."""
        self.worker, self.numbers, self.pid = worker, count(1), os.getpid()
        self.unproved = 0
        """Transactions that wrote and got no row."""
        self._acknowledged: list[int] = []
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file = os.open(_file_of(where, worker), flags)

    def acknowledge(self, number: int) -> None:
        """Take a commit that has returned."""
        self._acknowledged.append(number)

    def keep(self) -> None:
        """Keep what was acknowledged: what follows it shows that it was."""
        kept, self._acknowledged = self._acknowledged, []
        if kept:
            os.write(self._file, array("q", kept).tobytes())

    def leave(self) -> None:
        """Forget what was acknowledged last, since the call raised, and that may have been its COMMIT."""
        self._acknowledged.clear()

    def follow(self, connection: sqlite3.Connection) -> Callable[[str], None]:
        """Return what is to be told of each statement of a connection before it runs."""
        return _Followed(self, connection).begins


class _Followed:
    """One connection."""

    def __init__(self, ledger: Ledger, connection: sqlite3.Connection) -> None:
        self._ledger, self._connection = ledger, connection
        self._changes = connection.total_changes
        """How many rows had been changed when the last transaction was over."""
        self._number = 0
        """Of the row in the open transaction; 0: there is none."""
        self._undone = self._asks = False

    def begins(self, sql: str) -> None:
        """Take a statement."""
        if self._asks or os.getpid() != self._ledger.pid:
            return
        self._ledger.keep()
        if not self._connection.in_transaction:
            self._over()
        word, second = words_of(sql)
        if word in ("COMMIT", "END") and self._connection.in_transaction:
            self._enter()
        elif word == "ROLLBACK" and second != "TO":
            self._number, self._undone = 0, True

    def _enter(self) -> None:
        """Add the row. If COMMIT failed before, it is there already."""
        if not self._number and self._connection.total_changes != self._changes:
            number = next(self._ledger.numbers)
            self._asks = True
            try:
                sqlite3.Cursor(self._connection).execute(_INSERT, (self._ledger.worker, number))
                self._number = number
            except sqlite3.Error:  # such as: the user's code has removed the table
                pass
            finally:
                self._asks = False
        if self._number:
            next_moment(self._returned, _is_after)

    def _returned(self) -> None:
        if self._number and not self._connection.in_transaction:
            self._over()

    def _over(self) -> None:
        """Take the end of a transaction, if there was one since."""
        changes = self._connection.total_changes
        if self._number:
            self._ledger.acknowledge(self._number)
        elif changes != self._changes and not self._undone:
            self._ledger.unproved += 1
        self._number, self._undone, self._changes = 0, False, changes


def _is_after(frame: FrameType, *_: Any) -> bool:
    """Return whether code runs that is not ours: before, SQLite is still amid COMMIT."""
    return not frame.f_globals.get("__name__", "").startswith("sqlstress.")
