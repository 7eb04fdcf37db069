"""Traced SQL statements, each with facts that show whether the statement can be part of a race.

The rehearsal, a test run before the measurement, calls each of the user's transactions a few times without
load. The trace of a call has its SQL statements in order. A statement is a query, which only reads, or a
write. A row count is the number of rows that a statement wrote, as in `cursor.rowcount`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlstress.races.touched import Row
from sqlstress.recording.callers import StackEntry

UPDATE, DELETE, INSERT, OVERWRITE = "update", "delete", "insert", "overwrite"
"""Kinds of writes. OVERWRITE is INSERT OR REPLACE, or an INSERT with ON CONFLICT DO UPDATE."""

Table = tuple[str, str]
"""Database file and table name."""


class Write(NamedTuple):
    """Effect of a statement on the table that it writes, without the effects of triggers."""

    table: Table
    kind: str
    """UPDATE, DELETE, INSERT, or OVERWRITE for an INSERT that replaces or updates an existing row."""

    sets: frozenset[str] = frozenset()
    """Columns that an UPDATE sets, or ON CONFLICT DO UPDATE; empty for a plain INSERT and DELETE.

    In `SET n = n + 1, at = ?` the column `at` is left out if it gets the current time. The time comes from
    the clock, not from an earlier query.
    """
    computed: frozenset[str] = frozenset()
    """Columns whose new values SQLite computes, such as n in `SET n = n + 1`."""
    wheres: frozenset[str] = frozenset()
    """Columns of the table in the WHERE clause; for INSERT ... SELECT, all columns that it reads."""
    keys: tuple[frozenset[str], ...] = ()
    """Columns of each unique key of the table, first the primary key."""
    kept: frozenset[str] = frozenset()
    """Columns that an UPDATE sets to the value that the rows already have, as an ORM may do."""
    cascades: str = ""
    """Table that ON DELETE changes if INSERT OR REPLACE deletes the old row; empty if there is none."""
    skips_trigger: bool = False
    """Whether INSERT OR REPLACE deletes the old row without the table's DELETE triggers."""
    numbers: Mapping[str, int] = {}
    """New integers that an UPDATE sets, by column, such as {"n": 5} for `SET n = 5`.

    Columns that keep their value, that get the current time, or that SQLite computes, are left out.
    """
    counted: bool = False
    """Whether the user's code seems to read the row count of the statement, or RETURNING."""
    insists: bool = False
    """Whether a library, such as an ORM, raises an error if the row count is unexpected."""
    unseen: bool = False
    """Whether the code does not notice if the UPDATE or INSERT OR IGNORE writes no row."""
    trusts_id: bool = False
    """Whether the user's code reads `lastrowid` after the statement, and never the row count."""
    rows: frozenset[Row] | None = None
    """Rows that the statement changes, removes or adds, by their keys; None if unknown."""
    existing: frozenset[Row] = frozenset()
    """Rows of an INSERT whose key already exists in the table, so that they are skipped or replaced."""
    numbered: bool = False
    """Whether SQLite assigned the rowid of the new row. If so, the primary key cannot refuse the row."""
    reuses_ids: bool = False
    """Whether SQLite may give the new row the rowid of a deleted row; False with AUTOINCREMENT."""
    has_null_key: bool = False
    """Whether a new row has NULL in a column of its ON CONFLICT (...), so that it conflicts with no row."""
    has_null_twin: bool = False
    """Whether a new row equals another row in all columns of a UNIQUE key, but has NULL in some of them."""
    refused: frozenset[str] = frozenset()
    """Columns in `sets` whose values a CHECK or trigger can refuse, as with CHECK (n >= 0)."""


class ScriptUse(NamedTuple):
    r"""Variables of an SQL script, set by \gset or \set, by which a statement depends on other statements."""

    results: frozenset[str]
    r"""Variables that \gset sets to the statement's result, and variables computed from these by \set."""
    conditions: frozenset[str]
    r"""Variables in \if conditions that must be true for the statement to run."""
    otherwise: frozenset[str]
    r"""Variables in \if conditions that must be false for the statement to run, because it is in an \else."""


class TracedStatement(NamedTuple):
    """SQL statement that a call of a user's transaction ran, with its columns, rows and locks."""

    sql: str
    at: str
    """Line of the user's code that ran the statement, such as "bank.py:27"."""
    spot: int = 0
    """Number of the position in the code, since a line may run several statements; 0 if unknown."""
    transaction: int = 0
    """Number of the transaction; each statement in autocommit mode has its own number."""
    snapshot: int = 0
    """Number of the transaction whose snapshot (state of the database) the statement reads.

    0 means the statement's own transaction. If a query of an earlier transaction still has rows to fetch, the
    snapshot of that transaction remains in use, and the number is that of the earlier transaction.
    """
    runner: int = 0
    """Id of the asyncio task that ran the statement, or of the thread if there was no task."""
    in_background: bool = False
    """Whether the statement ran in a background thread, for which the call did not wait."""
    reads: Mapping[Table, frozenset[str]] = {}
    """Columns that the statement reads, by table; count(*) reads the column ""."""
    begins_implicitly: bool = False
    """Whether Python's sqlite3 module begins transactions itself: `isolation_level` is not None."""
    in_wal: bool = False
    """Whether all databases of the connection are in WAL mode."""
    write: Write | None = None
    """Effect of the statement on the table that it writes; None for a query."""
    found: bool | None = None
    """Whether a query returned a row, or for `SELECT EXISTS (...)`, returned 1; None if unknown."""
    seeks_drawn: bool = False
    """Whether a query can only find rows with a random value, such as a UUID that this call made."""
    summarises: bool = False
    """Whether a query has count, max, ORDER BY or LIMIT: rows that it does not return may decide."""
    counts: bool = False
    """Whether a query returns only a count, sum or average, and so no key of a row."""
    forked: bool = False
    """Whether a forked process ran the statement on a connection of its parent process."""
    locks: frozenset[tuple[int, int, int]] = frozenset()
    """Files that the user's code has locked: device, inode, and a number that is new for each lock."""
    rows: frozenset[Row] | None = None
    """Rows that a query reads; None if unknown."""
    stack: tuple[StackEntry, ...] = ()
    """User's functions that were running at the statement, outermost first."""
    script: ScriptUse | None = None
    """Variables of the SQL script that ran the statement; None for Python code."""

    def shares_snapshot(self, other: TracedStatement) -> bool:
        """Return whether two statements read the same snapshot of the database, as in one transaction.

        If another process writes between them, SQLite refuses later writes of this transaction.
        """
        return (self.snapshot or self.transaction) == (other.snapshot or other.transaction)
