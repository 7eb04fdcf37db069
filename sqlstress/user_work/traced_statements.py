"""Traced SQL statements: facts that the rehearsal records about each statement of the user's code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlstress.user_work.guards import Call
from sqlstress.user_work.touched import Row

UPDATE, DELETE, INSERT, OVERWRITE = "update", "delete", "insert", "overwrite"
"""Kinds of writes: the effect of a statement on the table that it names.

OVERWRITE is an INSERT that replaces existing rows.
"""

Table = tuple[str, str]
"""Database file and table name."""


class Write(NamedTuple):
    """Write of a statement to the table that it names, without the writes of triggers."""

    table: Table
    kind: str
    """UPDATE, DELETE, INSERT or OVERWRITE."""

    sets: frozenset[str] = frozenset()
    """Columns that the statement sets; empty for a plain INSERT, whose columns are not known.

    A column that gets the current time is left out if SQLite computes a value of the statement: programs do
    not compute such a time from earlier reads.
    """
    computed: frozenset[str] = frozenset()
    """Columns whose new values SQLite computes from columns of the table.

    The user's code provides all other values.
    """
    wheres: frozenset[str] = frozenset()
    """Columns of the table in the WHERE clause; for INSERT ... SELECT, the columns that it reads."""
    keys: tuple[frozenset[str], ...] = ()
    """Columns of the table's primary key, then those of each other unique key."""
    kept: frozenset[str] = frozenset()
    """Columns that an UPDATE sets to the value that each of its rows already has."""
    counted: bool = False
    """Whether the user's code seems to read the row count, the number of written rows."""
    insists: bool = False
    """Whether the user's code calls a library function that raises an error if the row count is wrong."""
    unseen: bool = False
    """Whether a write of no row would go unnoticed: without an error, and the row count is not read."""
    rows: frozenset[Row] | None = None
    """Rows that the statement changes, removes or adds; None if not known."""
    there: frozenset[Row] = frozenset()
    """Rows that existed before, with the same keys as rows of an INSERT; an OVERWRITE replaces them."""
    numbered: bool = False
    """Whether SQLite assigned the rowid of the new row, so that the primary key could not refuse the row."""
    refused: frozenset[str] = frozenset()
    """Columns that the statement sets, and whose values a CHECK or a trigger can refuse."""


class ScriptUse(NamedTuple):
    """Variables of an SQL script that connect a statement with others."""

    results: frozenset[str]
    """Variables whose values depend on the result of the statement."""
    conditions: frozenset[str]
    """Variables in the conditions that are true when the statement runs."""
    otherwise: frozenset[str]
    """Variables in the conditions that are false when the statement runs."""


class TracedStatement(NamedTuple):
    """SQL statement that a call of a transaction ran, with the facts from its trace."""

    sql: str
    at: str
    """Position in the user's code, such as "bank.py:27"."""
    spot: int = 0
    """Number of the function call that ran the statement, different within a line; 0 means unknown."""
    transaction: int = 0
    """Number of the statement's transaction; a statement in autocommit mode has its own number."""
    snapshot: int = 0
    """Number of the transaction whose snapshot the statement reads; 0 means that of its own transaction.

    A query whose rows were not all fetched keeps the snapshot of an earlier transaction.
    """
    who: int = 0
    """Id of the asyncio task that ran the statement, else of the thread."""
    beside: bool = False
    """Whether a background thread ran the statement: the call did not wait for the thread."""
    reads: Mapping[Table, frozenset[str]] = {}
    """Columns that the statement reads, by table; count(*) reads the column ""."""
    in_wal: bool = False
    """Whether all databases of the connection are in WAL mode."""
    write: Write | None = None
    """Direct write of the statement; None for a query."""
    found: bool | None = None
    """Whether a query returned a row, or EXISTS was true; None if not known."""
    seeks_drawn: bool = False
    """Whether a query searches for a value that the call drew at random, so that no other call has it."""
    summarises: bool = False
    """Whether a query's result depends on more rows than it returns: count, max, ORDER BY with LIMIT."""
    counts: bool = False
    """Whether a query returns only a count or a sum, so that no key of a row follows from it."""
    forked: bool = False
    """Whether the connection was opened by another process and inherited through a fork."""
    locks: frozenset[tuple[int, int, int]] = frozenset()
    """File locks that the process held: device, inode, and a number that is new for each locking."""
    rows: frozenset[Row] | None = None
    """Rows that a query reads; None if not known."""
    calls: tuple[Call, ...] = ()
    """Active calls of the user's functions, outermost first; empty if not known."""
    script: ScriptUse | None = None
    """Variables of the script that ran the statement; None if it was no script."""

    def shares_snapshot(self, other: TracedStatement) -> bool:
        """Return whether two statements read the same snapshot.

        If so, another process cannot write unnoticed between the two statements: the lock excludes the write,
        or SQLite refuses the second statement.
        """
        return (self.snapshot or self.transaction) == (other.snapshot or other.transaction)
