"""Rules for suspicions (possible races) that only several calls of the user's transactions show.

The rehearsal, a test run before the measurement, calls each transaction of the user a few times without load,
and traces the SQL statements of each call. A suspicion is a pair of statements that race: the result is wrong
if another process writes between them. This module finds these kinds:

- SKEW (write skew): each of two calls decides by a table that the other call changes. For example, a call
  reads that a room is open, and later adds a booking. Another call reads that the room has no booking, and
  closes the room. If both run at the same time, a closed room has a booking.
- MIXED_VIEW: a DEFERRED transaction reads two database files that another transaction writes together. In WAL
  mode each file has its own snapshot, which begins with the first read of the file. So the transaction may
  see one file before the other transaction's COMMIT, and one file after it.
- SPLIT_VIEW: a call compares or adds the results of two queries in different transactions, such as the
  balances of two accounts, or stores two sums in another table. Another call writes both tables in one
  transaction, as a transfer does.
- STALE_COPY: a call reads a table, and later writes the data to another table, such as a cache, in another
  transaction. By then the data may be old.
- FOLLOWED_ID: a call stores the last id that it has seen, and later reads the rows with larger ids. If the
  last row is deleted, SQLite may give its id to a new row, which the call never reads.
- OFFSET_PAGES: a call reads a table page by page (LIMIT 50 OFFSET 100), each page in another transaction.
  Another call inserts a row before the page, or deletes one, so the next page repeats a row or misses one.
- FROM_MEMORY: each call writes the next number of a counter that the program keeps in a variable: 5, 6, 7. So
  the program overwrites the numbers of other processes.
- NEEDLESS_LOCK: a transaction only reads, but begins with BEGIN IMMEDIATE. All writers wait for the lock.

Sources: https://www.sqlite.org/isolation.html, https://www.sqlite.org/lang_attach.html,
https://www.sqlite.org/autoinc.html, and for write skew
Fekete et al., Making Snapshot Isolation Serializable, ACM TODS 30 (2005).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations, pairwise

from sqlstress.races.dependence import combines, passes_both
from sqlstress.races.guards import guard_between, scope_texts
from sqlstress.races.protected_writes import held_locks, tests_claim
from sqlstress.races.suspicions import (
    BEGINS_DEFERRED,
    FOLLOWED_ID,
    FROM_MEMORY,
    MIXED_VIEW,
    NEEDLESS_LOCK,
    OFFSET_PAGES,
    SKEW,
    SPLIT_VIEW,
    STALE_COPY,
    Suspicion,
)
from sqlstress.races.touched import conditions
from sqlstress.races.traced_statements import DELETE, INSERT, OVERWRITE, UPDATE, Table, TracedStatement

Statements = Sequence[TracedStatement]

MIN_CALLS = 4
"""Minimum number of calls for a suspicion of the kind FROM_MEMORY or NEEDLESS_LOCK.

For example, three calls that write 5, 6 and 7 may do so by chance.
"""
MAX_STEP = 1000
"""Maximum difference between successive numbers, such as 5, 6, 7, that count as a counter."""
_LOCKS = re.compile(r"\s*begin\s+(immediate|exclusive)\b", re.IGNORECASE)
_ABOVE = re.compile(r"\b(\w+)[\"`\]]?\s*>=?\s*(?![>=])")
"""Pattern of a comparison such as `id > 5`, with the column."""
_PAGE = re.compile(
    r"(?P<order>\border\s+by\s[^()]*?)?\blimit\s+(?:(?P<first>\d+)\s*,\s*)?(?P<size>\d+)(?:\s+offset\s+(?P<offset>\d+))?\s*;?\s*$",
    re.IGNORECASE,
)
"""Pattern of the end of a query for a page, such as `ORDER BY id DESC LIMIT 50 OFFSET 100`."""
_NAMES = re.compile(r"\w+")
_WRITES = re.compile(r"\s*(insert|update|delete|replace|create|alter|drop|with)\b", re.IGNORECASE)


class TracedProgram:
    """Search for possible races between one call and the other calls of a program.

    __init__ collects facts about all traced calls. Then `suspicions` examines one call with these facts.
    """

    def __init__(self, calls: Sequence[Statements]) -> None:
        self._written_together = _files_written_together(calls)
        self._tables_together = _tables_written_together(calls)
        self._changed = _changed_by_readers(calls)
        self._copies = copies(calls)
        self._ids = _reused_ids(calls)
        self._deletes = _first_writes(calls, (DELETE,))
        self._inserts = _first_writes(calls, (INSERT, OVERWRITE))

    def suspicions(self, call: Statements) -> Iterator[Suspicion]:
        """Yield the possible races of `call` with the other calls of the program."""
        yield from self._decisions_on_old_data(call)
        yield from self._mixed_views(call)
        yield from self._split_views(call)
        yield from stale_copies(call, self._copies)
        yield from self._followed_ids(call)
        yield from self._offset_pages(call)

    def _decisions_on_old_data(self, call: Statements) -> Iterator[Suspicion]:
        for index, statement in enumerate(call):
            changed = self._changed.get(statement.write.table) if statement.write else None
            if not statement.write or not changed:
                continue
            # Skip tables that the call has written before this statement. For example, after `UPDATE room SET
            # owner = ?`, no other process changes the room.
            written = {other.write.table for other in call[:index] if other.write}
            transaction = (other for other in call if other.transaction == statement.transaction)
            candidates = changed.keys() - written.union(*map(_used_tables, transaction))
            for query in reversed(call[:index]):
                is_earlier = query.write is None and not query.shares_snapshot(statement)
                if (
                    is_earlier
                    and query.runner == statement.runner
                    and any(_decides(query, statement, table, changed[table]) for table in candidates)
                ):
                    locks = held_locks(call, call.index(query), index)
                    yield Suspicion(SKEW, statement.write.table[1], query, statement, locks)
                    break

    def _followed_ids(self, call: Statements) -> Iterator[Suspicion]:
        for index, query in enumerate(call):
            above = {column.lower() for column in _ABOVE.findall(query.sql)}
            for table in query.reads if query.write is None else ():
                if table not in self._deletes or not above & self._ids.get(table, frozenset()):
                    continue
                stored = {
                    other.write.table
                    for other in call[index + 1 :]
                    if other.write and other.write.kind in (UPDATE, OVERWRITE)
                }
                if (stored - {table}) & {read for other in call[: index + 1] for read in other.reads}:
                    yield Suspicion(FOLLOWED_ID, table[1], query, self._deletes[table])

    def _offset_pages(self, call: Statements) -> Iterator[Suspicion]:
        pages = [(query, page) for query in call if not query.write and (page := _PAGE.search(query.sql))]
        for (query, page), (then, next_page) in pairwise(pages):
            is_same_query = query.sql[: page.start()] == then.sql[: next_page.start()]
            is_next = is_same_query and _offset(page) < _offset(next_page)
            if not is_next or query.shares_snapshot(then) or query.runner != then.runner:
                continue
            for table in query.reads:
                if table in self._deletes or self._adds_rows_before(table, page["order"] or ""):
                    yield Suspicion(OFFSET_PAGES, table[1], query, then)
                    return

    def pages_of_calls(self, calls: Sequence[Statements]) -> Iterator[Suspicion]:
        """Yield each query whose pages, such as OFFSET 0, 50, 100, successive calls of a transaction read."""
        pages: dict[tuple[str, str], list[tuple[TracedStatement, re.Match[str]]]] = {}
        for call in calls:
            for query in call:
                if not query.write and (page := _PAGE.search(query.sql)):
                    pages.setdefault((query.at, query.sql[: page.start()]), []).append((query, page))
        for found in pages.values():
            offsets = [_offset(page) for _, page in found]
            sizes = [int(page["size"]) for _, page in found]
            are_next = [
                after == before + size
                for (before, after), size in zip(pairwise(offsets), sizes, strict=False)
            ]
            transactions = {query.transaction for query, _ in found}
            if sum(are_next) < MIN_CALLS - 1 or not all(are_next) or len(transactions) < len(found):
                continue
            query, page = found[0]
            for table in query.reads:
                if table in self._deletes or self._adds_rows_before(table, page["order"] or ""):
                    yield Suspicion(OFFSET_PAGES, table[1], query, found[1][0])
                    break

    def _adds_rows_before(self, table: Table, order_by: str) -> bool:
        """Return whether an INSERT can add a row before the last row of a query with this ORDER BY clause."""
        insert = self._inserts.get(table)
        write = insert.write if insert else None
        words = {word.lower() for word in _NAMES.findall(order_by)}
        is_by_new_id = write and write.numbered and words & write.keys[0] and "desc" not in words
        return bool(write and order_by and not is_by_new_id)

    def _mixed_views(self, call: Statements) -> Iterator[Suspicion]:
        for transaction in _transactions(call) if self._written_together else ():
            if not BEGINS_DEFERRED.match(transaction[0].sql) or any(other.write for other in transaction):
                continue
            first_reads: dict[str, TracedStatement] = {}
            for statement in transaction:
                for file, _ in statement.reads if statement.in_wal else ():
                    first_reads.setdefault(file, statement)
            for (file, first), (other, then) in combinations(first_reads.items(), 2):
                if frozenset((file, other)) in self._written_together and first is not then:
                    yield Suspicion(MIXED_VIEW, "", first, then)
                    break

    def _split_views(self, call: Statements) -> Iterator[Suspicion]:
        queries = [statement for statement in call if statement.reads and statement.found is not None]
        for first, then in combinations(queries, 2):
            tables = {frozenset((table, other)) for table in first.reads for other in then.reads}
            if (
                not first.shares_snapshot(then)
                and first.runner == then.runner
                and tables & self._tables_together
                and _combines(call, first, then)
            ):
                yield Suspicion(SPLIT_VIEW, "", first, then)
                return


# Facts about all calls of a program, which TracedProgram collects first.


def _reused_ids(calls: Iterable[Statements]) -> dict[Table, frozenset[str]]:
    """Return the id columns, by table, in which SQLite may give the id of a deleted row to a new row."""
    writes = (statement.write for call in calls for statement in call)
    return {
        write.table: frozenset().union(*(key for key in write.keys if len(key) == 1))
        for write in writes
        if write and write.reuses_ids
    }


def _first_writes(calls: Iterable[Statements], kinds: Collection[str]) -> dict[Table, TracedStatement]:
    writes: dict[Table, TracedStatement] = {}
    for statement in (statement for call in calls for statement in call):
        if statement.write and statement.write.kind in kinds:
            writes.setdefault(statement.write.table, statement)
    return writes


def _offset(page: re.Match[str]) -> int:
    return int(page["offset"] or page["first"] or 0)


Changes = dict[Table, frozenset[str]]
"""Columns whose values a call's UPDATEs change, by table."""


def _changed_by_readers(calls: Iterable[Statements]) -> dict[Table, Changes]:
    """Return, for each table that a call queries, the columns that the call changes in other tables.

    For example, {booking: {room: {open}}} means that a call queries booking, and changes room.open.
    """
    result: dict[Table, Changes] = {}
    for call in calls:
        updates = [other.write for other in call if other.write and other.write.kind == UPDATE]
        for table in {table for other in call if other.write is None for table in other.reads}:
            changes = result.setdefault(table, {})
            for write in updates:
                if write.table != table:
                    columns = write.sets - write.kept
                    changes[write.table] = changes.get(write.table, frozenset()) | columns
    return result


def _files_written_together(calls: Iterable[Statements]) -> set[frozenset[str]]:
    return {
        frozenset(pair)
        for call in calls
        for transaction in _transactions(call)
        for pair in combinations(sorted({other.write.table[0] for other in transaction if other.write}), 2)
    }


def _tables_written_together(calls: Iterable[Statements]) -> set[frozenset[Table]]:
    """Return each pair of tables that a transaction writes.

    If a transaction writes the same table twice, the result also has a set with only this table.
    """
    return {
        frozenset(pair)
        for call in calls
        for transaction in _transactions(call)
        for pair in combinations([other.write.table for other in transaction if other.write], 2)
    }


def _transactions(call: Statements) -> Iterable[list[TracedStatement]]:
    transactions: dict[int, list[TracedStatement]] = {}
    for statement in call:
        transactions.setdefault(statement.transaction, []).append(statement)
    return transactions.values()


def _used_tables(statement: TracedStatement) -> set[Table]:
    return {*statement.reads} | ({statement.write.table} if statement.write else set())


def _decides(
    query: TracedStatement, statement: TracedStatement, table: Table, changed: frozenset[str]
) -> bool:
    """Return whether a condition on a query's result, as in `if room.open`, decides if `statement` runs.

    Only a condition on the columns `changed` of `table` counts: other calls change these columns.
    """
    read = query.reads.get(table, frozenset())
    if not read & changed:
        return False
    if query.script and statement.script:
        tested = statement.script.conditions | statement.script.otherwise
        return bool(query.script.results & tested)
    absence_counts = bool(changed & conditions(query.sql))
    guard = guard_between(query.stack, statement.stack, read & changed, read, absence_counts)
    return guard is not None and guard.exists


def _combines(call: Statements, first: TracedStatement, then: TracedStatement) -> bool:
    """Return whether a call compares or adds the results of two queries, or stores two sums in another table.

    A call that writes counts only if its writes come after the queries, in transactions that do not use the
    tables of the queries: otherwise the call may notice that another process has written in between.
    """
    writes = [statement for statement in call if statement.write]
    if not writes:
        return combines(first.stack, then.stack)
    transactions = {statement.transaction for statement in writes}
    used = set().union(*(_used_tables(other) for other in call if other.transaction in transactions))
    return (
        first.counts
        and then.counts
        and call.index(writes[0]) > call.index(then)
        and used.isdisjoint({*first.reads, *then.reads})
        and any(passes_both(first.stack, then.stack, statement.stack) for statement in writes)
    )


# STALE_COPY: a table, such as a cache, has copies of another table's data.


def copies(calls: Iterable[Statements]) -> set[tuple[Table, Table]]:
    """Return the pairs (source, copy) of tables, such as a table and its cache.

    A sign is a transaction that writes the source, and deletes rows of the copy, which are now out of date.
    """
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


def stale_copies(call: Statements, pairs: set[tuple[Table, Table]]) -> Iterator[Suspicion]:
    """Yield suspicions of the kind STALE_COPY: the call may write old data to a copy, such as a cache.

    `pairs` has each pair (source, copy) of tables, as `copies` returns.
    """
    for index, statement in enumerate(call):
        if not statement.write or statement.write.kind == DELETE:
            continue
        for source in (source for source, copy in pairs if copy == statement.write.table):
            # If the transaction that writes the copy also reads or writes the source (`inside`), the copy is
            # up to date.
            inside = any(
                other.transaction == statement.transaction
                and (source in other.reads or (other.write and other.write.table == source))
                for other in call
            )
            queries = [query for query in call[:index] if source in query.reads and query.write is None]
            if queries and not inside:
                yield Suspicion(STALE_COPY, statement.write.table[1], queries[-1], statement)


# FROM_MEMORY and NEEDLESS_LOCK, which need several calls of a transaction.


def repeated_calls(calls: Sequence[Statements]) -> Iterator[Suspicion]:
    """Yield the suspicions that several calls of a transaction show. `calls` has these calls in order.

    - FROM_MEMORY: each call writes the next number of a counter in a variable, such as 5, 6, 7.
    - NEEDLESS_LOCK: the calls begin with BEGIN IMMEDIATE a transaction that only reads.
    """
    yield from _counters_in_memory(calls)
    yield from _needless_locks(calls)


def _counters_in_memory(calls: Sequence[Statements]) -> Iterator[Suspicion]:
    numbers: dict[tuple[object, ...], list[int]] = {}
    """Numbers that an UPDATE sets in successive calls, such as 5, 6, 7.

    The key has the UPDATE's line of code, the position in the line, the written rows, and the column.
    """
    updates: dict[tuple[object, ...], TracedStatement] = {}
    for call in calls:
        for index, statement in enumerate(call):
            write = statement.write
            if not write or write.kind != UPDATE or not write.rows or tests_claim(call[:index], statement):
                continue
            reads = frozenset[str]().union(*(other.reads.get(write.table, ()) for other in call[:index]))
            new_ids = {
                value
                for other in call[:index]
                if other.write and other.write.kind == INSERT
                for row in other.write.rows or ()
                for _, key_value in row
                for value in key_value
            }
            for column in write.numbers.keys() - reads - write.wheres:
                if write.numbers[column] in new_ids:
                    continue
                key = (statement.at, statement.spot, write.rows, column)
                numbers.setdefault(key, []).append(write.numbers[column])
                updates[key] = statement
    for line, written in numbers.items():
        steps = [after - before for before, after in pairwise(written)]
        is_counter = all(0 < step <= MAX_STEP for step in steps) or all(
            0 < -step <= MAX_STEP for step in steps
        )
        if len(written) >= MIN_CALLS and is_counter:
            update = updates[line]
            assert update.write
            yield Suspicion(FROM_MEMORY, update.write.table[1], update, update)


def _needless_locks(calls: Sequence[Statements]) -> Iterator[Suspicion]:
    begins: dict[str, list[tuple[TracedStatement, TracedStatement | None]]] = {}
    """BEGIN IMMEDIATE and first query of each transaction, by the code line of the BEGIN.

    The query is None if the transaction may write.
    """
    for call in calls:
        for begin in (statement for statement in call if _LOCKS.match(statement.sql)):
            inside = [other for other in call if other.transaction == begin.transaction]
            queries = [other for other in inside if other.reads and not other.write]
            # If a query found no row, the transaction may write in another call, which finds a row. So the
            # transaction does not count as one that only reads.
            reads = queries and not any(other.write for other in inside) and all(q.found for q in queries)
            begins.setdefault(begin.at, []).append((begin, queries[0] if reads else None))
    for transactions in begins.values():
        begin, query = transactions[0]
        if len(transactions) < MIN_CALLS or not query or not all(read for _, read in transactions):
            continue
        texts = scope_texts(begin.stack)
        if texts is not None and not any(map(_WRITES.match, texts)):
            yield Suspicion(NEEDLESS_LOCK, "", begin, query)
