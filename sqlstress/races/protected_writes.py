"""Reasons why an SQL write cannot race, such as a claim: a write that succeeds in only one process.

A call is one call of a user's transaction in the rehearsal (a test run without load), with its SQL
statements. For these reasons no other process can interfere between a query and a later write of the call:

- Safe write: the write itself checks the expected state, as in `SET state = 'done' WHERE state = 'queued'`.
- Repeated read: the transaction of the write reads the data again.
- Token: the call reads a token, such as a version number, before the query and again before the write.
- Claim: before the write, the call reserves the row, as in `SET owner = 5 WHERE owner IS NULL`.
- Own row: the process added the row when it connected, or the row's key has the process id.
- Lock: the call holds a lock from the query to the write. A lock is a locked file, or a row that each call
  claims before its query and releases after its write.

In this module, a key is a pair: the columns of a unique key, and a row's values in these columns.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlstress.races.touched import KeyValue, Row, conditions
from sqlstress.races.traced_statements import (
    DELETE,
    INSERT,
    OVERWRITE,
    UPDATE,
    Table,
    TracedStatement,
    Write,
)

_UUID = re.compile(r"[\da-f]{8}-?[\da-f]{4}-?[1467][\da-f]{3}-?[89ab][\da-f]{3}-?[\da-f]{12}", re.IGNORECASE)
"""Pattern of a UUID that no other process makes, so not of versions 3 and 5, which are hashes of a name."""


def reads_inside(earlier: Sequence[TracedStatement], statement: TracedStatement, write: Write) -> bool:
    """Return whether a write's transaction has itself read the table before: BEGIN, SELECT n, SET n = 5.

    `earlier` has the call's statements before the write.
    """
    # Before an UPDATE, only a read of the columns that the UPDATE sets counts. A read of other columns only
    # shows that the row exists.
    table, sets = write.table, write.sets - write.computed if write.kind == UPDATE else frozenset[str]()
    return any(
        other.shares_snapshot(statement)
        and table in other.reads
        and (not sets or bool(sets & other.reads[table]))
        and (other.write is None or other.write.table != table or is_safe(other.write))
        for other in earlier
    )


def renews_token(call: Sequence[TracedStatement], query_index: int, write_index: int) -> bool:
    """Return whether a token, such as a version number, shows that a query's result is still valid.

    For example: `SELECT version`, then the query, then BEGIN, again `SELECT version`, the write, and `UPDATE
    ... SET version = version + 1`. The indexes are the positions of the query and the write in `call`.
    """
    queries_before = {
        statement.sql
        for statement in call[:query_index]
        if not statement.write and not statement.shares_snapshot(call[write_index])
    }
    inside = [
        (index, statement)
        for index, statement in enumerate(call)
        if statement.transaction == call[write_index].transaction
    ]
    changed = {statement.write.table for _, statement in inside if statement.write}
    again = (
        statement
        for index, statement in inside
        if index < write_index and not statement.write and statement.sql in queries_before
    )
    return any(changed & {*statement.reads} for statement in again)


def tests_claim(earlier: Sequence[TracedStatement], statement: TracedStatement) -> bool:
    """Return whether a write tests by a subquery that a claim of its call is still valid.

    For example: `UPDATE lease SET token = token + 1` claims a lease, and a later write of the call has the
    condition `WHERE id = 7 AND 12 = (SELECT token FROM lease)`. `earlier` has the statements before it.
    """
    if not statement.write or "select" not in statement.sql.lower():
        return False
    written = {other.write.table for other in earlier if other.write and other.write.kind == UPDATE}
    return bool((written - {statement.write.table}) & statement.reads.keys())


def owns_rows(earlier: Sequence[TracedStatement], write: Write) -> bool:
    """Return whether the call has added or claimed each row of a write, as in `SET owner = 5`.

    `earlier` has the call's statements before the write.
    """
    claimed = {key for _, key in _claims(earlier, changed_keys(write))}
    rows = write.rows or ()
    return bool(rows) and all(claimed & {(write.table, key) for key in row} for row in rows)


class OwnRows(NamedTuple):
    """Rows that only this process writes: their key has the process id, or the process added them."""

    pid: int
    keys: frozenset[tuple[str, KeyValue]]
    """Table name and key of each row that the process added when it connected."""

    def has(self, write: Write) -> bool:
        """Return whether each row of a write is in `keys`, or has the process id in its key."""
        return bool(write.rows) and all(self._has_row(write.table[1], row) for row in write.rows or ())

    def _has_row(self, table: str, row: Row) -> bool:
        pid = re.compile(rf"\b{self.pid}\b")
        return any(
            (table, key) in self.keys or any(pid.search(str(value)) for value in key[1]) for key in row
        )


def rows_added_by(connecting: Sequence[TracedStatement]) -> OwnRows:
    """Return the rows that this process added when it connected, such as its row in a table of workers.

    `connecting` has the statements that the user's function ran to connect.
    """
    writes = (statement.write for statement in connecting if statement.write)
    return OwnRows(
        os.getpid(),
        frozenset(
            (write.table[1], key)
            for write in writes
            if write.kind in (INSERT, OVERWRITE)
            for row in write.rows or ()
            for key in row
        ),
    )


def changed_keys(write: Write) -> set[tuple[Table, KeyValue]]:
    """Return (table, key) for each row and unique key that a write changes, removes or adds, if known."""
    return {(write.table, key) for row in write.rows or () for key in row}


def all_keys(write: Write) -> set[tuple[Table, KeyValue]]:
    """Return `changed_keys`, and the keys of rows that an INSERT OR IGNORE skips because they exist."""
    return changed_keys(write) | {(write.table, key) for row in write.existing for key in row}


def _claims(
    call: Sequence[TracedStatement], wanted: set[tuple[Table, KeyValue]]
) -> Iterator[tuple[TracedStatement, tuple[Table, KeyValue]]]:
    """Yield (statement, key) for each key in `wanted` whose row the call claims, as by `SET owner = 5`."""
    for index, statement in enumerate(call):
        keys = changed_keys(statement.write) & wanted if statement.write else set()
        if (
            statement.write
            and keys
            and knows_it_wrote(call, index, statement.write)
            and _is_claim(call[:index], statement, statement.write)
        ):
            yield from ((statement, key) for key in keys)


def knows_it_wrote(call: Sequence[TracedStatement], index: int, write: Write) -> bool:
    """Return whether the call can know that the statement `call[index]` wrote a row.

    For example, INSERT OR IGNORE writes nothing if the key exists. The call can know whether a row was
    written if the code reads the row count, or queries the table later. `write` is the statement's effect.
    """
    if not write.unseen or is_new(write):
        return True
    # A query of the table after the statement shows whether the row was written. A query before the statement
    # shows whether the row existed, and so whether it was written. But a query before the statement counts
    # only in the same transaction: otherwise another process may have changed the table since.
    queries = [(number > index, other) for number, other in enumerate(call) if other.write is None]
    return any(
        (later and "changes()" in other.sql.lower())
        or (write.table in other.reads and (later or other.shares_snapshot(call[index])))
        for later, other in queries
    )


def _is_claim(earlier: Sequence[TracedStatement], statement: TracedStatement, write: Write) -> bool:
    """Return whether a write is a claim: it succeeds in only one process.

    For example, an INSERT with a unique key, or `SET owner = 5 WHERE owner IS NULL`. After such an UPDATE, no
    other process finds the row by this condition. `earlier` has the call's statements before the write.
    """
    if write.kind == INSERT:
        return True
    if not is_safe(write) and not reads_inside(earlier, statement, write):
        return False
    if write.kind != UPDATE:
        return write.kind == OVERWRITE
    queries = [query for query in earlier if query.write is None and write.table in query.reads]
    searched = frozenset(word for query in queries for word in conditions(query.sql))
    # `WHERE version = ?` is no claim if the call has read the version. Afterwards another process can read
    # the new version, compare with the new version, and write the row, too. So a column in the WHERE clause
    # does not count if the call has read the column.
    compared = write.wheres.difference(*(query.reads[write.table] for query in queries))
    return bool(write.sets.difference(*write.keys) & (searched | compared))


def held_locks(call: Sequence[TracedStatement], query_index: int, write_index: int) -> frozenset[object]:
    """Return the locks that a call holds from a query to a write: locked files, and claimed rows.

    For example: INSERT of the row "lock", the query, the write, DELETE of the row "lock". The indexes are the
    positions of the query and the write in `call`.
    """
    # A claimed row is a lock if the call claims the row in a transaction before the query's, and releases the
    # row by an UPDATE or DELETE after the write.
    later = (
        statement.write
        for statement in call[write_index + 1 :]
        if statement.write and statement.write.kind in (UPDATE, DELETE)
    )
    released = {key for write in later for key in changed_keys(write)}
    claimed = {
        key
        for statement, key in _claims(call[: query_index + 1], released)
        if statement.write
        and not statement.write.numbered
        and statement.transaction != call[query_index].transaction
    }
    # A file lock must last until the COMMIT of the write. If the lock ended before the COMMIT, another
    # process could take the lock, and still read the old data.
    own = [other for other in call[write_index:] if other.transaction == call[write_index].transaction]
    files = {lock[:2] for lock in call[query_index].locks & call[write_index].locks & own[-1].locks}
    return frozenset(claimed | files)


def is_safe(write: Write) -> bool:
    """Return whether a write itself checks the state, as in `SET n = 5 WHERE n = 4` and `SET n = n + 1`."""
    if write.kind == DELETE:
        return bool(write.wheres - {"rowid"}.union(*write.keys))
    if write.kind == INSERT:
        return bool(write.wheres)
    # Safe are `SET version = 5 WHERE version = 4`, and an UPDATE whose values SQLite computes. But an ORM may
    # write `SET id = 7 WHERE id = 7`. This checks no state: the key id only finds the row, and keeps its
    # value (`kept`).
    changed = write.sets - (write.kept & frozenset().union(*write.keys))
    return bool(changed & write.wheres) or (bool(write.sets) and write.sets <= write.computed)


def is_new(write: Write) -> bool:
    """Return whether a write adds rows that no other process can add: each key has a new UUID."""
    keys = changed_keys(write)
    return bool(keys) and not write.existing and all(any(map(_is_uuid, values)) for _, (_, values) in keys)


def _is_uuid(value: object) -> bool:
    return isinstance(value, str) and bool(_UUID.fullmatch(value))
