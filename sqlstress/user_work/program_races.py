"""Signs of races that show in all transactions of a program together, or between two of its files.

- A decision on old data: a call checks a column of one table and then writes another table in a later
  transaction, while another transaction reads that table and changes the column (a write skew).
- A mixed view: a DEFERRED transaction reads two files that another transaction writes together. In WAL mode
  each file has a snapshot of its own, which begins with the first read of the file.
- An expired lease: a call claims a row for a limited time, and later writes the row without a comparison that
  shows whether the claim still holds.

Sources: https://www.sqlite.org/isolation.html, https://www.sqlite.org/lang_attach.html, and for write skew
Fekete et al., Making Snapshot Isolation Serializable, ACM TODS 30 (2005).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from sqlstress.user_work.guards import guard_between
from sqlstress.user_work.suspicions import (
    BEGINS_DEFERRED,
    DELETE,
    EXPIRED,
    MIXED_VIEW,
    SKEW,
    UPDATE,
    Suspicion,
    Table,
    TracedStatement,
    held_guards,
)
from sqlstress.user_work.touched import conditions

Statements = Sequence[TracedStatement]


def program_suspicions(call: Statements, calls: Iterable[Statements]) -> Iterator[Suspicion]:
    """Yield the suspicions about a call of a program; `calls` are the calls of all its transactions."""
    calls = [*calls]
    yield from _decisions_on_old_data(call, calls)
    yield from _mixed_views(call, calls)
    yield from _expired_leases(call)


# Decisions on old data.


def _decisions_on_old_data(call: Statements, calls: Iterable[Statements]) -> Iterator[Suspicion]:
    for index, statement in enumerate(call):
        if not statement.write:
            continue
        changed = _changed_by_readers(calls, statement.write.table)
        transaction = [other for other in call if other.transaction == statement.transaction]
        # A table that the call has written before may hold a lock or a claim of this call.
        written = {other.write.table for other in call[:index] if other.write}
        known = written.union(*map(_used_tables, transaction))
        queries = [
            (query, table)
            for query in reversed(call[:index])
            if query.write is None and query.who == statement.who and not query.shares_snapshot(statement)
            for table in query.reads.keys() - known
            if _decides(query, statement, table, changed.get(table, frozenset()))
        ]
        for query, _ in queries[:1]:
            guards = held_guards(call, call.index(query), index)
            yield Suspicion(SKEW, statement.write.table[1], query, statement, guards)


def _used_tables(statement: TracedStatement) -> set[Table]:
    return {*statement.reads} | ({statement.write.table} if statement.write else set())


def _changed_by_readers(calls: Iterable[Statements], table: Table) -> dict[Table, frozenset[str]]:
    """Return the columns that UPDATEs set in calls that also read a table, by the table of the UPDATE."""
    changed: dict[Table, frozenset[str]] = {}
    for call in calls:
        if not any(table in statement.reads and statement.write is None for statement in call):
            continue
        for write in (statement.write for statement in call):
            if write and write.kind == UPDATE and write.table != table:
                columns = write.sets - write.kept
                changed[write.table] = changed.get(write.table, frozenset()) | columns
    return changed


def _decides(
    query: TracedStatement, statement: TracedStatement, table: Table, changed: frozenset[str]
) -> bool:
    """Return whether the source checks a column of `changed`, read by a query, before a statement runs."""
    read = query.reads[table]
    if not read & changed:
        return False
    if query.script and statement.script:
        tested = statement.script.conditions | statement.script.otherwise
        return bool(query.script.results & tested)
    by_rows = bool(changed & conditions(query.sql))
    guard = guard_between(query.calls, statement.calls, read & changed, read, by_rows)
    return guard is not None and guard.exists


# Mixed views.


def _mixed_views(call: Statements, calls: Iterable[Statements]) -> Iterator[Suspicion]:
    together = _files_written_together(calls)
    for transaction in _transactions(call):
        if not BEGINS_DEFERRED.match(transaction[0].sql) or any(other.write for other in transaction):
            continue
        first_reads: dict[str, TracedStatement] = {}
        for statement in transaction:
            for file, _ in statement.reads if statement.in_wal else ():
                first_reads.setdefault(file, statement)
        for (file, first), (other, then) in combinations(first_reads.items(), 2):
            if frozenset((file, other)) in together and first is not then:
                yield Suspicion(MIXED_VIEW, "", first, then)
                break


def _transactions(call: Statements) -> Iterator[list[TracedStatement]]:
    """Yield the statements of each transaction of a call."""
    for number in dict.fromkeys(statement.transaction for statement in call):
        yield [statement for statement in call if statement.transaction == number]


def _files_written_together(calls: Iterable[Statements]) -> set[frozenset[str]]:
    """Return the pairs of files that a transaction writes."""
    return {
        frozenset(pair)
        for call in calls
        for transaction in _transactions(call)
        for pair in combinations(sorted({other.write.table[0] for other in transaction if other.write}), 2)
    }


# Expired leases.

_LIMIT = re.compile(r"(\w+)[\"`\]]?\s*<=?\s*([^\s)]+(?:\([^)]*\))?)")
"""Pattern of a condition `column < value`, with the value."""


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
    """Return whether an UPDATE takes rows whose time limit is over, sets a later limit, and returns them."""
    write = claim.write
    if not write or write.kind != UPDATE or write.unseen:
        return False
    head, _, where = claim.sql.partition("WHERE") if "WHERE" in claim.sql else claim.sql.partition("where")
    for column, limit in _LIMIT.findall(where):
        value = re.search(rf"\b{column}[\"`\]]?\s*=\s*([^,]+)", head, re.IGNORECASE)
        if value and column.lower() in write.sets & write.wheres and _is_later(value[1].strip(), limit):
            return True
    return False


def _is_later(value: str, limit: str) -> bool:
    """Return whether an SQL value is a later time than a limit: a larger literal, or a sum with the limit."""
    try:
        return float(value) > float(limit)
    except ValueError:
        are_texts = value[:1] == limit[:1] == "'"
        return value > limit if are_texts else value != limit and value.startswith(limit)


def _compares_claim(call: Statements, claim: TracedStatement, later: TracedStatement) -> bool:
    """Return whether the transaction of a later write compares a column that the claim has set."""
    assert claim.write
    columns = claim.write.sets - claim.write.computed
    return any(
        columns & (other.write.wheres if other.write else conditions(other.sql))
        for other in call
        if other.transaction == later.transaction and claim.write.table in _used_tables(other)
    )
