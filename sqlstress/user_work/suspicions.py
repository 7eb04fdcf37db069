"""Signs of races in the SQL statements of a single call of a transaction, without other processes.

The rule: a call reads a table outside of the transaction that writes the table, and that transaction does not
read the table again. Another process may have written the table in between. A suspicion is not a proof.

Such a write is recognised as safe in these cases:

- In the source code nothing leads from what was read to the write, as in a page that is shown.
- SQLite computes the value itself: `SET n = n + 1`.
- The UPDATE compares and sets: `WHERE id = ? AND n = ?`.
- A unique key refuses the second INSERT.
- The code looks at the number of deleted rows.
- The call itself made the row, or claimed it: it changed the row so that no other process takes it.
- The transaction compares a token, such as a version number, and renews it.
- All calls hold the same lock during the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sqlstress.user_work.dependence import may_depend
from sqlstress.user_work.guards import guard_between
from sqlstress.user_work.protected_writes import (
    all_keys,
    held_locks,
    is_new,
    is_own,
    is_safe,
    reads_inside,
    renews_token,
)
from sqlstress.user_work.touched import conditions, parse_change, parse_sets
from sqlstress.user_work.traced_statements import (
    DELETE,
    INSERT,
    OVERWRITE,
    UPDATE,
    Table,
    TracedStatement,
    Write,
)

STALE, STALE_COPY, DEFERRED = "read-outside", "copy-of-read-outside", "deferred-upgrade"
MIXED, FORKED = "connection-mixed", "connection-forked"
GUARDED, MAYBE_GUARDED = "guarded-by-stale-read", "maybe-guarded-by-stale-read"
"""Kinds of suspicions about a value that the code reads and checks, such as a balance.

A later statement changes the value (`SET n = n - 1`) without comparing it, so that the check may no longer
hold. MAYBE_GUARDED means that the source code does not show whether there is a check.
"""

SKEW, MIXED_VIEW, EXPIRED = "decision-on-old-data", "mixed-view", "expired-lease"
"""Kinds of suspicions that need the calls of all transactions, or more than one table: see program_races."""

DOUBLE_INSERT, OLD_INSERT, CLAIM, USE = "double-insert", "insert-on-old-data", "double-claim", "double-use"
"""Effects of the race of a STALE suspicion, other than a lost update.

Two processes insert the row that both have missed; the inserted row depends on old data, such as a count; two
processes take the row that both have found by its state; or they use the row that both then delete.
"""

LOST_DATA = (STALE, STALE_COPY, GUARDED, SKEW, MIXED_VIEW, EXPIRED)
"""Kinds of suspicions that data may be lost."""
NOTES_ONLY = (MAYBE_GUARDED,)
"""Kinds of suspicions that are only reported as notes, because they are too uncertain."""

BEGINS_DEFERRED = re.compile(r"\s*(begin(\s+deferred)?(\s+transaction)?\s*;?\s*$|savepoint\b)", re.IGNORECASE)

_EQUALITY = re.compile(r"(\w+)[\"`\]]?\s*(?:=|\bis\b|\bin\b)")
"""Pattern of a column that a condition compares with a value."""
_EXTREME = re.compile(r"\s*(?:max|min)\s*\(\s*[\"`\[]?(\w+)[\"`\]]?\s*,[^()]*\)\s*", re.IGNORECASE)
"""Pattern of the new value in an assignment such as `seen = max(seen, 5)`."""
_SELECTS = re.compile(r"\bselect\b", re.IGNORECASE)
_CREATES = re.compile(r"\s*create\b", re.IGNORECASE)


class Suspicion(NamedTuple):
    """Pair of statements that is a race if another process writes between the two."""

    code: str
    """Kind of the suspicion, such as STALE."""
    table: str
    """Name of the table; empty for FORKED."""
    first: TracedStatement
    then: TracedStatement
    """Write that depends on the first statement; for FORKED, the last statement on the connection."""

    locks: frozenset[object] = frozenset()
    """Locks that the call acquired before the first statement and released after the second.

    If every call of the transaction holds the same lock, there is no race.
    """

    @property
    def is_in_else(self) -> bool:
        """Whether a script runs the write only because a condition on the result of the query is false."""
        query, write = self.first.script, self.then.script
        return bool(query and write and query.results & (write.otherwise - write.conditions))

    @property
    def effect(self) -> str:
        """Effect of the race, such as DOUBLE_INSERT; empty for a lost update, and for other kinds."""
        write = self.then.write
        if self.code != STALE or not write:
            return ""
        if write.kind == INSERT:
            return DOUBLE_INSERT if self.first.found is False else OLD_INSERT
        if write.kind == DELETE:
            return USE
        _, _, where = self.first.sql.lower().partition("where")
        tested = {words[1] for words in _EQUALITY.finditer(where)}
        return CLAIM if tested & write.sets else ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Key that is equal each time the same lines of the user's code run."""
        return self.code, self.table, self.first.at, self.then.at


def suspicions(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    """Yield the suspicions in the statements of one call: by kind, then in the order of the writes.

    Suspicions about copies are not included: see `stale_copies`.
    """
    # Skip the statements up to the last CREATE: a library sets up its tables in the first call.
    creating = [index for index, statement in enumerate(call) if _CREATES.match(statement.sql)]
    call = call[creating[-1] + 1 :] if creating else call
    yield from _stale(call)
    yield from _guarded(call)
    yield from _deferred(call)
    yield from _mixed(call)
    yield from _forked(call)


# Columns that never change. An ORM may set all columns of a row, most of them to the value that they have.


def unchanged_columns(calls: Iterable[Sequence[TracedStatement]]) -> set[tuple[Table, str]]:
    """Return the columns, with their tables, that UPDATEs set only to the value that the row already had."""
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
    """Return the statements of a call as if its writes did not set these columns.

    A column that the write also compares, in its WHERE, stays.
    """
    statements = []
    for statement in call:
        if write := statement.write:
            left_alone = {column for table, column in columns if table == write.table} - write.wheres
            statement = statement._replace(write=write._replace(sets=write.sets - left_alone))
        statements.append(statement)
    return statements


# Suspicions about a table that is read outside of the transaction that writes it.


def _stale(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    safe_writes: list[int] = []
    """Indexes of safe writes in the call: a write of another process before them would have been noticed."""
    for index, statement in enumerate(call):
        if not (write := statement.write):
            continue
        if reads_inside(call[:index], statement, write) or is_safe(write):
            safe_writes.append(index)
            continue
        queries = [
            query
            for position, query in reversed([*enumerate(call[:index])])
            if query.write is None
            and not (query.seeks_drawn and query.found is False)
            and not query.shares_snapshot(statement)
            and write.table in query.reads
            and (query.runner == statement.runner or not (query.in_background or statement.in_background))
            and _depends(statement, write, query)
            and _follows(statement, write, query)
            and not renews_token(call, position, index)
            and not any(_used_result(call[other], query, write) for other in safe_writes if other > position)
        ]
        if queries and not is_own(call[:index], write):
            # Prefer a query for the same row: its last word, such as the value of the key, is that of the
            # write.
            same = (query for query in queries if query.sql.split()[-1:] == statement.sql.split()[-1:])
            first = next(same, queries[0])
            locks = held_locks(call, call.index(first), index)
            yield Suspicion(STALE, write.table[1], first, statement, locks)


def _guarded(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    """Yield suspicions about checks of values that SQLite computes later, as in `SET n = n - 1`.

    The call has read the column outside of the transaction of the write. Such a write loses no update. But if
    the code has checked the value, such as a balance, the check may no longer hold.
    """
    for index, statement in enumerate(call):
        write = statement.write
        if not write or write.kind not in (UPDATE, OVERWRITE) or write.sets & write.wheres:
            continue
        columns = (write.sets & write.computed) - write.refused - _extremes(statement.sql)
        read = [
            (position, query)
            for position, query in reversed([*enumerate(call[:index])])
            if query.write is None
            and columns & query.reads.get(write.table, frozenset())
            and _may_read(query, write)
            and (query.runner == statement.runner or not (query.in_background or statement.in_background))
        ]
        is_read_inside = any(query.shares_snapshot(statement) for _, query in read)
        queries = [query for position, query in read if not renews_token(call, position, index)]
        if not queries or is_read_inside or is_own(call[:index], write):
            continue
        kinds = [_guard_kind(query, statement, columns) for query in queries]
        if code := next((kind for kind in (GUARDED, MAYBE_GUARDED) if kind in kinds), None):
            query = queries[kinds.index(code)]
            yield Suspicion(
                code, write.table[1], query, statement, held_locks(call, call.index(query), index)
            )


def _extremes(sql: str) -> frozenset[str]:
    """Return the columns that an UPDATE sets to the larger or smaller of the old value and another.

    A stale check before such a write changes nothing: SQLite keeps the larger or smaller value in any case.
    """
    if not (change := parse_change(sql)):
        return frozenset()
    matches = {column: _EXTREME.fullmatch(value) for column, value in parse_sets(change.sets).items()}
    return frozenset(column for column, match in matches.items() if match and match[1].lower() == column)


def _may_read(query: TracedStatement, write: Write) -> bool:
    """Return whether a query may have read a row that a write changes; True if the rows are not known."""
    if query.rows is None or write.rows is None:
        return True
    names = {name for row in query.rows for name in row}
    return any(name in names for row in (*write.rows, *write.existing) for name in row)


def _guard_kind(query: TracedStatement, statement: TracedStatement, columns: frozenset[str]) -> str | None:
    """Return GUARDED or MAYBE_GUARDED, by the checks in the code between a query and a write.

    None if the code has no check. `columns` are the columns that the write computes.
    """
    assert statement.write
    read = query.reads[statement.write.table]
    if query.script and statement.script:
        tested = statement.script.conditions | statement.script.otherwise
        return GUARDED if (query.script.results - (read - columns)) & tested else MAYBE_GUARDED
    by_rows = bool(columns & conditions(query.sql))
    guard = guard_between(query.stack, statement.stack, columns, read, by_rows)
    if guard and not guard.of_others:
        return GUARDED if guard.exists else None
    return GUARDED if guard and guard.exists else MAYBE_GUARDED


def _used_result(between: TracedStatement, query: TracedStatement, later: Write) -> bool:
    """Return whether a safe write `between` already used the result of a query.

    If so, the write `later` does not depend on the query. The safe write noticed any change after the query.
    """
    write = between.write
    if not write or write.table != later.table:
        return False
    is_same = bool(all_keys(write) & all_keys(later))
    if between.shares_snapshot(query):
        # The transaction of the query is over: another process may have changed the row since the query.
        return not is_same
    is_other = later.kind == INSERT or None not in (write.rows, later.rows)
    return (is_same or not is_other) and _depends(between, write, query)


def _depends(statement: TracedStatement, write: Write, query: TracedStatement) -> bool:
    """Return whether the values or rows of a write may depend on the result of a query of its table."""
    columns = query.reads[write.table]
    if write.kind == UPDATE:
        return bool((write.sets - write.computed) & columns)
    if write.kind == DELETE:
        # If the same library call runs query and DELETE, its result is the row and not the row count.
        is_counted = write.insists or (
            write.counted and (query.at, query.spot) != (statement.at, statement.spot)
        )
        if query.counts and not _SELECTS.search(statement.sql):
            # The key comes from elsewhere: only a check, such as for the last row, makes the race.
            guard = guard_between(query.stack, statement.stack, columns, columns, by_rows=False)
            return not is_counted and (guard is None or guard.exists)
        return query.found is not False and not is_counted
    if write.kind == OVERWRITE and not is_new(write):
        # If the query found no row, there is nothing to overwrite, or the same value of another process.
        return query.found is True and _may_take_from(write, columns)
    # If SQLite assigns the rowid, the primary key (the first one) cannot refuse the row.
    key_columns = {frozenset(key) for _, (key, _) in all_keys(write)}
    keys = write.keys[1:] if write.numbered else write.keys
    # An INSERT that ignores an equal key refuses nothing, unless the query searched for that key.
    searched = conditions(query.sql) if write.unseen else columns
    refused = any(key in key_columns and key <= columns and key & searched for key in keys)
    decides = query.found is False or query.summarises or _decides_by_all_rows(query, statement)
    return not refused and decides and _may_take_from(write, columns)


def _decides_by_all_rows(query: TracedStatement, statement: TracedStatement) -> bool:
    """Return whether a query without a condition decides about a row: `if name not in all_names`."""
    return not conditions(query.sql) and may_depend(query.stack, statement.stack, by_rows=True) is True


def _follows(statement: TracedStatement, write: Write, query: TracedStatement) -> bool:
    """Return whether the source code leads from a query's result to a write; True if it does not show this.

    A call that only shows the rows of a query, and then adds a row of its own, loses nothing.
    """
    if write.kind == DELETE:
        return True
    by_rows = write.kind == INSERT or bool(write.sets & conditions(query.sql))
    sets = write.sets if write.kind == UPDATE else frozenset[str]()
    others = query.reads[write.table] - sets if sets else frozenset[str]()
    return may_depend(query.stack, statement.stack, by_rows, sets, others) is not False


def _may_take_from(write: Write, columns: frozenset[str]) -> bool:
    """Return whether the values that the user's code provides for a row may depend on these columns."""
    if write.sets:
        return bool((write.sets - write.computed) & columns)
    # The write sets all columns. If SQLite computes none, each may depend on any column that was read.
    return not write.computed or bool(columns.difference(write.computed, *write.keys))


# Suspicions about copies, such as a cache or a summary: a call reads the source of the copy outside of the
# transaction that writes the copy.


def copies(calls: Iterable[Sequence[TracedStatement]]) -> set[tuple[Table, Table]]:
    """Return pairs of a source table and its copy: a transaction writes the source and deletes the copy."""
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
    """Yield a suspicion for each write of a copy, if the call read the source outside of its transaction.

    `pairs` are source tables and their copies.
    """
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


# Suspicions about transactions: they begin DEFERRED, read and then write; several tasks share a transaction;
# a forked process uses a connection.


def _deferred(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    firsts: dict[int, TracedStatement | None] = {}
    """First query of each transaction; None until the transaction has read."""
    can_fail: set[int] = set()
    """Transactions that began DEFERRED and have not written: their first write can fail to get the lock."""
    for statement in call:
        if statement.transaction not in firsts:
            firsts[statement.transaction] = None
            if BEGINS_DEFERRED.match(statement.sql):
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
        if statement.runner != first.runner and statement.write:
            yield Suspicion(MIXED, statement.write.table[1], first, statement)


def _forked(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    used = [statement for statement in call if statement.forked]
    if used:
        yield Suspicion(FORKED, "", used[0], used[-1])
