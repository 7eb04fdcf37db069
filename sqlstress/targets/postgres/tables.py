"""The tables of a schema, as the parent has them: filled, read, and looked at for what no proof sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg.sql import SQL, Identifier

from sqlstress.report import Check
from sqlstress.report.results import Tally
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.place import MEANWHILE, Definition, Disturbance, redefinitions
from sqlstress.targets.postgres.client import counter_name, table_name
from sqlstress.targets.postgres.dialect import one_line
from sqlstress.targets.postgres.own_schema import Connection, first, opened

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
                copy = SQL("COPY {} (key, value) FROM STDIN (FORMAT BINARY)").format(self._kv(bucket))
                rows = iter(rows)
                for row in rows:
                    self._copy(connection, copy, chain((row,), islice(rows, AT_ONCE - 1)))
                    pulse()
                connection.execute(SQL("VACUUM (ANALYZE) {}").format(self._kv(bucket)))
                pulse()

    def _make(self, connection: Connection, bucket: int) -> None:
        key, value = map(SQL, self._types)
        definition = SQL("CREATE TABLE {} (key {} PRIMARY KEY, value {})")
        connection.execute(definition.format(self._kv(bucket), key, value))
        counter = Identifier(self._place.name, counter_name(bucket))
        connection.execute(SQL("CREATE TABLE {} (id bigint PRIMARY KEY, n bigint NOT NULL)").format(counter))
        numbers = SQL("INSERT INTO {} SELECT number, 0 FROM generate_series(0, {}) AS number")
        connection.execute(numbers.format(counter, self._counters - 1))

    def _copy(self, connection: Connection, statement: Any, rows: Iterable[tuple[Any, Any]]) -> None:
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(self._types)
            for row in rows:
                copy.write_row(row)

    def settle(self) -> None:
        """Do nothing: the server shows the same to everybody."""

    def release(self) -> None:
        """Close nothing: no connection is kept for the workers."""

    def name(self, bucket: int) -> str:
        return table_name(bucket)

    def rows(self, bucket: int) -> Iterator[tuple[Any, Any]]:
        statement = SQL("COPY (SELECT key, value FROM {}) TO STDOUT (FORMAT BINARY)")
        with (
            self._place.read() as connection,
            connection.cursor() as cursor,
            cursor.copy(statement.format(self._kv(bucket))) as copy,
        ):
            copy.set_types(self._types)
            yield from cast(Iterator[tuple[Any, Any]], copy.rows())

    def counters(self, bucket: int) -> list[tuple[int, Any]]:
        counter = Identifier(self._place.name, counter_name(bucket))
        with self._place.read() as connection:
            rows = connection.execute(SQL("SELECT id, n FROM {} ORDER BY id").format(counter)).fetchall()
        return [(number, n) for number, n in rows]

    def _kv(self, bucket: int) -> Identifier:
        return Identifier(self._place.name, table_name(bucket))


# What was done to the server and to the tables since they had been prepared.
#
# What a stranger writes into a table is for the proof to find. Here is what the proof can't see: a server
# that was started anew, a table that is another one now, one that somebody has locked.


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


class PostgresSnapshot:
    """When the server was started, and which table each is, and in which file it lies."""

    def __init__(self, place: PostgresPlace, pulse: Pulse) -> None:
        self._place = place
        with place.read(pulse) as connection:
            self._before = self._marks(connection)

    def seal(self) -> None:
        """Do nothing: there are no files."""

    def exchanged(self) -> None:
        """Return nothing: that a table is another one is told by `changed`, for workers may do that too."""

    def changed(self, pulse: Pulse) -> Disturbance | None:
        with self._place.read(pulse) as connection:
            started, tables = self._marks(connection)
            lock = connection.execute(_LOCKED, (self._place.name,)).fetchone()
        for name, before in self._before[1].items():
            if tables.get(name) != before:
                how = "replaced by another table" if name in tables else "dropped"
                return Disturbance(f"{name} was {how} {MEANWHILE}", "failed")
        if started != self._before[0]:
            return Disturbance(f"the server restarted {MEANWHILE}")
        if lock:
            return Disturbance(
                f"{lock[0]} is locked by another program, the server's process {lock[1]}: "
                "end it and measure again",
                "unknown",
            )
        return None

    def _marks(self, connection: Connection) -> tuple[str, dict[str, tuple[int, int]]]:
        tables = connection.execute(_TABLES, (self._place.name,)).fetchall()
        return str(first(connection, _STARTED)[0]), {name: (oid, file) for name, oid, file in tables}


# Whether the tables are sound, as the server sees them, and defined as they were; and where not.


_AMCHECK = (
    "SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace "
    "WHERE extname = 'amcheck'"
)
_CHECKS = {"quick": SQL("SELECT {}({})"), "full": SQL("SELECT {}({}, true)")}
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
        for name, index in connection.execute(_INDEXES, (place.name,)).fetchall():
            pulse()
            tally.checked += 1
            try:
                connection.execute(_CHECKS[level].format(function, index))
            except psycopg.errors.InsufficientPrivilege:
                raise
            except psycopg.Error as error:
                tally.problem(f"{name}: {one_line(str(error))}")
    return tally.check()


def definitions(place: PostgresPlace, pulse: Pulse) -> list[Definition]:
    """Return what is defined in a schema: of what, and how."""
    with place.read(pulse) as connection:
        rows = connection.execute(_DEFINITIONS, {"schema": place.name}).fetchall()
    return [(f"the {kind} of {of}", how) for kind, of, how in rows]


def schema_check(place: PostgresPlace, created: Sequence[Definition], pulse: Pulse) -> Check:
    """See that the schema defines what was created when the trial began, and nothing else."""
    tally = Tally("schema")
    tally.checked = len(created)
    for complaint in redefinitions(created, definitions(place, pulse)):
        tally.problem(f"the schema {complaint}")
    return tally.check()
