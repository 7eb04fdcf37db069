"""Suspicions that need the calls of all transactions of a program, or two database files.

A call is one call of a user's transaction in the rehearsal, with the statements that it ran. A suspicion is a
pair of statements of a call that race if another process writes in between. The kinds are:

- SKEW, a decision on old data: a call tests a column of table A, and writes table B in a later transaction.
  Another call reads table B and changes the column of table A. This is a write skew.
- MIXED_VIEW: a DEFERRED transaction reads two files that another transaction writes together. In WAL mode
  each file has a snapshot of its own, which begins with the first read of the file.
- STALE_COPY, a stale copy: a call writes a copy, such as a row of a cache, from a source table. It has read
  the source outside of the transaction that writes the copy.

Sources: https://www.sqlite.org/isolation.html, https://www.sqlite.org/lang_attach.html, and for write skew
Fekete et al., Making Snapshot Isolation Serializable, ACM TODS 30 (2005).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from sqlstress.user_work.guards import guard_between
from sqlstress.user_work.protected_writes import held_locks
from sqlstress.user_work.suspicions import (
    BEGINS_DEFERRED,
    MIXED_VIEW,
    SKEW,
    STALE_COPY,
    Suspicion,
)
from sqlstress.user_work.touched import conditions
from sqlstress.user_work.traced_statements import DELETE, UPDATE, Table, TracedStatement

Statements = Sequence[TracedStatement]


class TracedProgram:
    """Suspicions that follow from the calls of all transactions of a program."""

    def __init__(self, calls: Sequence[Statements]) -> None:
        self._written_together = _files_written_together(calls)
        self._changed = _changed_by_readers(calls)
        self._copies = copies(calls)

    def suspicions(self, call: Statements) -> Iterator[Suspicion]:
        """Yield the suspicions about a call of the program."""
        yield from self._decisions_on_old_data(call)
        yield from self._mixed_views(call)
        yield from stale_copies(call, self._copies)

    def _decisions_on_old_data(self, call: Statements) -> Iterator[Suspicion]:
        for index, statement in enumerate(call):
            changed = self._changed.get(statement.write.table) if statement.write else None
            if not statement.write or not changed:
                continue
            # Leave out tables that the call has written before: they may hold a lock or a claim of the call.
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


# Facts of a program.


Changes = dict[Table, frozenset[str]]
"""Columns that UPDATEs set, by table."""


def _changed_by_readers(calls: Iterable[Statements]) -> dict[Table, Changes]:
    """Return, for each table, the changes of other tables by its readers.

    A reader of a table is a call with a query of the table. Only UPDATEs count.
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
    """Return the pairs of database files that are written in one transaction."""
    return {
        frozenset(pair)
        for call in calls
        for transaction in _transactions(call)
        for pair in combinations(sorted({other.write.table[0] for other in transaction if other.write}), 2)
    }


def _transactions(call: Statements) -> Iterable[list[TracedStatement]]:
    """Return the statements of each transaction of a call."""
    transactions: dict[int, list[TracedStatement]] = {}
    for statement in call:
        transactions.setdefault(statement.transaction, []).append(statement)
    return transactions.values()


def _used_tables(statement: TracedStatement) -> set[Table]:
    """Return the tables that a statement reads or writes."""
    return {*statement.reads} | ({statement.write.table} if statement.write else set())


def _decides(
    query: TracedStatement, statement: TracedStatement, table: Table, changed: frozenset[str]
) -> bool:
    """Return whether a statement runs only if a condition on the result of a query is true.

    The condition must test a column of `changed`: the columns of `table` that other calls change.
    """
    read = query.reads.get(table, frozenset())
    if not read & changed:
        return False
    if query.script and statement.script:
        tested = statement.script.conditions | statement.script.otherwise
        return bool(query.script.results & tested)
    by_rows = bool(changed & conditions(query.sql))
    guard = guard_between(query.stack, statement.stack, read & changed, read, by_rows)
    return guard is not None and guard.exists


# Copies of tables.


def copies(calls: Iterable[Statements]) -> set[tuple[Table, Table]]:
    """Return the pairs (source, copy) of tables, such as a table and its cache.

    A table is a copy if a transaction writes the source and deletes from the copy, because rows of the copy
    are out of date after the write.
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
    """Yield suspicions about writes of a copy, such as a cache, from old data.

    The call has read the copy's source outside of the transaction that writes the copy. `pairs` has the
    tables (source, copy).
    """
    for index, statement in enumerate(call):
        if not statement.write or statement.write.kind == DELETE:
            continue
        for source in (source for source, copy in pairs if copy == statement.write.table):
            # A copy is up to date if the transaction that writes the copy also reads or writes the source.
            inside = any(
                other.transaction == statement.transaction
                and (source in other.reads or (other.write and other.write.table == source))
                for other in call
            )
            queries = [query for query in call[:index] if source in query.reads and query.write is None]
            if queries and not inside:
                yield Suspicion(STALE_COPY, statement.write.table[1], queries[-1], statement)
