"""Suspicions: pairs of SQL statements of a call that race if another process writes between them.

A call is one call of a user's transaction in the rehearsal (a test run without load), with its statements.
For example: `SELECT n`, and then, in another transaction, `UPDATE ... SET n = ?` with the result + 1. Another
process may have written n between the two statements (kind STALE). A suspicion is no proof.

A write is safe, and yields no suspicion, in these cases:

- The user's source code does not use the query's result for the write.
- SQLite computes the value itself: `SET n = n + 1`.
- The UPDATE compares and sets: `WHERE id = ? AND n = ?`.
- A unique key refuses the second INSERT.
- The code reads the row count of a DELETE. So it knows if another process has deleted the row before.
- The call itself has added the row, or claimed it: `SET owner = 5 WHERE owner IS NULL`.
- The transaction compares a token, such as a version number, and renews it.
- All calls hold the same lock from the query to the write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sqlstress.races.dependence import may_depend
from sqlstress.races.guards import guard_between
from sqlstress.races.protected_writes import (
    all_keys,
    held_locks,
    is_new,
    is_safe,
    owns_rows,
    reads_inside,
    renews_token,
    tests_claim,
)
from sqlstress.races.touched import conditions, may_ignore, parse_change, parse_sets, searches_range
from sqlstress.races.traced_statements import (
    DELETE,
    INSERT,
    OVERWRITE,
    UPDATE,
    Table,
    TracedStatement,
    Write,
)

STALE, STALE_COPY = "read-outside", "copy-of-read-outside"
"""Kinds of suspicions about a write that uses the result of a query in an earlier transaction.

STALE: `SELECT n`, then `SET n = ?` with the result + 1. STALE_COPY: the query reads a table, and the write
stores the data in another table, such as a cache.
"""
DEFERRED, MIXED, FORKED = "deferred-upgrade", "connection-mixed", "connection-forked"
"""Kinds of suspicions about wrong use of a transaction or connection.

DEFERRED: BEGIN, then a query, then a write, which fails if another process has written in between. MIXED: two
tasks or threads share a transaction. FORKED: a forked process uses its parent's connection.
"""
GUARDED, MAYBE_GUARDED = "guarded-by-stale-read", "maybe-guarded-by-stale-read"
"""Kinds of suspicions about a guard: a condition in the user's code, such as `if n >= 10`.

GUARDED: `SELECT n`, then `if n >= 10`, then `SET n = n - 10`, without `WHERE n >= 10`. By then n may be less
than 10. MAYBE_GUARDED: `SELECT n`, then `SET n = n - 10`; the source does not show whether there is a guard.
"""

SKEW, MIXED_VIEW, SPLIT_VIEW = "decision-on-old-data", "mixed-view", "split-view"
FOLLOWED_ID, OFFSET_PAGES = "followed-id", "offset-pages"
"""Kinds of suspicions about calls of different transactions, which `program_races` describes.

For example, SKEW: each of two calls decides by a table that the other call changes.
"""

UNREAD_COUNT, SECONDS = "unread-row-count", "time-in-seconds"
LAST_ROW, REUSED_ID = "last-row", "reused-id"
OLD_ID, RESET, CASCADE = "id-of-another-row", "reset-column", "replaced-parent"
UNREAD_VERSION, UNREAD_ROWS, EXPIRED = "unread-version", "unread-rows", "expired-lease"
NULL_KEY, SKIPPED_TRIGGER = "null-in-conflict-key", "skipped-trigger"
STAGING, TEXT_TIME, MIXED_TIMES = "shared-staging", "text-time", "mixed-times"
SECOND_SAVE, NULL_TWIN, KEPT_ID = "second-save", "null-twin", "kept-id"
"""Kinds of suspicions about SQL that only seems to prevent a race, which `weak_checks` describes.

For example, UNREAD_COUNT: `UPDATE ... WHERE state = 'queued'` changes no row, but the code goes on.
"""

FROM_MEMORY, NEEDLESS_LOCK = "value-from-memory", "lock-without-write"
"""Kinds of suspicions that only several calls of a transaction show; see `program_races`.

FROM_MEMORY: each call writes the next number of a counter in a variable, such as 5, 6, 7. NEEDLESS_LOCK: a
transaction only reads, but begins with BEGIN IMMEDIATE.
"""
OLD_VALUE = "value-from-earlier-call"
"""Kind of suspicions about a write of a value that an earlier call has read, as from a cache."""

WHOLE_ROW = "whole-row"
DOUBLE_INSERT, RANGE_INSERT, OLD_INSERT = "double-insert", "double-insert-in-range", "insert-on-old-data"
KEYED_INSERT = "double-insert-despite-key"
CLAIM, USE = "double-claim", "double-use"
"""Effects of a race of the kind STALE, in which two processes run the query, and then both run the write.

Without any of these, the effect is a lost update.

- WHOLE_ROW: the UPDATE sets a column to a new value, and the other columns to the values from the query.
- DOUBLE_INSERT: two processes insert a row after both found none.
- KEYED_INSERT: a double insert in spite of DO NOTHING or OR IGNORE. The table may have a unique key, such as
  an id. But the two rows differ in this key, so SQLite adds both rows.
- RANGE_INSERT: two processes insert a row after both found none in a range, such as `start < ?`. The rows may
  have different keys, so no unique key refuses the second row.
- OLD_INSERT: the inserted row depends on old data, such as a count.
- CLAIM: two processes take a row that both found by its state, such as a job in the state "queued".
- USE: two processes use a row, and then both delete it.
"""

LOST_DATA = (
    *(STALE, STALE_COPY, GUARDED, SKEW, MIXED_VIEW, SPLIT_VIEW, EXPIRED, FROM_MEMORY, OLD_VALUE, UNREAD_ROWS),
    *(UNREAD_COUNT, SECONDS, LAST_ROW, REUSED_ID, FOLLOWED_ID, OLD_ID, RESET, CASCADE, UNREAD_VERSION),
    *(OFFSET_PAGES, NULL_KEY, SKIPPED_TRIGGER, STAGING, TEXT_TIME, MIXED_TIMES, SECOND_SAVE),
)
"""Kinds of suspicions in which the race can lose data or write wrong data."""
NO_RACE = (
    *(RESET, CASCADE, NULL_KEY, NULL_TWIN, SKIPPED_TRIGGER, TEXT_TIME, MIXED_TIMES, SECOND_SAVE),
    *(OLD_ID, REUSED_ID, FOLLOWED_ID, OFFSET_PAGES, KEPT_ID),
)
"""Kinds of suspicions whose faults a single process shows, too."""
IF_FAILED = (NULL_TWIN, KEPT_ID)
"""Kinds of suspicions that the report only shows if a check failed, because they are often intended."""
NOTES_ONLY = (MAYBE_GUARDED,)
"""Kinds of suspicions that the report only shows as notes, because a race is too uncertain."""

BEGINS_DEFERRED = re.compile(r"\s*(begin(\s+deferred)?(\s+transaction)?\s*;?\s*$|savepoint\b)", re.IGNORECASE)
"""Pattern of statements, such as BEGIN, that begin a transaction without the write lock."""

_EQUALITY = re.compile(r"\b(\w+)[\"`\]]?\s*(?:=|\bis\b|\bin\b)")
"""Pattern of a condition such as `state = 5`, `state IS` or `state IN`, with a group for the column."""
_EXTREME = re.compile(r"\s*(?:max|min)\s*\(\s*[\"`\[]?(\w+)[\"`\]]?\s*,[^()]*\)\s*", re.IGNORECASE)
"""Pattern of the new value in `SET seen = max(seen, 5)`, with a group for the column in max or min."""
_SELECTS = re.compile(r"\bselect\b", re.IGNORECASE)
_CREATES = re.compile(r"\s*create\b", re.IGNORECASE)


class Suspicion(NamedTuple):
    """Pair of statements of a call that race if another process writes in between."""

    code: str
    """Kind of the suspicion, such as "read-outside" for a query outside the write's transaction."""
    table: str
    """Table whose data may be wrong; empty if there is no single table, as for a needless lock."""
    first: TracedStatement
    """Earlier statement: in most kinds the query whose result the write uses."""
    then: TracedStatement
    """Later statement: in most kinds the write."""

    locks: frozenset[object] = frozenset()
    """Locks that the call held from `first` to `then`. A lock that all calls hold prevents the race."""
    begins_late: bool = False
    """Whether the transaction of the write `then` began too late: after the query, just before the write.

    Python's sqlite3 module does so if the user's code runs no BEGIN.
    """

    @property
    def is_in_else(self) -> bool:
        r"""Whether a pgbench script runs the write in an \else, after an \if on the query's result.

        For example: `SELECT n ... \gset`, then `\if :n`, a statement, `\else`, and the write.
        """
        query, write = self.first.script, self.then.script
        return bool(query and write and query.results & (write.otherwise - write.conditions))

    @property
    def effect(self) -> str:
        """Effect of a race between a query and a write in a later transaction (kind STALE).

        For example, "double-insert" if two processes insert a row after both found none. Empty for a lost
        update, and for other kinds of suspicions.
        """
        write = self.then.write
        if self.code != STALE or not write:
            return ""
        if write.kind == INSERT:
            if self.first.found is not False:
                return OLD_INSERT
            if searches_range(self.first.sql):
                return RANGE_INSERT
            return KEYED_INSERT if may_ignore(self.then.sql) else DOUBLE_INSERT
        if write.kind == DELETE:
            return USE
        if self.kept_columns:
            return WHOLE_ROW
        _, _, where = self.first.sql.lower().partition("where")
        tested = {words[1] for words in _EQUALITY.finditer(where)}
        return CLAIM if tested & write.sets else ""

    @property
    def kept_columns(self) -> list[str]:
        """Columns that the UPDATE sets to the old values that the query read, sorted.

        For example, an ORM writes all columns of a row, although only one column has a new value. Empty if no
        column has a new value.
        """
        write = self.then.write
        if not write or not write.sets - write.kept - write.computed:
            return []
        read = self.first.reads.get(write.table, frozenset())
        return sorted((write.sets & write.kept & read) - write.wheres - frozenset().union(*write.keys))

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Kind, table, and code line of both statements, to recognise the suspicion in other calls."""
        return self.code, self.table, self.first.at, self.then.at


def suspicions(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    """Yield the suspicions (possible races) that a single call shows, ordered by kind."""
    # Skip all statements up to the last CREATE: some libraries create their tables in the first call.
    creating = [index for index, statement in enumerate(call) if _CREATES.match(statement.sql)]
    call = call[creating[-1] + 1 :] if creating else call
    yield from _stale(call)
    yield from _guarded(call)
    yield from _deferred(call)
    yield from _mixed(call)
    yield from _forked(call)


# An ORM may set all columns of a row, most of them to their old values. Leave out columns that never change.


def unchanged_columns(calls: Iterable[Sequence[TracedStatement]]) -> set[tuple[Table, str]]:
    """Return each (table, column) that UPDATEs set, but always to the value that the row already has."""
    writes = [statement.write for call in calls for statement in call if statement.write]
    # INSERT OR REPLACE (empty `sets`) replaces all columns, so no column of its table counts as unchanged.
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
    """Return a call's statements, with `columns` removed from the columns that each write sets.

    `columns` are the columns that never change, from `unchanged_columns`. For example, if the column `name`
    never changes, `SET name = 'Ann', n = 5` counts as `SET n = 5`. A column in the WHERE clause of the write
    is not removed.
    """
    statements = []
    for statement in call:
        if write := statement.write:
            left_alone = {column for table, column in columns if table == write.table} - write.wheres
            statement = statement._replace(write=write._replace(sets=write.sets - left_alone))
        statements.append(statement)
    return statements


# STALE (the write uses the result of a query) and GUARDED (`if n > 0` decides whether the write runs). The
# query and the write are in different transactions.


def _stale(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    safe_writes: list[int] = []
    """Indexes in `call` of safe writes, such as `SET n = n + 1`."""
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
            and _may_pass_result(query, statement, write)
            and _depends(statement, write, query)
            and _follows(statement, write, query)
            and not renews_token(call, position, index)
            and not any(_used_result(call[other], query, write) for other in safe_writes if other > position)
        ]
        if queries and not (owns_rows(call[:index], write) or tests_claim(call[:index], statement)):
            # Prefer a query of the written row. A sign is that the query and the write end with the same
            # word, as in `WHERE id = 7`.
            same = (query for query in queries if query.sql.split()[-1:] == statement.sql.split()[-1:])
            first = next(same, queries[0])
            locks = held_locks(call, call.index(first), index)
            late = any(_is_implicit_begin(other, statement) for other in call[:index])
            yield Suspicion(STALE, write.table[1], first, statement, locks, late)


def _is_implicit_begin(begin: TracedStatement, write: TracedStatement) -> bool:
    is_begin = begin.begins_implicitly and begin.sql.lstrip().upper().startswith("BEGIN")
    # A BEGIN of the user's code is elsewhere in the code than the write.
    own, written = (begin.transaction, begin.at, begin.spot), (write.transaction, write.at, write.spot)
    return is_begin and own == written


def _guarded(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    """Yield suspicions such as: `SELECT n`, then `if n > 0`, then `SET n = n - 1` in another transaction.

    The write loses no update, but the guard `if n > 0` may have tested an old value.
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
        queries = [*_undecided(call[:index], queries, write.table)]
        if not queries or is_read_inside or owns_rows(call[:index], write):
            continue
        kinds = [_guard_kind(query, statement, columns) for query in queries]
        if code := next((kind for kind in (GUARDED, MAYBE_GUARDED) if kind in kinds), None):
            query = queries[kinds.index(code)]
            yield Suspicion(
                code, write.table[1], query, statement, held_locks(call, call.index(query), index)
            )


def _undecided(
    earlier: Sequence[TracedStatement], queries: Sequence[TracedStatement], table: Table
) -> Iterator[TracedStatement]:
    """Yield only the queries after the last query that shares a transaction with an earlier write.

    For example: a call queries the number of free seats. After BEGIN IMMEDIATE, the call queries the number
    again, and takes a seat by `SET free = free - 1`. In a later transaction, the call releases the seat by
    `SET free = free + 1`. Both queries were there to decide about the first UPDATE. So the second UPDATE
    depends on neither query, and nothing is yielded.

    - earlier: statements of the call before the second UPDATE
    - queries: queries of the column `free` among these statements, latest first
    - table: table of the second UPDATE; only earlier writes of this table count
    """
    writes = [other for other in earlier if other.write and other.write.table == table]
    for query in queries:
        if any(query.shares_snapshot(write) for write in writes):
            return
        yield query


def _extremes(sql: str) -> frozenset[str]:
    """Return the columns that an UPDATE sets to a maximum or minimum, as in `seen = max(seen, 5)`.

    A guard on these columns, such as `if seen < 5`, may test an old value. But this does no harm: max() and
    min() compare with the current value.
    """
    if not (change := parse_change(sql)):
        return frozenset()
    matches = {column: _EXTREME.fullmatch(value) for column, value in parse_sets(change.sets).items()}
    return frozenset(column for column, match in matches.items() if match and match[1].lower() == column)


def _may_pass_result(query: TracedStatement, statement: TracedStatement, write: Write) -> bool:
    """Return whether the result of a query may reach the thread or task of a write.

    If two threads read and write different rows, each of them probably does its own work.
    """
    if query.runner == statement.runner:
        return True
    if query.in_background or statement.in_background:
        return False
    return write.kind == INSERT or query.summarises or _may_read(query, write)


def _may_read(query: TracedStatement, write: Write) -> bool:
    if query.rows is None or write.rows is None:
        return True
    keys = {key for row in query.rows for key in row}
    return any(key in keys for row in (*write.rows, *write.existing) for key in row)


def _guard_kind(query: TracedStatement, statement: TracedStatement, columns: frozenset[str]) -> str | None:
    """Return GUARDED if a guard, such as `if n > 0`, is between a query and a write; None without a guard.

    The result is MAYBE_GUARDED if the source does not show whether there is a guard.

    - statement: the write
    - columns: columns that the write computes, such as n in `SET n = n - 1`; a guard must test one of these
    """
    assert statement.write
    read = query.reads[statement.write.table]
    if query.script and statement.script:
        tested = statement.script.conditions | statement.script.otherwise
        return GUARDED if (query.script.results - (read - columns)) & tested else MAYBE_GUARDED
    absence_counts = bool(columns & conditions(query.sql))
    guard = guard_between(query.stack, statement.stack, columns, read, absence_counts)
    if guard and not guard.on_other_columns:
        return GUARDED if guard.exists else None
    return GUARDED if guard and guard.exists else MAYBE_GUARDED


def _used_result(between: TracedStatement, query: TracedStatement, later: Write) -> bool:
    """Return whether a safe write used the result of a query, so that a later write does not race.

    For example: `SELECT n` (`query`), then `SET n = 5 WHERE n = 4` (`between`), then `later`. If another
    process has changed n since the query, the safe write `between` changes no row. So the call notices the
    change before `later` runs.
    """
    write = between.write
    if not write or write.table != later.table:
        return False
    is_same = bool(all_keys(write) & all_keys(later))
    if between.shares_snapshot(query):
        # The query and `between` are in the same transaction, and `later` runs after this transaction.
        # Another process may write in the meantime. This does no harm if `later` and `between` write
        # different rows.
        return not is_same
    is_other = later.kind == INSERT or None not in (write.rows, later.rows)
    return (is_same or not is_other) and _depends(between, write, query)


def _place(statement: TracedStatement) -> tuple[str, int, list[tuple[int, int]]]:
    """Return the position in the user's code that ran a statement, with the positions of its callers."""
    return statement.at, statement.spot, [(entry.line, entry.instruction) for entry in statement.stack]


def _draws_key(query: TracedStatement, write: Write) -> bool:
    """Return whether a query reads only the key of a row that it draws at random.

    Such a row is probably no job, which must be done only once. SQLite also reports a read of the column "".
    """
    keys = {"", "rowid"}.union(*write.keys)
    return "random()" in query.sql.lower() and query.reads[write.table] <= keys


def _depends(statement: TracedStatement, write: Write, query: TracedStatement) -> bool:
    columns = query.reads[write.table]
    if write.kind == UPDATE:
        return bool((write.sets - write.computed) & columns)
    if write.kind == DELETE:
        # If a single call of a library runs both the query and the DELETE, the user's code gets the deleted
        # row, not the row count. But the library may check the row count (`insists`).
        is_counted = write.insists or (write.counted and _place(query) != _place(statement))
        if query.counts and not _SELECTS.search(statement.sql):
            # A count does not give the key of the row to delete. The DELETE depends on the count only if a
            # guard tests it, for example to keep the last row.
            guard = guard_between(query.stack, statement.stack, columns, columns, absence_counts=False)
            return not is_counted and (guard is None or guard.exists)
        return query.found is not False and not (is_counted or _draws_key(query, write))
    if write.kind == OVERWRITE and not is_new(write):
        # If the query found no row, the INSERT OR REPLACE probably loses nothing: another process may have
        # added the row since, but from the same data, as in a cache.
        return query.found is True and _may_take_from(write, columns)
    # The first key is the primary key. If SQLite assigns its value (`numbered`), each new row has another
    # value, so this key prevents no double insert. Leave out this key.
    key_columns = {frozenset(key) for _, (key, _) in all_keys(write)}
    keys = write.keys[1:] if write.numbered else write.keys
    # A unique key refuses the second of two INSERTs with the same key. With INSERT OR IGNORE, the code does
    # not notice this (`unseen`). Then a key counts only if the query searched for the key: the WHERE clause
    # has a column of the key. For a query such as max(number), the clause must have all columns of the key.
    searched = conditions(query.sql) if write.unseen else columns
    refused = any(
        key in key_columns and key <= columns and (key <= searched if query.summarises else key & searched)
        for key in keys
    )
    decides = query.found is False or query.summarises or _decides_by_all_rows(query, statement)
    return not refused and decides and _may_take_from(write, columns)


def _decides_by_all_rows(query: TracedStatement, statement: TracedStatement) -> bool:
    """Return whether a query without WHERE decides if a write runs: `if name not in names: INSERT`."""
    return not conditions(query.sql) and may_depend(query.stack, statement.stack, absence_counts=True) is True


def _follows(statement: TracedStatement, write: Write, query: TracedStatement) -> bool:
    """Return whether a write may depend on a query; False only if the source shows no dependence.

    For example, False if a call prints the rows of a query, and then adds an unrelated row.
    """
    if write.kind == DELETE:
        return True
    absence_counts = write.kind == INSERT or bool(write.sets & conditions(query.sql))
    sets = write.sets if write.kind == UPDATE else frozenset[str]()
    others = query.reads[write.table] - sets if sets else frozenset[str]()
    return may_depend(query.stack, statement.stack, absence_counts, sets, others) is not False


def _may_take_from(write: Write, columns: frozenset[str]) -> bool:
    """Return whether a write, such as `SET n = ?`, may have a value from `columns` of a query."""
    if write.sets:
        return bool((write.sets - write.computed) & columns)
    # If `sets` is empty, the write sets all columns. Keys, and values that SQLite computes, do not come from
    # the query.
    return not write.computed or bool(columns.difference(write.computed, *write.keys))


# Wrong use of a transaction or connection. DEFERRED: BEGIN, then a query, then a write, which fails if
# another process has written in between. MIXED: two tasks or threads run statements in the same transaction.
# FORKED: a forked process uses a connection of its parent process.


def _deferred(call: Sequence[TracedStatement]) -> Iterator[Suspicion]:
    firsts: dict[int, TracedStatement | None] = {}
    """First query of each transaction, by number of the transaction; None before its first query."""
    can_fail: set[int] = set()
    """Numbers of the transactions that began DEFERRED and have not written: their first write can fail."""
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
