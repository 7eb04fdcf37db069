"""Writes that no other process can disturb: safe SQL, rows of the call itself, and held locks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlstress.user_work.touched import KeyValue, conditions
from sqlstress.user_work.traced_statements import (
    DELETE,
    INSERT,
    OVERWRITE,
    UPDATE,
    Table,
    TracedStatement,
    Write,
)

_UUID = re.compile(r"[\da-f]{8}-?[\da-f]{4}-?[1467][\da-f]{3}-?[89ab][\da-f]{3}-?[\da-f]{12}", re.IGNORECASE)
"""Pattern of a UUID that differs in each call, because it was made from the time or at random.

UUIDs of versions 3 and 5 are excluded: they are hashes of a name, so that two processes may make the same.
"""


def reads_inside(earlier: Sequence[TracedStatement], statement: TracedStatement, write: Write) -> bool:
    """Return whether the data for a write was read in the transaction of the write, so that it cannot change.

    For an UPDATE, a column that it sets must have been read. A read of other columns only shows that the row
    exists.
    """
    table, sets = write.table, write.sets - write.computed if write.kind == UPDATE else frozenset[str]()
    return any(
        other.shares_snapshot(statement)
        and table in other.reads
        and (not sets or bool(sets & other.reads[table]))
        and (other.write is None or other.write.table != table or is_safe(other.write))
        for other in earlier
    )


def renews_token(call: Sequence[TracedStatement], first: int, then: int) -> bool:
    """Return whether a call checks by a token that the result of a query is still valid at a write.

    The call reads the token, such as a version number, before the query. The transaction of the write reads
    the token again by the same SQL, and changes its table. `first` and `then` are the indexes of the query
    and the write.
    """
    queries_before = {
        statement.sql
        for statement in call[:first]
        if not statement.write and not statement.shares_snapshot(call[then])
    }
    inside = [
        (index, statement)
        for index, statement in enumerate(call)
        if statement.transaction == call[then].transaction
    ]
    changed = {statement.write.table for _, statement in inside if statement.write}
    again = (
        statement
        for index, statement in inside
        if index < then and not statement.write and statement.sql in queries_before
    )
    return any(changed & {*statement.reads} for statement in again)


def is_own(earlier: Sequence[TracedStatement], write: Write) -> bool:
    """Return whether the call itself has made or claimed each row that a write changes.

    A claim is a change of the row so that no other process takes it.
    """
    claimed = {name for _, name in _claims(earlier, changed_keys(write))}
    rows = write.rows or ()
    return bool(rows) and all(claimed & {(write.table, name) for name in row} for row in rows)


def changed_keys(write: Write) -> set[tuple[Table, KeyValue]]:
    return {(write.table, name) for row in write.rows or () for name in row}


def all_keys(write: Write) -> set[tuple[Table, KeyValue]]:
    return changed_keys(write) | {(write.table, name) for row in write.existing for name in row}


def _claims(
    call: Sequence[TracedStatement], wanted: set[tuple[Table, KeyValue]]
) -> Iterator[tuple[TracedStatement, tuple[Table, KeyValue]]]:
    """Yield each statement that makes or claims a wanted row, with the row.

    The statement ensures that no other process makes or claims the row. A row is a table and a unique key
    with its values.
    """
    for index, statement in enumerate(call):
        names = changed_keys(statement.write) & wanted if statement.write else set()
        if (
            statement.write
            and names
            and _knows_it_wrote(call, index, statement.write)
            and _is_claim(call[:index], statement, statement.write)
        ):
            yield from ((statement, name) for name in names)


def _knows_it_wrote(call: Sequence[TracedStatement], index: int, write: Write) -> bool:
    """Return whether a call can know that a statement wrote a row: from the row count, or a later read.

    `index` is that of the statement in the call.
    """
    if not write.unseen or is_new(write):
        return True
    queries = [(number > index, other) for number, other in enumerate(call) if other.write is None]
    return any(
        (later and "changes()" in other.sql.lower())
        or (write.table in other.reads and (later or other.shares_snapshot(call[index])))
        for later, other in queries
    )


def _is_claim(earlier: Sequence[TracedStatement], statement: TracedStatement, write: Write) -> bool:
    """Return whether a write succeeds in only one process.

    In any other process a unique key refuses the write, or a search no longer finds the row.
    """
    if write.kind == INSERT:
        return True
    if not is_safe(write) and not reads_inside(earlier, statement, write):
        return False
    if write.kind != UPDATE:
        return write.kind == OVERWRITE
    queries = [query for query in earlier if query.write is None and write.table in query.reads]
    searched = frozenset(word for query in queries for word in conditions(query.sql))
    # Values that were read before do not count: the next process reads the new value and compares it.
    compared = write.wheres.difference(*(query.reads[write.table] for query in queries))
    return bool(write.sets.difference(*write.keys) & (searched | compared))


def held_locks(call: Sequence[TracedStatement], first: int, then: int) -> frozenset[object]:
    """Return the locks that the call holds from a query to a write: claimed rows, and locked files.

    `first` and `then` are the indexes of the query and the write. A row is a lock if the call claims it in
    another transaction, at the latest in the query itself, and changes it again after the write.
    """
    later = (
        statement.write
        for statement in call[then + 1 :]
        if statement.write and statement.write.kind in (UPDATE, DELETE)
    )
    released = {name for write in later for name in changed_keys(write)}
    claimed = {
        name
        for statement, name in _claims(call[: first + 1], released)
        if statement.write
        and not statement.write.numbered
        and statement.transaction != call[first].transaction
    }
    files = {lock[:2] for lock in call[first].locks & call[then].locks}
    return frozenset(claimed | files)


def is_safe(write: Write) -> bool:
    """Return whether the SQL of a write itself checks the state that it expects, as in compare-and-set."""
    if write.kind == DELETE:
        return bool(write.wheres - {"rowid"}.union(*write.keys))
    if write.kind == INSERT:
        return bool(write.wheres)
    # An UPDATE must compare and set the value or a version. A key that keeps its value does not count.
    changed = write.sets - (write.kept & frozenset().union(*write.keys))
    return bool(changed & write.wheres) or (bool(write.sets) and write.sets <= write.computed)


def is_new(write: Write) -> bool:
    """Return whether no other process can make the rows of a write, because each of their keys has a UUID."""
    names = changed_keys(write)
    return bool(names) and not write.existing and all(any(map(_is_uuid, key[1])) for _, key in names)


def _is_uuid(value: object) -> bool:
    return isinstance(value, str) and bool(_UUID.fullmatch(value))
