"""Search for values that a call of a user's transaction writes, and that an earlier call has read.

For example, the first call keeps the result of `SELECT n` in a cache. A later call does not read n again, and
writes `UPDATE ... SET n = ?` with the value from the cache + 1. The call overwrites what other processes have
written since. Such a possible race is a suspicion of the kind OLD_VALUE.

The trace of the calls shows UPDATEs without a read in their call, but not where their values come from. So
the calls run again in the same order on a copy of the database, in which RAISED (1009) has been added to each
n. If an UPDATE now writes 1014 where it wrote 5 before, the value derives from the earlier read.

An UPDATE is left out if the call may have checked that the old value is still valid:

- The WHERE clause of the UPDATE compares more than a key, as in `WHERE id = 7 AND n = 5`.
- The call reads the row again before the UPDATE.
- The call reads PRAGMA data_version, which shows whether another connection has changed the database.
- The transaction of the UPDATE has queried another table, which may tell that the value is valid.

An UPDATE is also left out if other processes probably do not write the row:

- An earlier call has added the row, or the row's key has the process id.
- Calls reserve (claim) rows of the table, as in `SET owner = 5 WHERE owner IS NULL`.
- The call that read the row may have reserved the row by another write, such as the INSERT of a lock row.
- The earlier query found the row by a column that changes, such as a job by `WHERE state = 'queued'`.
- The process has held a file lock from the read of the row to the UPDATE.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from sqlstress.races.protected_writes import OwnRows, changed_keys, is_safe
from sqlstress.races.suspicions import OLD_VALUE, Suspicion, unchanged_columns
from sqlstress.races.touched import KeyValue, Row, conditions
from sqlstress.races.traced_statements import INSERT, OVERWRITE, UPDATE, Table, TracedStatement, Write

Calls = Sequence[tuple[str, Sequence[TracedStatement]]]
"""Calls of the user's transactions, in order: name of the transaction, and its traced statements."""

RAISED = 1009
"""Number that is added to values in a copy of the database: 5 becomes 1014.

A write that derives from such a value is then recognised. No program is likely to add this number itself.
"""
_WORDS = re.compile(r"\w+")
MIN_CALLS = 4
"""Minimum number of calls of a transaction that write a value which an earlier call has read.

Fewer calls yield no suspicion (possible race).
"""


class OldWrite(NamedTuple):
    """UPDATE of a row that an earlier call has read. The call of the UPDATE has not read the row."""

    name: str
    """Name of the user's transaction that ran the UPDATE."""
    call: int
    """Number of the call, from 0."""
    position: int
    """Index of the UPDATE among all statements of the call, from 0."""
    query: TracedStatement
    """Last query of an earlier call that may have read the row."""
    statement: TracedStatement
    write: Write
    columns: frozenset[str]
    """Columns that the UPDATE sets to values from the program, as in `SET n = ?`.

    These values may come from the earlier query. A column that SQLite computes, as in `SET n = n + 1`, is
    left out.
    """


def old_writes(
    opening: Sequence[TracedStatement], calls: Calls, own_rows: Sequence[OwnRows]
) -> list[OldWrite]:
    """Return the UPDATEs whose values may come from an earlier call.

    - opening: statements that the user's function ran to connect, which count as an earlier call
    - own_rows: rows that only this process writes; their UPDATEs are left out
    """
    statements = [opening, *(call for _, call in calls)]
    unchanged = unchanged_columns(statements)
    all_writes = [write for call in statements for _, write in _writes(call)]
    compared = {write.table for write in all_writes if write.sets & write.wheres}
    changed: dict[Table, frozenset[str]] = {}
    for write in all_writes:
        changed[write.table] = changed.get(write.table, frozenset()) | write.sets
    queries: list[TracedStatement] = []
    claimed = set[int]()
    """Queries, by `id()`, whose call may have reserved (claimed) the rows, as in `SET state = 'taken'`."""
    made: set[tuple[Table, KeyValue]] = set()
    found = []
    for number, (name, call) in enumerate([("", opening), *calls], start=-1):
        for index, write in _writes(call):
            constant = write.sets - write.computed - write.wheres.union(*write.keys)
            columns = frozenset(column for column in constant if (write.table, column) not in unchanged)
            reads = [query for query in queries if columns & _columns_read(query, write)]
            if (
                reads
                and not any(_condition_columns(query, write) & changed[write.table] for query in reads)
                and not any(id(query) in claimed for query in reads)
                and not made & changed_keys(write)
                and not reads[-1].locks & call[index].locks
                and write.table not in compared
                and _reads_nothing(call[:index], call[index], write)
                and not any(rows.has(write) for rows in own_rows)
            ):
                query = _query_of(write, reads)
                found.append(OldWrite(name, number, index, query, call[index], write, columns))
        new_queries = [statement for statement in call if statement.reads and not statement.write]
        queries += new_queries
        if any(_may_claim(write) for _, write in _writes(call)):
            claimed.update(map(id, new_queries))
        made |= {
            key
            for _, write in _writes(call)
            if write.kind in (INSERT, OVERWRITE)
            for key in changed_keys(write)
        }
    return found


def _may_claim(write: Write) -> bool:
    """Return whether a write may reserve (claim) a row: it can succeed in only one process.

    Examples are `INSERT ... VALUES (7)` with a unique key, and `SET owner = ? WHERE owner IS NULL`.
    """
    if write.kind == UPDATE:
        return bool(write.sets & write.wheres)
    return write.kind == INSERT and bool(write.rows) and not write.numbered


def _query_of(write: Write, queries: Sequence[TracedStatement]) -> TracedStatement:
    """Return the last of `queries` whose SQL contains a key of the written rows, else the last of all."""
    values = {str(value) for row in write.rows or () for _, key in row for value in key}
    texts = ((query, query.sql.partition(" LIMIT ")[0]) for query in reversed(queries))
    return next((query for query, text in texts if values & {*_WORDS.findall(text)}), queries[-1])


def _columns_read(query: TracedStatement, write: Write) -> frozenset[str]:
    if query.rows is not None and not _has_common_row(query.rows, write):
        return frozenset()
    return query.reads.get(write.table, frozenset())


def _condition_columns(query: TracedStatement, write: Write) -> frozenset[str]:
    return conditions(query.sql) & query.reads[write.table] - frozenset().union(*write.keys)


def _has_common_row(rows: frozenset[Row], write: Write) -> bool:
    keys = {key for _, key in changed_keys(write)}
    return any(key in keys for row in rows for key in row)


def _writes(call: Sequence[TracedStatement]) -> Iterator[tuple[int, Write]]:
    return ((index, statement.write) for index, statement in enumerate(call) if statement.write)


def _reads_nothing(earlier: Sequence[TracedStatement], statement: TracedStatement, write: Write) -> bool:
    """Return whether an UPDATE finds its row by key, as in `WHERE id = 7`, and the call checks nothing.

    The result is False if a statement before the UPDATE reads the row, or another table in the same
    transaction, or PRAGMA data_version. This number shows whether another connection has changed the
    database.

    - earlier: the call's statements before the UPDATE
    - statement: the UPDATE
    - write: the effect of the UPDATE on its table
    """
    if (
        write.kind != UPDATE
        or not write.rows
        or is_safe(write)
        or write.wheres - {"rowid"}.union(*write.keys)
    ):
        return False
    for other in earlier:
        rows = other.rows if other.write is None else other.write.rows
        same_row = rows is None or _has_common_row(rows, write)
        reads = other.reads and (other.write is None or "returning" in other.sql.lower())
        if "data_version" in other.sql.lower():
            return False
        if reads and (same_row if write.table in other.reads else other.shares_snapshot(statement)):
            return False
    return True


def raise_values(folder: Path, copy: Path, writes: Iterable[OldWrite]) -> set[tuple[str, str]]:
    """Add 1009 (RAISED) to the columns of `writes` in all rows of the databases in `folder`.

    Return the changed columns, as (table, column). A column stays unchanged if it has other values than
    integers, or if a CHECK constraint refuses the new values.

    - folder: folder with the databases for the second run of the calls
    - copy: folder of the first run, to which the file names in `writes` refer
    - writes: the result of `old_writes`, from the first run
    """
    raised = set()
    for (file, table), column in sorted(
        {(old.write.table, column) for old in writes for column in old.columns}
    ):
        with suppress(sqlite3.Error, ValueError):  # A ValueError means that the file is not in `copy`.
            path = folder / Path(file).relative_to(copy.resolve())
            if path.is_file() and _raise_column(path, table, column):
                raised.add((table, column))
    return raised


def _raise_column(path: Path, table: str, column: str) -> bool:
    name, into = (text.replace('"', '""') for text in (column, table))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        others = f'SELECT 1 FROM "{into}" WHERE typeof("{name}") IS NOT \'integer\''
        if connection.execute(others).fetchone():
            return False
        connection.execute(f'UPDATE "{into}" SET "{name}" = "{name}" + {RAISED}')
    return True


def old_values(
    writes: Iterable[OldWrite], again: Calls, raised: Collection[tuple[str, str]]
) -> Iterator[tuple[str, int, Suspicion]]:
    """Yield (transaction, number of calls, suspicion) for values that derive from an earlier call.

    - writes: the result of `old_writes`, from the first run of the calls
    - again: the calls of the second run, on the database that `raise_values` has changed
    - raised: the result of `raise_values`
    """
    derived: dict[tuple[str, str], list[OldWrite]] = {}
    for old in writes:
        call = again[old.call][1] if 0 <= old.call < len(again) else ()
        new = call[old.position].write if old.position < len(call) else None
        columns = {column for column in old.columns if (old.write.table[1], column) in raised}
        if (
            new
            and (new.rows, call[old.position].at) == (old.write.rows, old.statement.at)
            and any(_is_raised(old.write, new, column, again[: old.call]) for column in columns)
        ):
            derived.setdefault((old.name, old.write.table[1]), []).append(old)
    for (name, table), found in derived.items():
        count = len({old.call for old in found})
        if count >= MIN_CALLS:
            yield name, count, Suspicion(OLD_VALUE, table, found[0].query, found[0].statement)


def _is_raised(before: Write, after: Write, column: str, earlier: Calls) -> bool:
    """Return whether an UPDATE sets a column to a value that `raise_values` has raised, or derived from it.

    - before, after: the UPDATE in the first run of the calls, and in the run with raised values
    - earlier: the calls before the UPDATE in the run with raised values
    """
    if column in before.numbers:
        return after.numbers.get(column) == before.numbers[column] + RAISED
    return column in before.kept and column in after.kept and not _was_set(earlier, after, column)


def _was_set(earlier: Calls, write: Write, column: str) -> bool:
    """Return whether an earlier call set the column to another value in a row that `write` changes.

    If so, the row has no raised value any more, although `write` leaves the column as it is.
    """
    writes = (other for _, call in earlier for _, other in _writes(call) if other.table == write.table)
    return any(
        column in other.sets - other.kept and (other.rows or frozenset()) & (write.rows or frozenset())
        for other in writes
    )
