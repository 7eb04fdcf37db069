"""Rules for SQL checks and writes, in one call of a user's transaction, that only seem to prevent a race.

A call runs without load, in a test run before the measurement (the rehearsal). The kinds of faults:

- UNREAD_COUNT: `UPDATE ... WHERE id = ? AND state = 'queued'` changes no row if another process was first.
  The call goes on, because it does not read the row count.
- UNREAD_VERSION: `SET version = version + 1 ... WHERE version = ?` is the last write of the call, which does
  not read the row count. If another process was first, the call's change is lost without an error.
- UNREAD_ROWS: a call reads the rows that match a condition, and later deletes or marks all rows that match,
  also rows that came in between.
- SECONDS: `SET changed = datetime('now') ... WHERE changed = ?` should notice changes by other processes.
  But two changes within a second have the same time.
- LAST_ROW: a call reads max(id) after its INSERT has committed, and may get the row of another process.
- REUSED_ID: a call remembers the id of a row, and then deletes the row. SQLite gives the id to a later row,
  which then looks like a known row.
- KEPT_ID: a call stores the id of a row in another table, and then deletes the row. SQLite gives the id to a
  later row, so the stored rows seem to belong to both.
- EXPIRED: a call takes a row for a limited time (a lease). Later it writes the row without a comparison that
  shows whether another process has taken the row since.
- OLD_ID: INSERT OR IGNORE adds no row if the row exists. The call then reads `lastrowid`, which is the id of
  an earlier row.
- RESET: INSERT OR REPLACE deletes the old row. Columns that the INSERT does not name get their default value,
  for example a counter that another statement increments.
- NULL_KEY: a new row has NULL in a column of ON CONFLICT (article, size). NULLs count as different, so SQLite
  adds the row to another row that looks equal.
- NULL_TWIN: a new row equals another row in all columns of a UNIQUE key. The key refuses neither, because
  some of these columns are NULL.
- CASCADE: INSERT OR REPLACE deletes the old row. ON DELETE then deletes or changes rows of another table.
- SKIPPED_TRIGGER: INSERT OR REPLACE deletes the old row, but runs no DELETE trigger, unless PRAGMA
  recursive_triggers is on.
- STAGING: a call empties and fills a table, and copies all its rows in a later transaction. Another process
  may empty or fill the table in between.
- TEXT_TIME: `changed + 30 < strftime('%s', 'now')` compares a number with a text. In SQLite, every number is
  less than every text.
- MIXED_TIMES: `expires = datetime('now')` stores '2026-01-01 10:00:00', and `expires < ?` compares it with
  '2026-01-01T10:00:00'. As texts, these times of a day have a wrong order.
- SECOND_SAVE: a call saves an object of Django twice, and `F("n") + 1` adds 1 each time.

Sources: https://www.sqlite.org/autoinc.html, https://www.sqlite.org/lang_datefunc.html,
https://www.sqlite.org/lang_conflict.html, https://www.sqlite.org/c3ref/last_insert_rowid.html,
https://www.sqlite.org/datatype3.html, https://docs.djangoproject.com/en/5.2/ref/models/expressions/
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from sqlstress.races.dependence import may_depend, processes_rows
from sqlstress.races.protected_writes import changed_keys, held_locks, is_new, knows_it_wrote
from sqlstress.races.suspicions import (
    CASCADE,
    EXPIRED,
    KEPT_ID,
    LAST_ROW,
    MIXED_TIMES,
    NULL_KEY,
    NULL_TWIN,
    OLD_ID,
    RESET,
    REUSED_ID,
    SECOND_SAVE,
    SECONDS,
    SKIPPED_TRIGGER,
    STAGING,
    TEXT_TIME,
    UNREAD_COUNT,
    UNREAD_ROWS,
    UNREAD_VERSION,
    Suspicion,
)
from sqlstress.races.touched import (
    condition_text,
    conditions,
    inserted_values,
    inserts_from_select,
    may_ignore,
    parse_change,
    parse_sets,
    searches_range,
)
from sqlstress.races.traced_statements import (
    DELETE,
    INSERT,
    OVERWRITE,
    UPDATE,
    Table,
    TracedStatement,
    Write,
)

Statements = Sequence[TracedStatement]

_WHOLE_SECONDS = re.compile(
    r"\s*(current_timestamp|datetime\s*\(|unixepoch\s*\(\s*\)|strftime\s*\(\s*'%s'|"
    r"'\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d')",
    re.IGNORECASE,
)
"""Pattern of an SQL value that is a time in whole seconds, such as `datetime('now')`."""
_TEXT_TIME = re.compile(
    r"(?:[\w\"] *[+-] *[\w.\"]+| \d+) *[<>=]+ *strftime\( *'%s'"
    r"|strftime\( *'%s'[^()]*\) *[<>=]+ *(?:[\w.\"]+ *[+-] *[\w\"]|\d+\b)",
    re.IGNORECASE,
)
"""Pattern of a comparison of a sum or number with strftime('%s', ...), which is a text."""
_TIMES = re.compile(
    r"\b(\w+)[\"`\]]? *[<>=]+ *(?:'\d{4}-\d\d-\d\d([T ])\d\d:|(datetime *\(|current_timestamp\b))",
    re.IGNORECASE,
)
"""Pattern such as `expires < '2026-01-01T10:00'` or `expires = datetime('now')`.

Groups: the column, the character before the hour, and the SQL function.
"""
_F_EXPRESSION = re.compile(r'("(\w+)" = \("\w+"\."\2" [+-] [^()]+\))')
"""Pattern of Django's SQL for an F() expression: `"n" = ("counter"."n" + 1)`."""
_EMPTIES = (
    r"\s*(?:(?:delete\s+from|drop\s+table(?:\s+if\s+exists)?)\s+[\"`\[]?{0}[\"`\]]?\s*;?\s*$"
    r"|create\s+table\s+(?:if\s+not\s+exists\s+)?[\"`\[]?{0}\b)"
)
"""Pattern of statements that delete all rows of the table {0}, drop it or create it."""
_SUMS = re.compile(r"select\s+((coalesce|ifnull)\s*\(\s*)?(sum|total)\s*\(", re.IGNORECASE)
_EQUAL = re.compile(r"\b(\w+)[\"`\]]?\s*=(?!=)")
"""Pattern of a condition such as `version = 5`, with a group for the column."""
_REFERENCE = re.compile(r"[^_]_?(id|key|ref|no|nr|num|number)$", re.IGNORECASE)
"""Pattern of a column's name such as "job_id" or "ticket_no", but not "id"."""
_LAST_ROW = re.compile(
    r"select\s+max\s*\(\s*[\w.\"]+\s*\)(?:\s+as\s+\w+)?\s+from\s+[\w.\"]+\s*;?\s*$"
    r"|.*\border\s+by\s+[\w.\"]+\s+desc\s+limit\s+1\b",
    re.IGNORECASE | re.DOTALL,
)
"""Pattern of a query such as `SELECT max(id) FROM t` or `... ORDER BY id DESC LIMIT 1`."""


def id_reusing_tables(calls: Iterable[Statements]) -> set[Table]:
    """Return the tables in which SQLite may give a new row the id of a deleted row (no AUTOINCREMENT)."""
    writes = (statement.write for call in calls for statement in call)
    return {write.table for write in writes if write and write.reuses_ids}


_REPLACE = re.compile(r"\s*(?:insert\s+or\s+)?replace\s+into\s+[^(]+\(([^)]*)\)", re.IGNORECASE)
"""Pattern of REPLACE or INSERT OR REPLACE, with a group for the list of columns."""

Counters = dict[Table, dict[str, TracedStatement]]
"""UPDATEs such as `SET n = n + 1`, by table and column."""


def counters_of(calls: Iterable[Statements]) -> Counters:
    """Return the first UPDATE such as `SET n = n + 1` of each column, by table and column."""
    counters: Counters = {}
    for statement in (statement for call in calls for statement in call):
        write = statement.write
        if write and write.kind == UPDATE:
            for column in write.sets & write.computed:
                counters.setdefault(write.table, {}).setdefault(column, statement)
    return counters


def weak_checks(call: Statements, reusing: set[Table], counters: Counters) -> Iterator[Suspicion]:
    """Yield the possible faults in the checks and writes of a call.

    - reusing: tables in which SQLite may give a new row the id of a deleted row
    - counters: UPDATEs of all calls such as `SET n = n + 1`, by table and column
    """
    yield from _text_times(call)
    yield from _shared_staging(call)
    yield from _second_saves(call)
    for index, statement in enumerate(call):
        if not (write := statement.write):
            continue
        earlier, later = call[:index], call[index + 1 :]
        if write.kind == UPDATE and (query := _compared_query(earlier, statement, write)):
            goes_on = any(other.write for other in later)
            if (goes_on or _compares_version(statement.sql, write)) and not knows_it_wrote(
                call, index, write
            ):
                kind = UNREAD_COUNT if goes_on else UNREAD_VERSION
                yield Suspicion(kind, write.table[1], query, statement)
            if _compares_seconds(statement.sql, write):
                yield Suspicion(SECONDS, write.table[1], query, statement)
        if write.kind in (UPDATE, DELETE) and (query := _query_of_all_rows(earlier, statement, write)):
            yield Suspicion(UNREAD_ROWS, write.table[1], query, statement)
        if write.kind == INSERT and write.numbered and (query := _last_row_query(statement, write, later)):
            yield Suspicion(LAST_ROW, write.table[1], statement, query)
        if write.kind == DELETE and write.table in reusing and (insert := _remembered(earlier, write)):
            yield Suspicion(
                REUSED_ID if may_ignore(insert.sql) else KEPT_ID, write.table[1], insert, statement
            )
        if write.trusts_id and may_ignore(statement.sql) and (use := _next_write(statement, later)):
            yield Suspicion(OLD_ID, write.table[1], statement, use)
        if write.kind == OVERWRITE and (update := _reset_counter(statement, write, counters)):
            yield Suspicion(RESET, write.table[1], update, statement)
        if write.has_null_key:
            yield Suspicion(NULL_KEY, write.table[1], statement, statement)
        elif write.has_null_twin:
            yield Suspicion(NULL_TWIN, write.table[1], statement, statement)
        if write.cascades:
            yield Suspicion(CASCADE, write.cascades, statement, statement)
        if write.skips_trigger:
            yield Suspicion(SKIPPED_TRIGGER, write.table[1], statement, statement)
    yield from _expired_leases(call)


def _text_times(call: Statements) -> Iterator[Suspicion]:
    for statement in call:
        if _TEXT_TIME.search(statement.sql):
            table = statement.write.table if statement.write else next(iter(statement.reads), ("", ""))
            yield Suspicion(TEXT_TIME, table[1], statement, statement)


def mixed_times(calls: Iterable[Statements]) -> Iterator[Suspicion]:
    """Yield the columns of a table that the calls of a transaction set or compare in two formats of time."""
    first: dict[tuple[Table, str, bool], TracedStatement] = {}
    for statement in (statement for call in calls for statement in call):
        write = statement.write
        known = {write.table: write.sets | write.wheres} if write else {}
        for column, before_hour, _ in _TIMES.findall(statement.sql):
            for table, columns in {**statement.reads, **known}.items():
                if column.lower() in columns:
                    first.setdefault((table, column.lower(), before_hour.upper() == "T"), statement)
    for (table, column, has_t), statement in first.items():
        if has_t and (other := first.get((table, column, False))):
            yield Suspicion(MIXED_TIMES, table[1], statement, other)


def _second_saves(call: Statements) -> Iterator[Suspicion]:
    saves: dict[tuple[object, ...], TracedStatement] = {}
    for statement in call:
        write = statement.write
        if not write or write.kind != UPDATE or not write.rows:
            continue
        for expression, _ in _F_EXPRESSION.findall(statement.sql):
            key = (write.table, write.rows, write.sets, expression)
            first = saves.setdefault(key, statement)
            if first is not statement and first.at != statement.at:
                yield Suspicion(SECOND_SAVE, write.table[1], first, statement)
                return


def _shared_staging(call: Statements) -> Iterator[Suspicion]:
    for index, copy in enumerate(call):
        if not (copy.write and inserts_from_select(copy.sql)):
            continue
        if _EQUAL.search(copy.sql.lower().partition("where")[2]):
            continue  # It probably copies only the rows of this call: WHERE batch = 5.
        for table in copy.reads.keys() - {copy.write.table}:
            empties = re.compile(_EMPTIES.format(re.escape(table[1])), re.IGNORECASE)
            filled = [
                position
                for position, other in enumerate(call[:index])
                if other.write
                and (other.write.kind, other.write.table) == (INSERT, table)
                and other.transaction != copy.transaction
            ]
            if filled and any(empties.match(other.sql) for other in call):
                locks = held_locks(call, filled[-1], index)
                yield Suspicion(STAGING, table[1], call[filled[-1]], copy, locks)


def _compared_query(earlier: Statements, statement: TracedStatement, write: Write) -> TracedStatement | None:
    """Return the earlier query whose result an UPDATE compares; None if there is none.

    For example: `SELECT n`, and then, in another transaction, `SET n = 5 WHERE n = 4`.
    """
    compared = write.sets & write.wheres
    if not compared:
        return None
    return next(
        (
            query
            for query in reversed(earlier)
            if query.write is None
            and query.found
            and query.runner == statement.runner
            and not query.shares_snapshot(statement)
            and compared & (query.reads.get(write.table, frozenset()) | conditions(query.sql))
            and write.table in query.reads
        ),
        None,
    )


def _compares_version(sql: str, write: Write) -> bool:
    """Return whether an UPDATE compares a version: `SET version = version + 1 WHERE version = ?`."""
    change = parse_change(sql)
    equal = {column.lower() for column in _EQUAL.findall(change.condition)} if change else set[str]()
    return bool(write.sets & write.wheres & write.computed & equal)


def _compares_seconds(sql: str, write: Write) -> bool:
    change = parse_change(sql)
    if not change:
        return False
    values = parse_sets(change.sets)
    compared = write.sets & write.wheres
    return bool(compared) and all(_WHOLE_SECONDS.match(values.get(column, "")) for column in compared)


def _query_of_all_rows(
    earlier: Statements, statement: TracedStatement, write: Write
) -> TracedStatement | None:
    """Return an earlier query with the WHERE clause of a DELETE or UPDATE; None if there is none.

    For example: `SELECT ... WHERE sent = 0`, code that sends the rows, and then, in another transaction, `SET
    sent = 1 WHERE sent = 0`. The UPDATE also marks rows that other processes have added since.
    """
    where = condition_text(statement.sql)
    is_mark = bool(write.sets & write.wheres) and not write.computed
    if where is None or write.wheres & frozenset[str]({"rowid"}).union(*write.keys):
        return None
    if searches_range(statement.sql) or not (write.kind == DELETE or is_mark):
        return None
    for query in reversed(earlier):
        if (
            write.table in query.reads
            and query.runner == statement.runner
            and not query.shares_snapshot(statement)
            and condition_text(query.sql) == where
            and _uses_rows(query, earlier, write.table)
        ):
            return query
    return None


def _uses_rows(query: TracedStatement, earlier: Statements, table: Table) -> bool:
    """Return whether a call uses the rows of a query in a loop, a write, a sum or an INSERT ... SELECT."""
    if query.write:
        return query.write.table != table and inserts_from_select(query.sql)
    if not query.found:
        return False
    if _SUMS.match(query.sql):
        return True
    if query.counts:
        return False
    uses = any(
        other.write and may_depend(query.stack, other.stack, absence_counts=False)
        for other in earlier[earlier.index(query) + 1 :]
    )
    return uses or processes_rows(query.stack)


def _last_row_query(insert: TracedStatement, write: Write, later: Statements) -> TracedStatement | None:
    """Return the query by which the code looks for its inserted row; None if there is none.

    For example: INSERT, COMMIT, `SELECT max(id)`, and a write that uses this id. `later` has the statements
    of the call after the INSERT.
    """
    if is_new(write):
        return None
    for index, query in enumerate(later):
        is_last_row = (
            query.write is None
            and write.table in query.reads
            and len(query.reads) == 1
            and not query.shares_snapshot(insert)
            and not conditions(query.sql) - {"order", "by", "desc", "limit"}
            and _LAST_ROW.match(query.sql.strip())
        )
        if is_last_row and any(
            other.write and may_depend(query.stack, other.stack, absence_counts=False) is not False
            for other in later[index + 1 :]
        ):
            return query
    return None


def _remembered(earlier: Statements, delete: Write) -> TracedStatement | None:
    """Return the INSERT that stored the id of the deleted row in another table; or None.

    For example: `INSERT OR IGNORE INTO seen VALUES (7)`, then `DELETE FROM job WHERE id = 7`. A new job may
    get the id 7, and then counts as seen. An INSERT without OR IGNORE must store the id in a column whose
    name means a reference: `INSERT INTO letter (job_no) VALUES (7)`. `earlier` has the call's statements
    before the DELETE.
    """
    ids = {values for _, (_, values) in changed_keys(delete) if len(values) == 1}
    return next(
        (
            statement
            for statement in earlier
            if statement.write
            and statement.write.kind == INSERT
            and statement.write.table != delete.table
            and (_stores(statement, ids) if may_ignore(statement.sql) else _refers_to(statement.sql, ids))
        ),
        None,
    )


def _stores(statement: TracedStatement, ids: Container[tuple[Any, ...]]) -> bool:
    """Return whether an INSERT adds, or skips, a row with one of the ids as its key."""
    assert statement.write
    rows = (*(statement.write.rows or ()), *statement.write.existing)
    return any(values in ids for row in rows for _, values in row)


def _refers_to(sql: str, ids: Iterable[tuple[Any, ...]]) -> bool:
    """Return whether an INSERT stores one of the ids in a column whose name means a reference."""
    numbers = {str(number) for (number,) in ids}
    values = inserted_values(sql)
    return any(_REFERENCE.search(column) and value in numbers for column, value in values.items())


def _next_write(insert: TracedStatement, later: Statements) -> TracedStatement | None:
    """Return the first later write that may use the `lastrowid` of an INSERT OR IGNORE; or None."""
    assert insert.write
    for statement in later:
        # If the call queries the table before the write, the write may use the id from this query. This id is
        # right, unlike `lastrowid`.
        if insert.write.table in statement.reads and not statement.write:
            return None
        if statement.write and may_depend(insert.stack, statement.stack, absence_counts=False) is not False:
            return statement
    return None


def _reset_counter(statement: TracedStatement, write: Write, counters: Counters) -> TracedStatement | None:
    replace = _REPLACE.match(statement.sql)
    if not replace:
        return None
    named = {name.strip(' \t\n"`[]').lower() for name in replace[1].split(",")}
    updates = counters.get(write.table, {})
    return next((updates[column] for column in sorted(updates) if column not in named), None)


# Expired leases.

_LIMIT = re.compile(r"\b(\w+)[\"`\]]?\s*<=?\s*([^\s)]+(?:\([^)]*\))?)")
"""Pattern of a condition such as `expires < 100`, with groups for the column and the value."""


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
    """Return whether an UPDATE takes rows for a limited time: `SET expires = 160 WHERE expires < 100`.

    Here the time is 100, and the lease lasts 60 s. The result is False if the code reads neither RETURNING
    nor the row count, and so does not know whether the UPDATE has taken the rows.
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
    """Return whether the time `value` is later than `limit`: `160` and `100`, `now + 60` and `now`.

    Both times are SQL texts. False if in doubt.
    """
    try:
        return float(value) > float(limit)
    except ValueError:
        are_texts = value[:1] == limit[:1] == "'"
        return value > limit if are_texts else value != limit and value.startswith(limit)


def _compares_claim(call: Statements, claim: TracedStatement, later: TracedStatement) -> bool:
    """Return whether the transaction of a later write compares what the claim has set: `WHERE owner = 5`.

    If so, the transaction notices that another process has taken the row since.
    """
    assert claim.write
    return any(
        claim.write.sets & (other.write.wheres if other.write else conditions(other.sql))
        for other in call
        if other.transaction == later.transaction and _concerns(other, claim.write.table)
    )


def _concerns(statement: TracedStatement, table: Table) -> bool:
    return table in statement.reads or (statement.write is not None and statement.write.table == table)
