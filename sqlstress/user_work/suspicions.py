"""What the statements of one call say about races, without any check and without any other process.

The rule: a table is read outside of the transaction that writes it, and that transaction does not read it
again. Another process may have written it in between. What makes such a write safe is recognised: SQLite
computes the value itself (`SET n = n + 1`), the UPDATE compares and sets (`WHERE id = ? AND n = ?`), a unique
key refuses the second INSERT, the count of deleted rows is looked at. A suspicion is not a proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

STALE, STALE_COPY, DEFERRED = "read-outside", "copy-of-read-outside", "deferred-upgrade"
MIXED, FORKED = "connection-mixed", "connection-forked"

UPDATE, DELETE, INSERT, OVERWRITE = "update", "delete", "insert", "overwrite"
"""What a statement does to the one table that it names; OVERWRITE is an INSERT that replaces rows."""

Table = tuple[str, str]
"""A database's file, and the name of a table in it."""

_BEGINS_DEFERRED = re.compile(
    r"\s*(begin(\s+deferred)?(\s+transaction)?\s*;?\s*$|savepoint\b)", re.IGNORECASE
)

_TELLING = 6
"""Characters of a key that is not in another row's statement by chance."""
_MAKES = re.compile(r"\s*create\b", re.IGNORECASE)


class Write(NamedTuple):
    """What a statement writes itself; what triggers write is not in it."""

    table: Table
    kind: str
    sets: frozenset[str] = frozenset()
    """Columns that it sets; of a plain INSERT none are known."""
    own: frozenset[str] = frozenset()
    """Columns of this table that the values which it writes are made of, by SQLite."""
    wheres: frozenset[str] = frozenset()
    """Columns of this table that decide which rows are written."""
    keys: tuple[frozenset[str], ...] = ()
    """The columns of the table's primary key, and of each other unique one."""
    counted: bool = False
    """Whether the code looks at how many rows it wrote, as far as that can be seen."""


class Statement(NamedTuple):
    """A statement that a call ran."""

    sql: str
    at: str
    """Where the user's code ran it: "bank.py:27"."""
    spot: int = 0
    """Which call in that line it was; 0: not known."""
    transaction: int = 0
    """The number of the transaction it belongs to: one alone has its own."""
    who: int = 0
    """The thread or the task that ran it."""
    reads: Mapping[Table, frozenset[str]] = {}
    """Columns that it reads, by table; count(*) reads the column ""."""
    write: Write | None = None
    found: bool | None = None
    """Whether a query found anything; None: not known."""
    summarises: bool = False
    """Whether a query's rows depend on more rows than they show: count, max, the first one."""
    forked: bool = False
    """Whether its connection was opened in another process, and came here by a fork."""


class Suspicion(NamedTuple):
    """Two statements that are a race, if somebody else comes between them."""

    code: str
    table: str
    first: Statement
    then: Statement

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
    yield from _deferred(call)
    yield from _mixed(call)
    yield from _forked(call)


# A table that is read outside of the transaction that writes it.


def _stale(call: Sequence[Statement]) -> Iterator[Suspicion]:
    settled: dict[Table, int] = {}
    """By table, the last write that no other process can have come before unseen."""
    for index, one in enumerate(call):
        if not (write := one.write):
            continue
        before = call[settled.get(write.table, 0) : index]
        if _reads_inside(call[:index], one, write.table) or _is_safe(write):
            settled[write.table] = index
            continue
        queries = [
            query
            for query in reversed(before)
            if query.write is None
            and query.transaction != one.transaction
            and write.table in query.reads
            and _depends(one, write, query)
        ]
        if queries and not _is_own(call[:index], one, write.table):
            # Of several the one that asked for the same row, as far as their ends say it.
            same = (query for query in queries if query.sql.split()[-1:] == one.sql.split()[-1:])
            yield Suspicion(STALE, write.table[1], next(same, queries[0]), one)


def _reads_inside(earlier: Sequence[Statement], one: Statement, table: Table) -> bool:
    """Return whether the transaction of a statement has read a table before it."""
    return any(
        other.transaction == one.transaction
        and table in other.reads
        and (other.write is None or other.write.table != table or _is_safe(other.write))
        for other in earlier
    )


def _is_own(earlier: Sequence[Statement], one: Statement, table: Table) -> bool:
    """Return whether the call itself has made the row that a statement changes, as far as its key shows."""
    key = one.sql.split()[-1].strip("();")
    return len(key) >= _TELLING and any(
        other.write and other.write.table == table and other.write.kind == INSERT and key in other.sql
        for other in earlier
    )


def _is_safe(write: Write) -> bool:
    """Return whether a write says itself what it expects to find."""
    if write.own:
        return True
    if write.kind == UPDATE:
        return bool(write.wheres & write.sets)  # compares and sets: the value, or a version
    if write.kind == DELETE:
        return bool(write.wheres - {"rowid"}.union(*write.keys))
    return False


def _depends(one: Statement, write: Write, query: Statement) -> bool:
    """Return whether what a statement writes may follow from what a query read."""
    columns = query.reads[write.table]
    if write.kind == UPDATE:
        return bool(write.sets & columns)
    if write.kind == DELETE:
        # What one call of a library returns that does both is the row, and not how many it removed.
        is_counted = write.counted and (query.at, query.spot) != (one.at, one.spot)
        return query.found is not False and not is_counted
    if write.kind == OVERWRITE:
        # After a miss it overwrites nothing, or what somebody else made of the same.
        return query.found is True and (not write.sets or bool(write.sets & columns))
    refused = any(key and key <= columns for key in write.keys)
    return not refused and (query.found is False or query.summarises)


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
            inside = any(other.transaction == one.transaction and source in other.reads for other in call)
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
