"""What the statements of one call say about races, without any check and without any other process.

The rule: a table is read outside of the transaction that writes it, and that transaction does not read it
again. Another process may have written it in between. What makes such a write safe is recognised: SQLite
computes the value itself (`SET n = n + 1`), the UPDATE compares and sets (`WHERE id = ? AND n = ?`), a unique
key refuses the second INSERT, the count of deleted rows is looked at, the row is the call's own since it made
or claimed it, the transaction compares a token and renews it, all calls hold the same lock meanwhile. A
suspicion is not a proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlstress.user_work.guards import Call, guard_between
from sqlstress.user_work.touched import Name, Row, conditions

STALE, STALE_COPY, DEFERRED = "read-outside", "copy-of-read-outside", "deferred-upgrade"
MIXED, FORKED = "connection-mixed", "connection-forked"
GUARDED, MAYBE_GUARDED = "guarded-by-stale-read", "maybe-guarded-by-stale-read"
"""The code checks what it has read, and a write that SQLite computes does not compare it. Of the second
kind the code does not show the check."""
LOST = (STALE, STALE_COPY, GUARDED)
"""Suspicions of lost data."""
WEAK = (MAYBE_GUARDED,)
"""Notes rather than suspicions."""

UPDATE, DELETE, INSERT, OVERWRITE = "update", "delete", "insert", "overwrite"
"""What a statement does to the one table that it names; OVERWRITE is an INSERT that replaces rows."""

Table = tuple[str, str]
"""A database's file, and the name of a table in it."""

_BEGINS_DEFERRED = re.compile(
    r"\s*(begin(\s+deferred)?(\s+transaction)?\s*;?\s*$|savepoint\b)", re.IGNORECASE
)

_UUID = re.compile(r"[\da-f]{8}-?[\da-f]{4}-?[1467][\da-f]{3}-?[89ab][\da-f]{3}-?[\da-f]{12}", re.IGNORECASE)
"""One made of the time or at random: those of versions 3 and 5 follow from a name."""
_MAKES = re.compile(r"\s*create\b", re.IGNORECASE)


class Write(NamedTuple):
    """What a statement writes itself; what triggers write is not in it."""

    table: Table
    kind: str
    sets: frozenset[str] = frozenset()
    """Columns that it sets; of a plain INSERT none are known.

    The time of a change that SQLite computes is left out: nobody reckons it from what was read.
    """
    computed: frozenset[str] = frozenset()
    """Columns whose values SQLite makes of this table's own; of the others they come from outside."""
    wheres: frozenset[str] = frozenset()
    """Columns of this table that decide which rows are written; of an INSERT, if it selects them."""
    keys: tuple[frozenset[str], ...] = ()
    """The columns of the table's primary key, and of each other unique one."""
    kept: frozenset[str] = frozenset()
    """Of an UPDATE, columns that it sets to the value that each of its rows has already."""
    counted: bool = False
    """Whether the user's code looks at how many rows it wrote, as far as that can be seen."""
    insists: bool = False
    """Whether it takes the result of a library's call, which raises an error by that number instead."""
    unseen: bool = False
    """Whether it may write nothing without an error, and nobody, nor any library, looks at that number."""
    rows: frozenset[Row] | None = None
    """The rows that it changes or removes, or that were not there before; None: not known."""
    there: frozenset[Row] = frozenset()
    """Of an INSERT, the rows that are there already, and that an OVERWRITE replaces."""
    numbered: bool = False
    """Whether SQLite gave the new row its number, so that no key could have refused it."""
    refused: frozenset[str] = frozenset()
    """Columns that it sets, and that a CHECK or a trigger can refuse."""


class Statement(NamedTuple):
    """A statement that a call ran."""

    sql: str
    at: str
    """Where the user's code ran it: "bank.py:27"."""
    spot: int = 0
    """Which call in that line it was; 0: not known."""
    transaction: int = 0
    """The number of the transaction it belongs to: one alone has its own."""
    snapshot: int = 0
    """The number of the transaction whose snapshot it has: of a query that is still open; 0: its own."""
    who: int = 0
    """The thread or the task that ran it."""
    beside: bool = False
    """Whether a thread ran it that the call does not wait for."""
    reads: Mapping[Table, frozenset[str]] = {}
    """Columns that it reads, by table; count(*) reads the column ""."""
    write: Write | None = None
    found: bool | None = None
    """Whether a query found anything; None: not known."""
    seeks_drawn: bool = False
    """Whether a query seeks what the call has drawn at random, so that nobody else has it."""
    summarises: bool = False
    """Whether a query's rows depend on more rows than they show: count, max, the first one."""
    forked: bool = False
    """Whether its connection was opened in another process, and came here by a fork."""
    locks: frozenset[tuple[int, int, int]] = frozenset()
    """The files that the process has locked meanwhile: device, file, and which of its locks it is."""
    rows: frozenset[Row] | None = None
    """The rows that a query reads; None if they are not known."""
    calls: tuple[Call, ...] = ()
    """The user's functions that are under way, the outermost first; empty if they are not known."""

    def shares_snapshot(self, other: Statement) -> bool:
        """Return whether no other process can write between them, or their transaction fails."""
        return (self.snapshot or self.transaction) == (other.snapshot or other.transaction)


class Suspicion(NamedTuple):
    """Two statements that are a race, if somebody else comes between them."""

    code: str
    table: str
    first: Statement
    then: Statement
    guards: frozenset[object] = frozenset()
    """What the call took before the first, and gave back after the other: a lock, if all calls take it."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What is the same each time the same lines run."""
        return self.code, self.table, self.first.at, self.then.at


def suspicions(call: Sequence[Statement]) -> Iterator[Suspicion]:
    """Yield what is suspicious in one call, in the order of its writes."""
    # Up to where it has made its tables, if it does, a library sets itself up.
    makes = [index for index, one in enumerate(call) if _MAKES.match(one.sql)]
    call = call[makes[-1] + 1 :] if makes else call
    yield from _stale(call)
    yield from _guarded(call)
    yield from _deferred(call)
    yield from _mixed(call)
    yield from _forked(call)


# Columns that are written back with a row, and that nobody changes.


def constant(calls: Iterable[Sequence[Statement]]) -> set[tuple[Table, str]]:
    """Return the columns that UPDATEs set, and to nothing but the value that their rows had."""
    writes = [one.write for call in calls for one in call if one.write]
    # One that replaces all columns of a row has none in `sets`.
    replaced = {write.table for write in writes if write.kind == OVERWRITE and not write.sets}
    changed = {
        (write.table, column)
        for write in writes
        for column in write.sets - write.kept
        if write.kind != UPDATE or write.rows != frozenset()
    }
    kept = {(write.table, column) for write in writes for column in write.kept}
    return {one for one in kept - changed if one[0] not in replaced}


def without(columns: set[tuple[Table, str]], call: Sequence[Statement]) -> list[Statement]:
    """Return a call as if its writes left some columns alone, unless they compare them."""
    found = []
    for one in call:
        if write := one.write:
            left_alone = {column for table, column in columns if table == write.table} - write.wheres
            one = one._replace(write=write._replace(sets=write.sets - left_alone))
        found.append(one)
    return found


# A table that is read outside of the transaction that writes it.


def _stale(call: Sequence[Statement]) -> Iterator[Suspicion]:
    settling: list[int] = []
    """Writes that no other process can have come before unseen."""
    for index, one in enumerate(call):
        if not (write := one.write):
            continue
        if _reads_inside(call[:index], one, write) or _is_safe(write):
            settling.append(index)
            continue
        queries = [
            query
            for number, query in reversed([*enumerate(call[:index])])
            if query.write is None
            and not (query.seeks_drawn and query.found is False)
            and not query.shares_snapshot(one)
            and write.table in query.reads
            and (query.who == one.who or not (query.beside or one.beside))
            and _depends(one, write, query)
            and not _renews_token(call, number, index)
            and not any(_settles(call[other], query, write) for other in settling if other > number)
        ]
        if queries and not _is_own(call[:index], write):
            # Of several the one that asked for the same row, as far as their ends say it.
            same = (query for query in queries if query.sql.split()[-1:] == one.sql.split()[-1:])
            first = next(same, queries[0])
            guards = _guards(call, call.index(first), index)
            yield Suspicion(STALE, write.table[1], first, one, guards)


def _guarded(call: Sequence[Statement]) -> Iterator[Suspicion]:
    """Yield writes that SQLite computes, where the call has read the column outside of their transaction.

    Such a write loses no update. But a check of the value, such as of a balance, may no longer hold.
    """
    for index, statement in enumerate(call):
        write = statement.write
        if not write or write.kind not in (UPDATE, OVERWRITE) or write.sets & write.wheres:
            continue
        columns = (write.sets & write.computed) - write.refused
        read = [
            (number, query)
            for number, query in reversed([*enumerate(call[:index])])
            if query.write is None
            and columns & query.reads.get(write.table, frozenset())
            and _may_read(query, write)
            and (query.who == statement.who or not (query.beside or statement.beside))
        ]
        is_read_inside = any(query.shares_snapshot(statement) for _, query in read)
        queries = [query for number, query in read if not _renews_token(call, number, index)]
        if not queries or is_read_inside or _is_own(call[:index], write):
            continue
        kinds = [_guard_kind(query, statement, columns) for query in queries]
        if found := next((kind for kind in (GUARDED, MAYBE_GUARDED) if kind in kinds), None):
            query = queries[kinds.index(found)]
            yield Suspicion(found, write.table[1], query, statement, _guards(call, call.index(query), index))


def _may_read(query: Statement, write: Write) -> bool:
    """Return whether a query may have read a row that a write changes."""
    if query.rows is None or write.rows is None:
        return True
    names = {name for row in query.rows for name in row}
    return any(name in names for row in (*write.rows, *write.there) for name in row)


def _guard_kind(query: Statement, statement: Statement, columns: frozenset[str]) -> str | None:
    """Return the kind of suspicion that the code between a query and a write makes; None if there is none."""
    assert statement.write
    read = query.reads[statement.write.table]
    by_rows = bool(columns & conditions(query.sql))
    guard = guard_between(query.calls, statement.calls, columns, read, by_rows)
    if guard and not guard.of_others:
        return GUARDED if guard.exists else None
    return GUARDED if guard and guard.exists else MAYBE_GUARDED


def _settles(between: Statement, query: Statement, later: Write) -> bool:
    """Return whether a safe write is what a query was for, so that a later one has nothing to do with it."""
    write = between.write
    if not write or write.table != later.table:
        return False
    is_same = bool(_touched(write) & _touched(later))
    if between.shares_snapshot(query):
        # The transaction is over: what it read of this row may have been changed since.
        return not is_same
    is_other = later.kind == INSERT or None not in (write.rows, later.rows)
    return (is_same or not is_other) and _depends(between, write, query)


def _reads_inside(earlier: Sequence[Statement], one: Statement, write: Write) -> bool:
    """Return whether what a statement writes was read before it, and can't have been changed since.

    Of an UPDATE one of the columns that it sets must have been read: others say that its row is there.
    """
    table, sets = write.table, write.sets - write.computed if write.kind == UPDATE else frozenset[str]()
    return any(
        other.shares_snapshot(one)
        and table in other.reads
        and (not sets or bool(sets & other.reads[table]))
        and (other.write is None or other.write.table != table or _is_safe(other.write))
        for other in earlier
    )


def _renews_token(call: Sequence[Statement], first: int, then: int) -> bool:
    """Return whether a call reads a token before a query and again in the transaction, which changes it.

    Who finds there what it found before knows that its query is not outdated.
    """
    before = {one.sql for one in call[:first] if not one.write and not one.shares_snapshot(call[then])}
    inside = [(index, one) for index, one in enumerate(call) if one.transaction == call[then].transaction]
    changed = {one.write.table for _, one in inside if one.write}
    again = (one for index, one in inside if index < then and not one.write and one.sql in before)
    return any(changed & {*one.reads} for one in again)


def _is_own(earlier: Sequence[Statement], write: Write) -> bool:
    """Return whether the call itself has made, or won, each row that a statement changes."""
    won = {name for _, name in _won(earlier, _names(write))}
    rows = write.rows or ()
    return bool(rows) and all(won & {(write.table, name) for name in row} for row in rows)


def _names(write: Write) -> set[tuple[Table, Name]]:
    return {(write.table, name) for row in write.rows or () for name in row}


def _touched(write: Write) -> set[tuple[Table, Name]]:
    return _names(write) | {(write.table, name) for row in write.there for name in row}


def _won(
    call: Sequence[Statement], wanted: set[tuple[Table, Name]]
) -> Iterator[tuple[Statement, tuple[Table, Name]]]:
    """Yield which of some rows a call makes or claims, so that only one process can; by which statement."""
    for index, one in enumerate(call):
        names = _names(one.write) & wanted if one.write else set()
        if one.write and names and _knows(call, index, one.write) and _wins(call[:index], one, one.write):
            yield from ((one, name) for name in names)


def _knows(call: Sequence[Statement], index: int, write: Write) -> bool:
    """Return whether a call can know that a statement wrote, by its number or by what it reads."""
    if not write.unseen or _is_new(write):
        return True
    queries = [(number > index, other) for number, other in enumerate(call) if other.write is None]
    return any(
        (later and "changes()" in other.sql.lower())
        or (write.table in other.reads and (later or other.shares_snapshot(call[index])))
        for later, other in queries
    )


def _wins(earlier: Sequence[Statement], one: Statement, write: Write) -> bool:
    """Return whether a statement makes rows that a key allows once, or takes them from what others search."""
    if write.kind == INSERT:
        return True
    if not _is_safe(write) and not _reads_inside(earlier, one, write):
        return False
    if write.kind != UPDATE:
        return write.kind == OVERWRITE
    queries = [query for query in earlier if query.write is None and write.table in query.reads]
    searched = frozenset(word for query in queries for word in conditions(query.sql))
    # A value or a version is read before it is compared: of these the next process finds the new one.
    compared = write.wheres.difference(*(query.reads[write.table] for query in queries))
    return bool(write.sets.difference(*write.keys) & (searched | compared))


def _guards(call: Sequence[Statement], first: int, then: int) -> frozenset[object]:
    """Return the rows that are won before a query and written again after a statement, and locked files.

    The query itself may be what sees that they are won.
    """
    later = (one.write for one in call[then + 1 :] if one.write and one.write.kind in (UPDATE, DELETE))
    given_back = {name for write in later for name in _names(write)}
    taken = {
        name
        for one, name in _won(call[: first + 1], given_back)
        if one.write and not one.write.numbered and one.transaction != call[first].transaction
    }
    files = {lock[:2] for lock in call[first].locks & call[then].locks}
    return frozenset(taken | files)


def _is_safe(write: Write) -> bool:
    """Return whether a write says itself what it expects to find."""
    if write.kind == DELETE:
        return bool(write.wheres - {"rowid"}.union(*write.keys))
    if write.kind == INSERT:
        return bool(write.wheres)
    # It compares and sets: the value, or a version, and not a key that stays as it is.
    changed = write.sets - (write.kept & frozenset().union(*write.keys))
    return bool(changed & write.wheres) or (bool(write.sets) and write.sets <= write.computed)


def _depends(one: Statement, write: Write, query: Statement) -> bool:
    """Return whether what a statement writes may follow from what a query read."""
    columns = query.reads[write.table]
    if write.kind == UPDATE:
        return bool((write.sets - write.computed) & columns)
    if write.kind == DELETE:
        # What one call of a library returns that does both is the row, and not how many it removed.
        is_counted = write.insists or (write.counted and (query.at, query.spot) != (one.at, one.spot))
        return query.found is not False and not is_counted
    if write.kind == OVERWRITE and not _is_new(write):
        # After a miss it overwrites nothing, or what somebody else made of the same.
        return query.found is True and _takes(write, columns)
    # A number that SQLite gives is no key that could refuse the row.
    given = {frozenset(key) for _, (key, _) in _touched(write)}
    keys = write.keys[1:] if write.numbered else write.keys
    refused = any(key in given and key <= columns for key in keys)
    return not refused and (query.found is False or query.summarises) and _takes(write, columns)


def _is_new(write: Write) -> bool:
    """Return whether no other process makes the same rows: each of their keys has a UUID."""
    names = _names(write)
    return bool(names) and not write.there and all(any(map(_is_uuid, key[1])) for _, key in names)


def _is_uuid(value: object) -> bool:
    return isinstance(value, str) and bool(_UUID.fullmatch(value))


def _takes(write: Write, columns: frozenset[str]) -> bool:
    """Return whether what a row gets from outside may follow from these columns."""
    if write.sets:
        return bool((write.sets - write.computed) & columns)
    # It sets all. Of one that computes nothing a query may decide whatever it read.
    return not write.computed or bool(columns.difference(write.computed, *write.keys))


# A copy whose source is read outside of the transaction that writes the copy.


def copies(calls: Iterable[Sequence[Statement]]) -> set[tuple[Table, Table]]:
    """Return (source, copy): tables of which a transaction changes the first, and removes from the second."""
    found = set()
    for call in calls:
        writes = [(one.transaction, one.write) for one in call if one.write]
        found |= {
            (source.table, copy.table)
            for transaction, copy in writes
            for other, source in writes
            if transaction == other and copy.kind == DELETE != source.kind and source.table != copy.table
        }
    return found


def stale_copies(call: Sequence[Statement], pairs: set[tuple[Table, Table]]) -> Iterator[Suspicion]:
    """Yield where a call writes a copy of what it has read outside of that transaction."""
    for index, one in enumerate(call):
        if not one.write or one.write.kind == DELETE:
            continue
        for source in (source for source, copy in pairs if copy == one.write.table):
            # What is written beside its source is no copy of what was read before.
            inside = any(
                other.transaction == one.transaction
                and (source in other.reads or (other.write and other.write.table == source))
                for other in call
            )
            queries = [query for query in call[:index] if source in query.reads and query.write is None]
            if queries and not inside:
                yield Suspicion(STALE_COPY, one.write.table[1], queries[-1], one)


# Transactions that begin DEFERRED, read, and then write; and those of several tasks.


def _deferred(call: Sequence[Statement]) -> Iterator[Suspicion]:
    firsts: dict[int, Statement | None] = {}
    """By transaction, the first query of one that began DEFERRED and has not written; None: there is none."""
    can_fail: set[int] = set()
    for one in call:
        if one.transaction not in firsts:
            firsts[one.transaction] = None
            if _BEGINS_DEFERRED.match(one.sql):
                can_fail.add(one.transaction)
        if one.transaction in can_fail:
            first = firsts[one.transaction]
            if one.write:
                can_fail.discard(one.transaction)
                if first:
                    yield Suspicion(DEFERRED, one.write.table[1], first, one)
            elif one.reads and not first:
                firsts[one.transaction] = one


def _mixed(call: Sequence[Statement]) -> Iterator[Suspicion]:
    firsts: dict[int, Statement] = {}
    for one in call:
        first = firsts.setdefault(one.transaction, one)
        if one.who != first.who and one.write:
            yield Suspicion(MIXED, one.write.table[1], first, one)


def _forked(call: Sequence[Statement]) -> Iterator[Suspicion]:
    used = [one for one in call if one.forked]
    if used:
        yield Suspicion(FORKED, "", used[0], used[-1])
