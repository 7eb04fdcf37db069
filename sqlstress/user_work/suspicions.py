"""Signs of races in the statements of a single call, without checks and without other processes.

The rule: a table is read outside of the transaction that writes it, and that transaction does not read it
again. Another process may have written the table in between. Such a write is safe, and is recognised as safe,
if SQLite computes the value itself (`SET n = n + 1`), if the UPDATE compares and sets
(`WHERE id = ? AND n = ?`), if a unique key refuses the second INSERT, if the code looks at the number of
deleted rows, if the call itself made or claimed the row, if the transaction compares a token and renews it,
or if all calls hold the same lock during the work. A suspicion is not a proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlstress.user_work.guards import Call, guard_between
from sqlstress.user_work.touched import KeyValue, Row, conditions

STALE, STALE_COPY, DEFERRED = "read-outside", "copy-of-read-outside", "deferred-upgrade"
MIXED, FORKED = "connection-mixed", "connection-forked"
GUARDED, MAYBE_GUARDED = "guarded-by-stale-read", "maybe-guarded-by-stale-read"
"""Suspicions about a value that the code checks, and that a later statement computes in SQLite without
comparing it. MAYBE_GUARDED means that the check cannot be seen in the code."""

LOST_DATA = (STALE, STALE_COPY, GUARDED)
"""Suspicions of lost data."""
NOTES_ONLY = (MAYBE_GUARDED,)
"""Notes rather than suspicions."""

UPDATE, DELETE, INSERT, OVERWRITE = "update", "delete", "insert", "overwrite"
"""Effect of a statement on the table that it names; OVERWRITE is an INSERT that replaces rows."""

Table = tuple[str, str]
"""Database file and table name."""

_BEGINS_DEFERRED = re.compile(
    r"\s*(begin(\s+deferred)?(\s+transaction)?\s*;?\s*$|savepoint\b)", re.IGNORECASE
)

_UUID = re.compile(r"[\da-f]{8}-?[\da-f]{4}-?[1467][\da-f]{3}-?[89ab][\da-f]{3}-?[\da-f]{12}", re.IGNORECASE)
"""UUID made from the time or at random. Versions 3 and 5 are excluded: they follow from a name."""
_CREATES = re.compile(r"\s*create\b", re.IGNORECASE)


class Write(NamedTuple):
    """Direct write of a statement, without the writes of triggers."""

    table: Table
    kind: str
    """UPDATE, DELETE, INSERT or OVERWRITE."""

    sets: frozenset[str] = frozenset()
    """Columns that it sets; empty for a plain INSERT, whose columns are not known.

    A time of change that SQLite computes is left out: no program computes it from earlier reads.
    """
    computed: frozenset[str] = frozenset()
    """Columns whose values SQLite computes from this table's columns; other values come from outside."""
    wheres: frozenset[str] = frozenset()
    """Columns of this table that select the written rows; for an INSERT, those that it selects from."""
    keys: tuple[frozenset[str], ...] = ()
    """Columns of the table's primary key, then those of each other unique key."""
    kept: frozenset[str] = frozenset()
    """Columns that an UPDATE sets to the value that each of its rows already has."""
    counted: bool = False
    """Whether the user's code reads the number of written rows, as far as can be seen."""
    insists: bool = False
    """Whether the code uses the result of a library call that raises if the number of rows is wrong."""
    unseen: bool = False
    """Whether it may write nothing without an error, and neither code nor library reads the row count."""
    rows: frozenset[Row] | None = None
    """Rows that it changes or removes, or that it adds; None if not known."""
    there: frozenset[Row] = frozenset()
    """Existing rows with the keys of an INSERT, which an OVERWRITE replaces."""
    numbered: bool = False
    """Whether SQLite assigned the new row's rowid, so that the primary key could not refuse the row."""
    refused: frozenset[str] = frozenset()
    """Columns that it sets and whose values a CHECK or a trigger can refuse."""


class TracedStatement(NamedTuple):
    """Statement that a call ran."""

    sql: str
    at: str
    """Position in the user's code, such as "bank.py:27"."""
    spot: int = 0
    """Number of the function call within that line; 0 means unknown."""
    transaction: int = 0
    """Number of its transaction; a statement in autocommit mode has its own number."""
    snapshot: int = 0
    """Number of the transaction whose snapshot the statement reads, because an open query has kept it; 0
    means its own transaction."""
    who: int = 0
    """Identifier of the thread or asyncio task that ran it."""
    beside: bool = False
    """Whether a thread ran it that the call does not wait for."""
    reads: Mapping[Table, frozenset[str]] = {}
    """Columns that it reads, by table; count(*) reads the column ""."""
    write: Write | None = None
    """Direct write of the statement; None for a query."""
    found: bool | None = None
    """Whether a query returned a row (for EXISTS: true); None if not known."""
    seeks_drawn: bool = False
    """Whether a query searches for a value that the call drew at random, so that no other call has it."""
    summarises: bool = False
    """Whether a query's rows depend on more rows than they show: count, max, ORDER BY with LIMIT."""
    forked: bool = False
    """Whether its connection was opened in another process and inherited through a fork."""
    locks: frozenset[tuple[int, int, int]] = frozenset()
    """File locks that the process held: device, inode, and the lock's number in this process."""
    rows: frozenset[Row] | None = None
    """Rows that a query reads; None if not known."""
    calls: tuple[Call, ...] = ()
    """Active calls of the user's functions, outermost first; empty if not known."""

    def shares_snapshot(self, other: TracedStatement) -> bool:
        """Return whether both share a snapshot, so that writes of other processes are excluded or refused."""
        return (self.snapshot or self.transaction) == (other.snapshot or other.transaction)


class Suspicion(NamedTuple):
    """Two statements that are a race if another process writes between them."""

    code: str
    """Kind of the suspicion, such as STALE."""
    table: str
    """Name of the table; empty for FORKED."""
    first: TracedStatement
    then: TracedStatement
    """Write that depends on the first statement; for FORKED, the last statement."""

    guards: frozenset[object] = frozenset()
    """Locks acquired before the first statement and released after the second.

    If every call holds one of them, there is no race.
    """

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Key that is equal each time the same lines run."""
        return self.code, self.table, self.first.at, self.then.at


def suspicions(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    """Yield the suspicions in one call: by kind, then in the order of the writes."""
    # Statements up to the last CREATE are skipped: they are the setup of a library.
    creating = [index for index, statement in enumerate(call) if _CREATES.match(statement.sql)]
    call = call[creating[-1] + 1 :] if creating else call
    yield from _stale(call)
    yield from _guarded(call)
    yield from _deferred(call)
    yield from _mixed(call)
    yield from _forked(call)


# Columns that are written back with a row, and never change.


def unchanged_columns(calls: Iterable[Sequence[TracedStatement]]) -> set[tuple[Table, str]]:
    """Return the columns that UPDATEs set, but only to the value that their rows had."""
    writes = [statement.write for call in calls for statement in call if statement.write]
    # `sets` is empty for a statement that replaces all columns of a row.
    replaced = {write.table for write in writes if write.kind == OVERWRITE and not write.sets}
    changed = {
        (write.table, column)
        for write in writes
        for column in write.sets - write.kept
        if write.kind != UPDATE or write.rows != frozenset()
    }
    kept = {(write.table, column) for write in writes for column in write.kept}
    return {pair for pair in kept - changed if pair[0] not in replaced}


def without(columns: set[tuple[Table, str]], call: Sequence[TracedStatement]) -> list[TracedStatement]:
    """Return a call as if its writes did not set these columns, unless they compare them."""
    statements = []
    for statement in call:
        if write := statement.write:
            left_alone = {column for table, column in columns if table == write.table} - write.wheres
            statement = statement._replace(write=write._replace(sets=write.sets - left_alone))
        statements.append(statement)
    return statements


# A table that is read outside of the transaction that writes it.


def _stale(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    safe_writes: list[int] = []
    """Indexes of safe writes: no other process can have written unnoticed before them."""
    for index, statement in enumerate(call):
        if not (write := statement.write):
            continue
        if _reads_inside(call[:index], statement, write) or _is_safe(write):
            safe_writes.append(index)
            continue
        queries = [
            query
            for position, query in reversed([*enumerate(call[:index])])
            if query.write is None
            and not (query.seeks_drawn and query.found is False)
            and not query.shares_snapshot(statement)
            and write.table in query.reads
            and (query.who == statement.who or not (query.beside or statement.beside))
            and _depends(statement, write, query)
            and not _renews_token(call, position, index)
            and not any(_used_result(call[other], query, write) for other in safe_writes if other > position)
        ]
        if queries and not _is_own(call[:index], write):
            # Prefer the query for the same row: the last word of its text is that of the write.
            same = (query for query in queries if query.sql.split()[-1:] == statement.sql.split()[-1:])
            first = next(same, queries[0])
            guards = _held_guards(call, call.index(first), index)
            yield Suspicion(STALE, write.table[1], first, statement, guards)


def _guarded(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    """Yield writes that SQLite computes, if the call read the column outside of their transaction.

    Such a write loses no update. But a check of the value, such as of a balance, may no longer hold.
    """
    for index, statement in enumerate(call):
        write = statement.write
        if not write or write.kind not in (UPDATE, OVERWRITE) or write.sets & write.wheres:
            continue
        columns = (write.sets & write.computed) - write.refused
        read = [
            (position, query)
            for position, query in reversed([*enumerate(call[:index])])
            if query.write is None
            and columns & query.reads.get(write.table, frozenset())
            and _may_read(query, write)
            and (query.who == statement.who or not (query.beside or statement.beside))
        ]
        is_read_inside = any(query.shares_snapshot(statement) for _, query in read)
        queries = [query for position, query in read if not _renews_token(call, position, index)]
        if not queries or is_read_inside or _is_own(call[:index], write):
            continue
        kinds = [_guard_kind(query, statement, columns) for query in queries]
        if code := next((kind for kind in (GUARDED, MAYBE_GUARDED) if kind in kinds), None):
            query = queries[kinds.index(code)]
            yield Suspicion(
                code, write.table[1], query, statement, _held_guards(call, call.index(query), index)
            )


def _may_read(query: TracedStatement, write: Write) -> bool:
    """Return whether a query may have read a row that a write changes."""
    if query.rows is None or write.rows is None:
        return True
    names = {name for row in query.rows for name in row}
    return any(name in names for row in (*write.rows, *write.there) for name in row)


def _guard_kind(query: TracedStatement, statement: TracedStatement, columns: frozenset[str]) -> str | None:
    """Return the kind of suspicion that the code between a query and a write makes; None if there is none."""
    assert statement.write
    read = query.reads[statement.write.table]
    by_rows = bool(columns & conditions(query.sql))
    guard = guard_between(query.calls, statement.calls, columns, read, by_rows)
    if guard and not guard.of_others:
        return GUARDED if guard.exists else None
    return GUARDED if guard and guard.exists else MAYBE_GUARDED


def _used_result(between: TracedStatement, query: TracedStatement, later: Write) -> bool:
    """Return whether a safe write used the result of a query, so that `later` does not depend on it."""
    write = between.write
    if not write or write.table != later.table:
        return False
    is_same = bool(_all_names(write) & _all_names(later))
    if between.shares_snapshot(query):
        # The transaction is over: another process may have changed the row since this query.
        return not is_same
    is_other = later.kind == INSERT or None not in (write.rows, later.rows)
    return (is_same or not is_other) and _depends(between, write, query)


def _reads_inside(earlier: Sequence[TracedStatement], statement: TracedStatement, write: Write) -> bool:
    """Return whether the data for a write was read in its transaction, so that it cannot have changed.

    For an UPDATE, one of the columns that it sets must have been read: other columns only show that the row
    exists.
    """
    table, sets = write.table, write.sets - write.computed if write.kind == UPDATE else frozenset[str]()
    return any(
        other.shares_snapshot(statement)
        and table in other.reads
        and (not sets or bool(sets & other.reads[table]))
        and (other.write is None or other.write.table != table or _is_safe(other.write))
        for other in earlier
    )


def _renews_token(call: Sequence[TracedStatement], first: int, then: int) -> bool:
    """Return whether a call reads a token before a query and again in the transaction, which changes it.

    If the token is unchanged there, the result of the query is not outdated.
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


def _is_own(earlier: Sequence[TracedStatement], write: Write) -> bool:
    """Return whether the call itself has made, or claimed, each row that a statement changes."""
    claimed = {name for _, name in _claims(earlier, _names(write))}
    rows = write.rows or ()
    return bool(rows) and all(claimed & {(write.table, name) for name in row} for row in rows)


def _names(write: Write) -> set[tuple[Table, KeyValue]]:
    return {(write.table, name) for row in write.rows or () for name in row}


def _all_names(write: Write) -> set[tuple[Table, KeyValue]]:
    return _names(write) | {(write.table, name) for row in write.there for name in row}


def _claims(
    call: Sequence[TracedStatement], wanted: set[tuple[Table, KeyValue]]
) -> Iterator[tuple[TracedStatement, tuple[Table, KeyValue]]]:
    """Yield (statement, name) for wanted rows that the call makes or claims, so that no other process can."""
    for index, statement in enumerate(call):
        names = _names(statement.write) & wanted if statement.write else set()
        if (
            statement.write
            and names
            and _knows_it_wrote(call, index, statement.write)
            and _is_claim(call[:index], statement, statement.write)
        ):
            yield from ((statement, name) for name in names)


def _knows_it_wrote(call: Sequence[TracedStatement], index: int, write: Write) -> bool:
    """Return whether a call can know that a statement wrote, from its row count or a later read."""
    if not write.unseen or _is_new(write):
        return True
    queries = [(number > index, other) for number, other in enumerate(call) if other.write is None]
    return any(
        (later and "changes()" in other.sql.lower())
        or (write.table in other.reads and (later or other.shares_snapshot(call[index])))
        for later, other in queries
    )


def _is_claim(earlier: Sequence[TracedStatement], statement: TracedStatement, write: Write) -> bool:
    """Return whether only one process can do a write: a key refuses it, or its search no longer matches."""
    if write.kind == INSERT:
        return True
    if not _is_safe(write) and not _reads_inside(earlier, statement, write):
        return False
    if write.kind != UPDATE:
        return write.kind == OVERWRITE
    queries = [query for query in earlier if query.write is None and write.table in query.reads]
    searched = frozenset(word for query in queries for word in conditions(query.sql))
    # Values and versions that were read first do not count: the next process reads and compares the new one.
    compared = write.wheres.difference(*(query.reads[write.table] for query in queries))
    return bool(write.sets.difference(*write.keys) & (searched | compared))


def _held_guards(call: Sequence[TracedStatement], first: int, then: int) -> frozenset[object]:
    """Return the locks around a query and a statement: claimed and released rows, and locked files.

    A row is claimed up to the query, in another transaction, and changed again after the statement. The query
    itself may show that the row was claimed.
    """
    later = (
        statement.write
        for statement in call[then + 1 :]
        if statement.write and statement.write.kind in (UPDATE, DELETE)
    )
    released = {name for write in later for name in _names(write)}
    claimed = {
        name
        for statement, name in _claims(call[: first + 1], released)
        if statement.write
        and not statement.write.numbered
        and statement.transaction != call[first].transaction
    }
    files = {lock[:2] for lock in call[first].locks & call[then].locks}
    return frozenset(claimed | files)


def _is_safe(write: Write) -> bool:
    """Return whether a write itself checks the state that it expects."""
    if write.kind == DELETE:
        return bool(write.wheres - {"rowid"}.union(*write.keys))
    if write.kind == INSERT:
        return bool(write.wheres)
    # It compares and sets the value, or a version, and not a key that keeps its value.
    changed = write.sets - (write.kept & frozenset().union(*write.keys))
    return bool(changed & write.wheres) or (bool(write.sets) and write.sets <= write.computed)


def _depends(statement: TracedStatement, write: Write, query: TracedStatement) -> bool:
    """Return whether the values or rows of a write may depend on the result of a query."""
    columns = query.reads[write.table]
    if write.kind == UPDATE:
        return bool((write.sets - write.computed) & columns)
    if write.kind == DELETE:
        # A library call that runs both statements returns the row, not the number of deleted rows.
        is_counted = write.insists or (
            write.counted and (query.at, query.spot) != (statement.at, statement.spot)
        )
        return query.found is not False and not is_counted
    if write.kind == OVERWRITE and not _is_new(write):
        # After a miss it overwrites nothing, or the same value made by another process.
        return query.found is True and _may_take_from(write, columns)
    # A rowid that SQLite assigns is no key that could refuse the row.
    key_columns = {frozenset(key) for _, (key, _) in _all_names(write)}
    keys = write.keys[1:] if write.numbered else write.keys
    refused = any(key in key_columns and key <= columns for key in keys)
    return not refused and (query.found is False or query.summarises) and _may_take_from(write, columns)


def _is_new(write: Write) -> bool:
    """Return whether no other process can make the same rows, because each of their keys has a UUID."""
    names = _names(write)
    return bool(names) and not write.there and all(any(map(_is_uuid, key[1])) for _, key in names)


def _is_uuid(value: object) -> bool:
    return isinstance(value, str) and bool(_UUID.fullmatch(value))


def _may_take_from(write: Write, columns: frozenset[str]) -> bool:
    """Return whether the values that a row gets from outside may depend on these columns."""
    if write.sets:
        return bool((write.sets - write.computed) & columns)
    # The write sets all columns. If it computes none, they may depend on any column that was read.
    return not write.computed or bool(columns.difference(write.computed, *write.keys))


# Copies whose source was read outside of the transaction that writes the copy.


def copies(calls: Iterable[Sequence[TracedStatement]]) -> set[tuple[Table, Table]]:
    """Return (source, copy) pairs: a transaction writes the source and deletes from the copy."""
    pairs = set()
    for call in calls:
        writes = [(statement.transaction, statement.write) for statement in call if statement.write]
        pairs |= {
            (source.table, copy.table)
            for transaction, copy in writes
            for other, source in writes
            if transaction == other and copy.kind == DELETE != source.kind and source.table != copy.table
        }
    return pairs


def stale_copies(call: Sequence[TracedStatement], pairs: set[tuple[Table, Table]]) -> Iterator[Suspicion]:
    """Yield statements that write a copy of a table that the call read outside of their transaction."""
    for index, statement in enumerate(call):
        if not statement.write or statement.write.kind == DELETE:
            continue
        for source in (source for source, copy in pairs if copy == statement.write.table):
            # A copy that is written together with its source does not depend on the earlier query.
            inside = any(
                other.transaction == statement.transaction
                and (source in other.reads or (other.write and other.write.table == source))
                for other in call
            )
            queries = [query for query in call[:index] if source in query.reads and query.write is None]
            if queries and not inside:
                yield Suspicion(STALE_COPY, statement.write.table[1], queries[-1], statement)


# DEFERRED transactions that read and then write; transactions that several tasks share; forks.


def _deferred(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    firsts: dict[int, TracedStatement | None] = {}
    """First query by transaction; None until the transaction has read."""
    can_fail: set[int] = set()
    """Transactions that began DEFERRED and have not written: the upgrade to a write lock can fail."""
    for statement in call:
        if statement.transaction not in firsts:
            firsts[statement.transaction] = None
            if _BEGINS_DEFERRED.match(statement.sql):
                can_fail.add(statement.transaction)
        if statement.transaction in can_fail:
            first = firsts[statement.transaction]
            if statement.write:
                can_fail.discard(statement.transaction)
                if first:
                    yield Suspicion(DEFERRED, statement.write.table[1], first, statement)
            elif statement.reads and not first:
                firsts[statement.transaction] = statement


def _mixed(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    firsts: dict[int, TracedStatement] = {}
    for statement in call:
        first = firsts.setdefault(statement.transaction, statement)
        if statement.who != first.who and statement.write:
            yield Suspicion(MIXED, statement.write.table[1], first, statement)


def _forked(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    used = [statement for statement in call if statement.forked]
    if used:
        yield Suspicion(FORKED, "", used[0], used[-1])
