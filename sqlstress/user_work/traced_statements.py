"""Traced SQL statements: facts that the rehearsal records about each statement.

The rehearsal calls each of the user's transactions, which are functions or SQL scripts, a few times without
load. A call, in this and the other modules on suspicions, is one such call. Its trace has its SQL statements
in the order in which they ran. A statement is a query, which only reads, or a write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlstress.user_work.guards import StackEntry
from sqlstress.user_work.touched import Row

UPDATE, DELETE, INSERT, OVERWRITE = "update", "delete", "insert", "overwrite"
"""Kinds of writes. OVERWRITE is an INSERT that replaces existing rows."""

Table = tuple[str, str]
"""Database file and table name."""


class Write(NamedTuple):
    """Effect of a statement on the table that it names. Writes of triggers are left out."""

    table: Table
    kind: str
    """UPDATE, DELETE, INSERT or OVERWRITE."""

    sets: frozenset[str] = frozenset()
    """Columns that the statement sets; empty for a plain INSERT, whose columns are not known.

    If SQLite computes any value of the statement, columns that get the current time are left out: programs do
    not compute such a time from earlier reads.
    """
    computed: frozenset[str] = frozenset()
    """Columns whose new values SQLite computes from columns of the table, as in `SET n = n + 1`.

    The user's code provides all other values.
    """
    wheres: frozenset[str] = frozenset()
    """Columns of the table in the WHERE clause; for INSERT ... SELECT, the columns that are read."""
    keys: tuple[frozenset[str], ...] = ()
    """Columns of each unique key of the table; the primary key comes first."""
    kept: frozenset[str] = frozenset()
    """Columns that an UPDATE sets to the value that each of its rows already has."""
    cascades: str = ""
    """Name of a table whose rows a replaced row of this table deletes or changes, by ON DELETE; or empty."""
    numbers: Mapping[str, int] = {}
    """Integers that an UPDATE sets, by column, without columns of `computed` and `kept` and current times."""
    counted: bool = False
    """Whether the user's code seems to read the row count, the number of written rows."""
    insists: bool = False
    """Whether the code calls a library function that raises an error for a wrong row count."""
    unseen: bool = False
    """Whether the user's code cannot notice that no row was written."""
    trusts_id: bool = False
    """Whether the user's code reads the id of the last row, and never the row count."""
    rows: frozenset[Row] | None = None
    """Rows that the statement changes, removes or adds; None if not known."""
    existing: frozenset[Row] = frozenset()
    """Rows of an INSERT whose keys existed in the table before."""
    numbered: bool = False
    """Whether SQLite assigned the rowid of the new row: the primary key cannot refuse the row."""
    reuses_ids: bool = False
    """Whether SQLite chooses the rowid of the new row, and may choose that of a deleted row.

    False for a table with AUTOINCREMENT.
    """
    refused: frozenset[str] = frozenset()
    """Columns that the statement sets, and whose values a CHECK or a trigger can refuse."""


class ScriptUse(NamedTuple):
    """Variables of an SQL script that connect a statement with the script's other statements."""

    results: frozenset[str]
    """Variables whose values depend on the result of the statement."""
    conditions: frozenset[str]
    """Variables in those conditions of the script that must be true for the statement to run."""
    otherwise: frozenset[str]
    """Variables in those conditions of the script that must be false for the statement to run."""


class TracedStatement(NamedTuple):
    """SQL statement that a call ran, with facts about it."""

    sql: str
    at: str
    """Line of the user's code that ran the statement, such as "bank.py:27"."""
    spot: int = 0
    """Number of the function call in the code that ran the statement; 0 if unknown.

    Calls in the same line have different numbers.
    """
    transaction: int = 0
    """Number of the statement's transaction; a statement in autocommit mode has its own number."""
    snapshot: int = 0
    """Number of the transaction whose snapshot the statement reads; 0 means its own transaction.

    While a query has unfetched rows, later transactions of the connection still read its snapshot.
    """
    runner: int = 0
    """Id of the asyncio task that ran the statement; id of the thread if there was no task."""
    in_background: bool = False
    """Whether a background thread ran the statement: the call did not wait for the thread."""
    reads: Mapping[Table, frozenset[str]] = {}
    """Columns that the statement reads, by table; count(*) reads the column ""."""
    in_wal: bool = False
    """Whether all databases of the connection are in WAL mode."""
    write: Write | None = None
    """Direct effect of the statement on a table; None for a query."""
    found: bool | None = None
    """Whether a query returned a row, or its EXISTS was true; None if not known."""
    seeks_drawn: bool = False
    """Whether a query searches for a value that the call drew at random: no other call has it."""
    summarises: bool = False
    """Whether a query depends on more rows than it returns: count, max, ORDER BY with LIMIT."""
    counts: bool = False
    """Whether a query returns only a count or a sum, so that it does not give the key of a row."""
    forked: bool = False
    """Whether a forked process ran the statement on an inherited connection."""
    locks: frozenset[tuple[int, int, int]] = frozenset()
    """File locks that the process held: device, inode, and a number that is new for each locking."""
    rows: frozenset[Row] | None = None
    """Rows that a query reads; None if not known."""
    stack: tuple[StackEntry, ...] = ()
    """Functions of the user that were running at the statement, outermost first."""
    script: ScriptUse | None = None
    """Variables of the SQL script that ran the statement; None if Python code ran it."""

    def shares_snapshot(self, other: TracedStatement) -> bool:
        """Return whether two statements read the same snapshot of the database.

        If so, another process cannot write unnoticed between the two statements: the lock excludes the write,
        or SQLite refuses the later statement.
        """
        return (self.snapshot or self.transaction) == (other.snapshot or other.transaction)
