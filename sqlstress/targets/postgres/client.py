"""Connection of a worker to a PostgreSQL server. A serialization failure counts as BUSY_SNAPSHOT."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.errors import UndefinedParameter
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int4, Int8, Int8BinaryDumper
from psycopg.types.string import TextLoader

from sqlstress.options.sql_text import POSTGRES
from sqlstress.targets.place import ClientStore
from sqlstress.targets.postgres import dialect
from sqlstress.targets.postgres.dialect import BUSY, REPORTED, SERIALIZATION_FAILURE
from sqlstress.targets.postgres.own_schema import Connection, connect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlstress.report.case import Case
    from sqlstress.targets.views import Operation

_NUMBERS = ("bool", "int2", "int4", "int8", "oid", "float4", "float8")
ADAPTERS = AdaptersMap(psycopg.adapters)
"""Conversions of a worker's values: in results, all types except numbers and bool are text."""
ADAPTERS.register_dumper(int, Int8BinaryDumper)
for _type in psycopg.postgres.types:
    ADAPTERS.register_loader(_type.array_oid, TextLoader)
    if _type.name not in _NUMBERS:
        ADAPTERS.register_loader(_type.oid, TextLoader)


class PostgresClient:
    """Connection of a worker, in autocommit mode; names are looked up in the schema of the case."""

    _connection: Connection

    def __init__(self, case: Case, schema: str) -> None:
        self.busy = self.busy_snapshot = 0
        self._case, self._schema = case, schema

    def connect(self, bucket: int = 0) -> PostgresClient:
        dsn = dialect.dsn_of(self._case)
        self._connection = connect(dsn, f"cannot open {self._schema}", context=ADAPTERS)
        self._connection.prepared_max = None
        self._connection.execute(dialect.session_setup(self._case, self._schema).encode())
        return self

    def prepare(self, sql: str) -> Callable[..., Any]:
        """Return a function that runs a statement with binary parameters, prepared at the first call."""
        run = psycopg.RawCursor(self._connection).execute
        return lambda params=(): run(sql.encode(), params, prepare=True, binary=True)

    def runs(self, sql: str) -> Callable[[Mapping[str, Any]], Any]:
        """Return a function that runs a statement with parameters like :name. Its argument has the values."""
        text, names = number_parameters(sql)
        cursor: Any = psycopg.RawCursor(self._connection)

        def run(values: Mapping[str, Any]) -> Any:
            try:
                params = [_as_literal(values[name]) for name in names]
            except KeyError as error:
                raise UndefinedParameter(f"the variable :{error.args[0]} has no value") from None
            return cursor.execute(text, params, prepare=True)

        return run

    reads = runs

    def names(self, sql: str) -> Callable[[Mapping[str, Any]], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        run = self.runs(sql)

        def read(values: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
            cursor = run(values)
            return [column.name for column in cursor.description], cursor.fetchall()

        return read

    def retried(self, call: Operation) -> Operation:
        """Return an operation that rolls back and starts again after BUSY, until the busy time-out."""
        clock, timeout_s = time.perf_counter, self._case.settings.busy_timeout_ms / 1000

        def attempt_until_done(params: Any) -> Any:
            started_s = clock()
            while True:
                try:
                    return call(params)
                except Exception as error:
                    self.rollback()
                    # The caller counts the last error.
                    if clock() - started_s >= timeout_s or not self.was_busy(error):
                        raise

        return attempt_until_done

    def was_busy(self, error: BaseException) -> bool:
        code = getattr(error, "sqlstate", None)
        self.busy_snapshot += code == SERIALIZATION_FAILURE
        self.busy += code in BUSY and code != SERIALIZATION_FAILURE
        return code in BUSY

    def busy_counts(self) -> tuple[int, int]:
        return self.busy, self.busy_snapshot

    def effective(self) -> dict[str, str]:
        query = f"SELECT {', '.join(f'current_setting({name!r})' for name in REPORTED)}"
        (values,) = self._connection.execute(query.encode()).fetchall()
        return dict(zip(REPORTED, values, strict=True))

    def rollback(self) -> None:
        if not self._connection.closed:
            self._connection.rollback()

    def in_transaction(self) -> bool:
        return self._connection.info.transaction_status != TransactionStatus.IDLE

    def close(self) -> None:
        self._connection.close()


GET = "SELECT value FROM kv_{} WHERE key = $1"
PAIR = "SELECT key, value FROM kv_{} WHERE key IN ($1, $2)"
PUT = "INSERT INTO kv_{} (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
COUNT = "SELECT n FROM counter_{} WHERE id = $1"
SET_COUNT = "UPDATE counter_{} SET n = $1 WHERE id = $2"


class PostgresStore(ClientStore):
    """Operations of a worker on the key-value tables of a schema, by bucket."""

    def __init__(self, case: Case, schema: str, begin: str) -> None:
        """Connect. If `begin` is "immediate", transactions lock rows before they read, and in order."""
        client = PostgresClient(case, schema).connect()
        super().__init__(client)
        for bucket in range(case.buckets):
            self._add_bucket(client, bucket, begin == "immediate")

    def _add_bucket(self, client: PostgresClient, bucket: int, locks: bool) -> None:
        statements = (GET, PAIR, PUT, COUNT + " FOR UPDATE" * locks, SET_COUNT, "BEGIN", "COMMIT")
        get, pair, put, count, set_count, begin, commit = (
            client.prepare(sql.format(bucket)) for sql in statements
        )

        def value_of(key: tuple[Any]) -> Any:
            row = get(key).fetchone()
            return row and row[0]

        def both(keys: tuple[Any, Any]) -> list[tuple[Any, Any]]:
            rows: list[tuple[Any, Any]] = pair(keys).fetchall()
            return rows

        def replace_all(rows: Iterable[tuple[Any, Any]]) -> None:
            begin()
            # If all transactions lock rows in the same order, there are no deadlocks.
            for row in sorted(rows, key=itemgetter(0)) if locks else rows:
                put(row)
            commit()

        def increment(number: tuple[int]) -> None:
            begin()
            (value,) = count(number).fetchone()
            set_count((value + 1, *number))
            commit()

        self.gets.append(client.retried(value_of))
        self.pairs.append(client.retried(both))
        self.puts.append(client.retried(put))
        self.batches.append(client.retried(replace_all))
        self.updates.append(client.retried(increment))


def number_parameters(sql: str) -> tuple[str, list[str]]:
    """Return a statement with $1, $2, ... instead of its :name parameters, and their names in order."""
    text, names = "", list[str]()
    for token in POSTGRES.tokens(sql):
        is_name = token.kind == "parameter" and token.text[0] == ":"
        names += [token.text[1:]] * is_name
        text += f"${len(names)}" if is_name else token.text
    return text, names


def _as_literal(value: Any) -> Any:
    if isinstance(value, float):
        return Decimal(str(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Int4(value) if -(2**31) <= value < 2**31 else Int8(value)
    return value
