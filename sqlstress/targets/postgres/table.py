"""The parent's key-value view of a schema: it makes and fills the tables, and reads them afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

from psycopg.sql import SQL, Composed, Identifier

from sqlstress.system.pulse import Pulse
from sqlstress.targets.postgres.keyvalue import counter_name, table_name
from sqlstress.targets.postgres.sessions import Connection, opened

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
