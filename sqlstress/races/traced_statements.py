"""Traced SQL statements, with the facts that the rehearsal records about each statement.

The rehearsal, a test run before the measurement, calls each of the user's transactions a few times without
load. The trace of a call has its SQL statements in order. A statement is a query, which only reads, or a
write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlstress.races.touched import Row
from sqlstress.recording.callers import StackEntry

UPDATE, DELETE, INSERT, OVERWRITE = "update", "delete", "insert", "overwrite"
"""Kinds of writes. OVERWRITE is an INSERT that replaces existing rows."""

Table = tuple[str, str]
"""Database file and table name."""


class Write(NamedTuple):
    """Effect of a statement on the table that it writes, without the effects of triggers."""

    table: Table
    kind: str
    """UPDATE, DELETE, INSERT or OVERWRITE."""

    sets: frozenset[str] = frozenset()
    """Columns that the statement sets; empty for a plain INSERT.

    If SQLite computes a value, columns that get the current time are left out, as in `SET n = n + 1, at = ?`:
    the time comes from the clock, not from an earlier query.
    """
    computed: frozenset[str] = frozenset()
    """Columns whose new values SQLite computes from columns of the table, as in `SET n = n + 1`."""
    wheres: frozenset[str] = frozenset()
    """Columns of the table in the WHERE clause; for INSERT ... SELECT, all columns that it reads."""
    keys: tuple[frozenset[str], ...] = ()
    """Columns of each unique key of the table, first the primary key."""
    kept: frozenset[str] = frozenset()
    """Columns that an UPDATE sets to the value that each of its rows already has."""
    cascades: str = ""
    """Child table that ON DELETE changes if the statement replaces a row; empty if there is none."""
    numbers: Mapping[str, int] = {}
    """Integers that an UPDATE writes in place of other values, by column; no computed values or times."""
    counted: bool = False
    """Whether the user's code seems to read the row count (number of written rows)."""
    insists: bool = False
    """Whether a library, such as an ORM, raises an error if the row count is not the expected number."""
    unseen: bool = False
    """Whether the statement may write no row without an error, and the user's code reads no row count."""
    trusts_id: bool = False
    """Whether the user's code reads the id of the last row, and never the row count."""
    rows: frozenset[Row] | None = None
    """Rows that the statement changes, removes or adds; None if unknown."""
    existing: frozenset[Row] = frozenset()
    """Rows of an INSERT whose keys already existed in the table."""
    numbered: bool = False
    """Whether SQLite assigned the rowid of the new row, so that the primary key cannot refuse the row."""
    reuses_ids: bool = False
    """Whether SQLite may give the new row the rowid of a deleted row; False with AUTOINCREMENT."""
    refused: frozenset[str] = frozenset()
    """Columns that the statement sets, and whose values a CHECK or trigger can refuse."""


class ScriptUse(NamedTuple):
    r"""Variables of an SQL script, set by \gset or \set, by which a statement depends on other statements."""

    results: frozenset[str]
    r"""Variables that \gset sets to the statement's result, and variables computed from these by \set."""
    conditions: frozenset[str]
    r"""Variables in \if conditions that must be true for the statement to run."""
    otherwise: frozenset[str]
    r"""Variables in \if conditions that must be false for the statement to run, because it is in an \else."""


class TracedStatement(NamedTuple):
    """SQL statement that a call of a user's transaction ran, with facts about the statement."""

    sql: str
    at: str
    """Line of the user's code that ran the statement, such as "bank.py:27"."""
    spot: int = 0
    """Number of the position in the code, as a line may run several statements; 0 if unknown."""
    transaction: int = 0
    """Number of the transaction; each statement in autocommit mode has its own number."""
    snapshot: int = 0
    """Number of the transaction whose snapshot the statement reads; 0 means the statement's transaction.

    If a query of an earlier transaction still has unfetched rows, its snapshot stays in use.
    """
    runner: int = 0
    """Id of the asyncio task that ran the statement, else of the thread."""
    in_background: bool = False
    """Whether the statement ran in a background thread, for which the call did not wait."""
    reads: Mapping[Table, frozenset[str]] = {}
    """Columns that the statement reads, by table; count(*) reads the column ""."""
    in_wal: bool = False
    """Whether all databases of the connection are in WAL mode."""
    write: Write | None = None
    """Direct effect of the statement on a table; None for a query."""
    found: bool | None = None
    """Whether a query returned a row, or its EXISTS was true; None if unknown."""
    seeks_drawn: bool = False
    """Whether a query only finds rows with a random value of this call, such as a UUID."""
    summarises: bool = False
    """Whether a query's result depends on rows that it may not return: count, max, ORDER BY, LIMIT."""
    counts: bool = False
    """Whether a query returns only a count or a sum, and so no key of a row."""
    forked: bool = False
    """Whether a forked process ran the statement on an inherited connection."""
    locks: frozenset[tuple[int, int, int]] = frozenset()
    """File locks of the process: device, inode, and a number that is new for each lock."""
    rows: frozenset[Row] | None = None
    """Rows that a query reads; None if unknown."""
    stack: tuple[StackEntry, ...] = ()
    """User's functions that were running at the statement, outermost first."""
    script: ScriptUse | None = None
    """Variables of the SQL script that ran the statement; None for Python code."""

    def shares_snapshot(self, other: TracedStatement) -> bool:
        """Return whether two statements read the same snapshot of the database.

        If so, a write by another process between the two statements cannot go unnoticed.
        """
        return (self.snapshot or self.transaction) == (other.snapshot or other.transaction)
