"""Suspicions that need the calls of all transactions of a program, or two database files.

A call is one call of a user's transaction in the rehearsal, with the statements that it ran. A suspicion is a
pair of statements of a call that race if another process writes in between. The kinds are:

- SKEW, a decision on old data: a call tests a column of table A, and writes table B in a later transaction.
  Another call reads table B and changes the column of table A. This is a write skew.
- MIXED_VIEW: a DEFERRED transaction reads two files that another transaction writes together. In WAL mode
  each file has a snapshot of its own, which begins with the first read of the file.
- EXPIRED, an expired lease: a call claims a row for a limited time. Later it writes the row without a
  comparison that shows whether the claim still holds.

Sources: https://www.sqlite.org/isolation.html, https://www.sqlite.org/lang_attach.html, and for write skew
Fekete et al., Making Snapshot Isolation Serializable, ACM TODS 30 (2005).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from sqlstress.user_work.guards import guard_between
from sqlstress.user_work.protected_writes import held_locks
from sqlstress.user_work.suspicions import (
    BEGINS_DEFERRED,
    EXPIRED,
    MIXED_VIEW,
    SKEW,
    Suspicion,
)
from sqlstress.user_work.touched import conditions, parse_change, parse_sets
from sqlstress.user_work.traced_statements import DELETE, UPDATE, Table, TracedStatement

Statements = Sequence[TracedStatement]


class TracedProgram:
    """Suspicions that follow from the calls of all transactions of a program."""

    def __init__(self, calls: Sequence[Statements]) -> None:
        self._written_together = _files_written_together(calls)
        self._changed = _changed_by_readers(calls)

    def suspicions(self, call: Statements) -> Iterator[Suspicion]:
        """Yield the suspicions about a call of the program."""
        yield from self._decisions_on_old_data(call)
        yield from self._mixed_views(call)
        yield from _expired_leases(call)

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


# Expired leases.

_LIMIT = re.compile(r"(\w+)[\"`\]]?\s*<=?\s*([^\s)]+(?:\([^)]*\))?)")
"""Pattern of a condition such as `expires < 100`, with its column and value."""


def _expired_leases(call: Statements) -> Iterator[Suspicion]:
    for index, claim in enumerate(call):
        if not (claim.write and claim.write.rows and _is_lease(claim)):
            continue
        names = {name for row in claim.write.rows for name in row}
        for later in call[index + 1 :]:
            if later.transaction != claim.transaction and later.write and later.write.rows:
                is_claimed = any(name in names for row in later.write.rows for name in row)
                is_change = later.write.kind in (UPDATE, DELETE) and later.write.table == claim.write.table
                if is_claimed and is_change and not _compares_claim(call, claim, later):
                    yield Suspicion(EXPIRED, claim.write.table[1], claim, later)
                    break


def _is_lease(claim: TracedStatement) -> bool:
    """Return whether an UPDATE takes rows whose time limit is over, and sets a later limit.

    The user's code must notice whether it got the rows, by RETURNING or by the row count.
    """
    write, change = claim.write, parse_change(claim.sql)
    if not write or not change or write.kind != UPDATE or write.unseen:
        return False
    values = parse_sets(change.sets)
    limits = ((column.lower(), limit) for column, limit in _LIMIT.findall(change.condition))
    return any(
        column in values and column in write.wheres and _is_later(values[column].strip(), limit)
        for column, limit in limits
    )


def _is_later(value: str, limit: str) -> bool:
    """Return whether an SQL value is later than a limit: a larger literal, or a sum."""
    try:
        return float(value) > float(limit)
    except ValueError:
        are_texts = value[:1] == limit[:1] == "'"
        return value > limit if are_texts else value != limit and value.startswith(limit)


def _compares_claim(call: Statements, claim: TracedStatement, later: TracedStatement) -> bool:
    """Return whether the transaction of a later write compares a column that the claim has set.

    Such a comparison, for example of the owner, shows whether the claim still holds.
    """
    assert claim.write
    columns = claim.write.sets - claim.write.computed
    return any(
        columns & (other.write.wheres if other.write else conditions(other.sql))
        for other in call
        if other.transaction == later.transaction and claim.write.table in _used_tables(other)
    )
