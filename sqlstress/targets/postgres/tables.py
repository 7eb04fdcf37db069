"""The parent's key-value view of a schema: it makes and fills the tables, and reads them afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from sqlstress.report import Check, Space
from sqlstress.report.results import Tally
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.place import MEANWHILE, Definition, Disturbance
from sqlstress.targets.postgres.client import counter_name, table_name
from sqlstress.targets.postgres.errors import one_line
from sqlstress.targets.postgres.schema import Connection, opened

if TYPE_CHECKING:
    from sqlstress.targets.postgres.place import PostgresPlace


SQL_TYPES = {"int": "bigint", "text": "text", "blob": "bytea"}
AT_ONCE = 10_000
"""Rows that are copied between two looks whether we are to stop."""


class PostgresTable:
    """The tables of keys and values, and beside each that of the counters."""

    def __init__(self, place: PostgresPlace, key_type: str, value_size: int, counters: int) -> None:
        self._place, self._counters = place, counters
        self._types = (SQL_TYPES[key_type], "bigint" if value_size == 8 else "bytea")

    def create(self, pulse: Pulse) -> None:
        self.fill(((),) * self._place.case.buckets, pulse)

    def fill(self, buckets: Iterable[Iterable[tuple[Any, Any]]], pulse: Pulse) -> None:
        """Fill the tables, and vacuum them: what is measured is not to tidy up after the filling."""
        self._place.owner.make()
        with opened(self._place.owner.dsn, f"cannot fill {self._place.name}") as connection:
            connection.execute("SET synchronous_commit = off")
            for bucket, rows in enumerate(buckets):
                self._make(connection, bucket)
                self._copy(connection, bucket, rows, pulse)
                connection.execute(SQL("VACUUM (ANALYZE) {}").format(self._known(table_name(bucket))))
                pulse()

    def release(self) -> None:
        """Close nothing: no connection is kept for the workers."""

    def name(self, bucket: int) -> str:
        return table_name(bucket)

    def rows(self, bucket: int) -> Iterator[tuple[Any, Any]]:
        statement = SQL("COPY (SELECT key, value FROM {}) TO STDOUT (FORMAT BINARY)")
        with (
            self._place.read(_nothing) as connection,
            connection.cursor() as cursor,
            cursor.copy(statement.format(self._known(table_name(bucket)))) as copy,
        ):
            copy.set_types(self._types)
            yield from cast(Iterator[tuple[Any, Any]], copy.rows())

    def counters(self, bucket: int) -> list[tuple[int, Any]]:
        statement = SQL("SELECT id, n FROM {} ORDER BY id").format(self._known(counter_name(bucket)))
        with self._place.read(_nothing) as connection:
            return [(number, n) for number, n in connection.execute(statement).fetchall()]

    def _known(self, name: str) -> Identifier:
        return Identifier(self._place.name, name)

    def _make(self, connection: Connection, bucket: int) -> None:
        key, value = map(SQL, self._types)
        definition = SQL("CREATE TABLE {} (key {} PRIMARY KEY, value {})")
        connection.execute(definition.format(self._known(table_name(bucket)), key, value))
        counter = self._known(counter_name(bucket))
        connection.execute(SQL("CREATE TABLE {} (id bigint PRIMARY KEY, n bigint NOT NULL)").format(counter))
        numbers = SQL("INSERT INTO {} SELECT number, 0 FROM generate_series(0, {}) AS number")
        connection.execute(numbers.format(counter, self._counters - 1))

    def _copy(
        self, connection: Connection, bucket: int, rows: Iterable[tuple[Any, Any]], pulse: Pulse
    ) -> None:
        statement = SQL("COPY {} (key, value) FROM STDIN (FORMAT BINARY)").format(
            self._known(table_name(bucket))
        )
        rows = iter(rows)
        for first in rows:
            self._copy_some(connection, statement, chain((first,), islice(rows, AT_ONCE - 1)))
            pulse()

    def _copy_some(
        self, connection: Connection, statement: Composed, rows: Iterable[tuple[Any, Any]]
    ) -> None:
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(self._types)
            for row in rows:
                copy.write_row(row)


def _nothing() -> None:
    pass


# The tables of a trial as they were when they had been prepared, and what was done to them since.
#
# What a stranger writes into a table is for the proof to find. Here is what the proof can't see: a server
# that
# was started anew, a table that is another one now, one that somebody has locked.


_STARTED = "SELECT pg_postmaster_start_time()"
_TABLES = (
    "SELECT relname, oid::bigint, relfilenode::bigint FROM pg_class "
    "WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'"
)
_LOCKED = (
    "SELECT relname, pid FROM pg_locks JOIN pg_class ON pg_class.oid = relation "
    "WHERE relnamespace = to_regnamespace(%s) AND granted AND pid <> pg_backend_pid() "
    "AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') LIMIT 1"
)


class Marks(NamedTuple):
    """What no worker changes."""

    started: str
    """When the server was."""
    tables: dict[str, tuple[int, int]]
    """By name: which table it is, and which file it lies in."""


class PostgresSnapshot:
    """The server and the tables."""

    def __init__(self, place: PostgresPlace, pulse: Pulse) -> None:
        self._place = place
        self._before = self._marks(pulse)

    def exchanged(self) -> None:
        """Return nothing: that a table is another one is told by `changed`, for workers may do that too."""

    def changed(self, pulse: Pulse) -> Disturbance | None:
        now = self._marks(pulse)
        for name, before in self._before.tables.items():
            if now.tables.get(name) != before:
                how = "replaced by another table" if name in now.tables else "dropped"
                return Disturbance(f"{name} was {how} {MEANWHILE}", "failed")
        if now.started != self._before.started:
            return Disturbance(f"the server was started anew {MEANWHILE}")
        with self._place.read(pulse) as connection:
            row = connection.execute(_LOCKED, (self._place.name,)).fetchone()
        if row:
            return Disturbance(
                f"{row[0]} is locked by another program, the server's process {row[1]}: "
                "end it and measure again",
                "unknown",
            )
        return None

    def _marks(self, pulse: Pulse) -> Marks:
        with self._place.read(pulse) as connection:
            row = connection.execute(_STARTED).fetchone()
            tables = connection.execute(_TABLES, (self._place.name,)).fetchall()
        return Marks(str(row and row[0]), {name: (oid, file) for name, oid, file in tables})


# Whether the tables are sound, as the server sees them, and defined as they were; and where not.


_AMCHECK = (
    "SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace "
    "WHERE extname = 'amcheck'"
)
_CHECKS = {"quick": SQL("SELECT {}({})"), "full": SQL("SELECT {}({}, true)")}
_SIZE = "SELECT pg_total_relation_size(%s::regclass)"
_INDEXES = (
    "SELECT c.relname, c.oid FROM pg_class c JOIN pg_am ON pg_am.oid = relam "
    "WHERE relnamespace = to_regnamespace(%s) AND relkind = 'i' AND amname = 'btree' ORDER BY 1"
)
_DEFINITIONS = """
SELECT 'column', c.relname, format('%%s %%s%%s', attname, format_type(atttypid, atttypmod),
       CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END)
FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
WHERE c.relnamespace = to_regnamespace(%(schema)s) AND c.relkind = 'r' AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'index', c.relname, pg_get_indexdef(indexrelid)
FROM pg_index JOIN pg_class c ON c.oid = indrelid WHERE c.relnamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'constraint', c.relname, pg_get_constraintdef(o.oid)
FROM pg_constraint o JOIN pg_class c ON c.oid = conrelid
WHERE c.relnamespace = to_regnamespace(%(schema)s) AND contype <> 'n'
UNION ALL
SELECT 'trigger', c.relname, pg_get_triggerdef(t.oid)
FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
WHERE c.relnamespace = to_regnamespace(%(schema)s) AND NOT tgisinternal
UNION ALL
SELECT 'rule', c.relname, pg_get_ruledef(r.oid)
FROM pg_rewrite r JOIN pg_class c ON c.oid = ev_class WHERE c.relnamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'relation', relname, relkind::text || relpersistence::text
FROM pg_class WHERE relnamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'function', proname, pg_get_function_arguments(oid)
FROM pg_proc WHERE pronamespace = to_regnamespace(%(schema)s)
ORDER BY 1, 2, 3
"""


def integrity_check(place: PostgresPlace, level: str, pulse: Pulse) -> Check:
    """Run amcheck over the schema's B-trees, also against every row at the level "full".

    Where the server has not got that extension this says so: it is not ours to put it there.
    """
    tally = Tally("bt_index_check")
    with place.read(pulse) as connection:
        row = connection.execute(_AMCHECK).fetchone()
        if row is None:
            return Check(tally.name, "skipped", note="the server has no amcheck (CREATE EXTENSION amcheck)")
        function = Identifier(row[0], tally.name)
        for name, number in connection.execute(_INDEXES, (place.name,)).fetchall():
            pulse()
            tally.checked += 1
            for complaint in _complaints(connection, level, function, number):
                tally.problem(f"{name}: {complaint}")
    return tally.check()


def _complaints(connection: Connection, level: str, function: Identifier, index: int) -> Sequence[str]:
    try:
        connection.execute(_CHECKS[level].format(function, index))
    except psycopg.errors.InsufficientPrivilege:
        raise
    except psycopg.Error as error:
        return (one_line(str(error)),)
    return ()


def table_size(place: PostgresPlace, pulse: Pulse) -> Space:
    """Return what the first bucket's table takes, with its index; its pages are not looked at."""
    with place.read(pulse) as connection:
        row = connection.execute(_SIZE, (f"{place.name}.{table_name(0)}",)).fetchone()
    assert row
    return Space(int(row[0]), None, None, None, ())


def definitions(connection: Connection, schema: str) -> list[Definition]:
    """Return what is defined in a schema: kind, of what, how."""
    return connection.execute(_DEFINITIONS, {"schema": schema}).fetchall()


def schema_check(place: PostgresPlace, created: Sequence[Definition], pulse: Pulse) -> Check:
    """See that the schema defines what was created when the trial began, and nothing else."""
    tally = Tally("schema")
    tally.checked = len(created)
    with place.read(pulse) as connection:
        found = definitions(connection, place.name)
    for row in created:
        if row not in found:
            tally.problem(f"the schema lacks {_describe(row)}")
    for row in found:
        if row not in created:
            tally.problem(f"the schema holds {_describe(row)}, which nobody created")
    return tally.check()


def _describe(row: Definition) -> str:
    kind, of, how = row
    return f"the {kind} of {of}: {how!r:.160}"
