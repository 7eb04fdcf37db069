"""Connection of a worker to a PostgreSQL server.

Keys and values are sent in binary form to statements that psycopg's low-level connection has prepared, so
that a call is a single round trip. In the terms of SQLite, a serialization failure counts as BUSY_SNAPSHOT,
and a deadlock or a lock time-out as BUSY.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import count
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.errors import UndefinedParameter, error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.types.numeric import Int4, Int8

from sqlstress.errors import EnvironmentFailure
from sqlstress.options.sql_text import POSTGRES
from sqlstress.targets.place import ClientStore
from sqlstress.targets.postgres import dialect
from sqlstress.targets.postgres.dialect import BUSY, REPORTED, SERIALIZATION_FAILURE
from sqlstress.targets.postgres.own_schema import Connection, connect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlstress.report.case import Case
    from sqlstress.targets.views import Operation

_SUCCEEDED = (int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK))
_BINARY = 1


def _succeeded(result: Any) -> Any:
    if result.status in _SUCCEEDED:
        return result
    raise error_from_result(result)


class PostgresClient:
    """Connection of a worker, in autocommit mode; names are looked up in the schema of the case."""

    _connection: Connection

    def __init__(self, case: Case, schema: str) -> None:
        self.busy = self.busy_snapshot = 0
        self._case, self._schema = case, schema
        self._names = map("s{}".format, count())

    def connect(self, bucket: int = 0) -> PostgresClient:
        self._connection = connect(dialect.dsn_of(self._case), f"cannot open {self._schema}")
        self._pgconn = self._connection.pgconn
        self._connection.execute(dialect.session_setup(self._case, self._schema).encode())
        return self

    def prepare(self, sql: str) -> Callable[..., Any]:
        """Prepare a statement with binary parameters and results.

        Return a function that runs it: from the encoded parameters to the result of libpq.
        """
        run, name = self._pgconn.exec_prepared, next(self._names).encode()
        formats = (_BINARY,) * sql.count("$")
        _succeeded(self._pgconn.prepare(name, sql.encode()))
        return lambda params=(): _succeeded(run(name, params, formats, _BINARY))

    def runs(self, sql: str) -> Callable[[Mapping[str, Any]], Any]:
        """Return a function that runs a statement with parameters like :name. Its argument has the values."""
        text, names = number_parameters(sql)
        cursor: Any = psycopg.RawCursor(self._connection)

        def run(values: Mapping[str, Any]) -> Any:
            try:
                params = [_as_literal(values[name]) for name in names]
            except KeyError as error:
                raise UndefinedParameter(f"the variable :{error.args[0]} has no value") from None
            return cursor.execute(text, params, prepare=True).pgresult

        return run

    reads = runs

    def names(self, sql: str) -> Callable[[Mapping[str, Any]], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        run = self.runs(sql)

        def read(values: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
            result = run(values)
            columns = [(column, result.ftype(column)) for column in range(result.nfields)]
            rows = [
                [_decoded(result.get_value(row, column), kind) for column, kind in columns]
                for row in range(result.ntuples)
            ]
            return [result.fname(column).decode() for column, _ in columns], rows

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
        return bool(self._pgconn.transaction_status != TransactionStatus.IDLE)

    def close(self) -> None:
        self._connection.close()


# Keys and values. For each bucket, the schema has a table of keys and values, and a table of counters.


GET = "SELECT value FROM kv_{} WHERE key = $1"
PAIR = "SELECT key, value FROM kv_{} WHERE key IN ($1, $2)"
PUT = "INSERT INTO kv_{} (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
COUNT = "SELECT n FROM counter_{} WHERE id = $1"
SET_COUNT = "UPDATE counter_{} SET n = $1 WHERE id = $2"
_INT = Struct("!q")
CODERS: dict[str, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "int": (_INT.pack, lambda data: int.from_bytes(data, "big", signed=True)),
    "text": (str.encode, bytes.decode),
    "blob": (bytes, bytes),
}
"""Functions that encode a value to PostgreSQL's binary format, and decode it, by type of the value."""


class PostgresStore(ClientStore):
    """Operations of a worker on the key-value tables of a schema, by bucket."""

    def __init__(self, case: Case, schema: str, begin: str) -> None:
        """Connect, and prepare the statements for each bucket. Raises EnvironmentFailure.

        If `begin` is "immediate", transactions of several statements lock rows before they read, and in
        order.
        """
        client = PostgresClient(case, schema).connect()
        super().__init__(client)
        try:
            for bucket in range(case.buckets):
                self._add_bucket(client, case, bucket, begin == "immediate")
        except psycopg.Error as error:
            self.close()
            raise EnvironmentFailure(f"cannot open {schema}: {dialect.error_text(error)}") from error

    def _add_bucket(self, client: PostgresClient, case: Case, bucket: int, locks: bool) -> None:
        get, pair, put, set_count = (
            client.prepare(sql.format(bucket)) for sql in (GET, PAIR, PUT, SET_COUNT)
        )
        count = client.prepare(COUNT.format(bucket) + " FOR UPDATE" * locks)
        begin, commit, pack = client.prepare("BEGIN"), client.prepare("COMMIT"), _INT.pack
        write_key, read_key = CODERS[case.spec.key_type]
        write_value, read_value = CODERS["int" if case.spec.value_size == 8 else "blob"]

        def value_of(params: tuple[Any]) -> Any:
            result = get((write_key(params[0]),))
            return read_value(result.get_value(0, 0)) if result.ntuples else None

        def both(params: tuple[Any, Any]) -> list[tuple[Any, Any]]:
            value = (result := pair([*map(write_key, params)])).get_value
            return [(read_key(value(row, 0)), read_value(value(row, 1))) for row in range(result.ntuples)]

        def replace(params: tuple[Any, Any]) -> None:
            put((write_key(params[0]), write_value(params[1])))

        def replace_all(rows: Iterable[tuple[Any, Any]]) -> None:
            begin()
            # If all transactions lock rows in the same order, there are no deadlocks.
            for row in sorted(rows, key=itemgetter(0)) if locks else rows:
                replace(row)
            commit()

        def increment(params: tuple[int]) -> None:
            begin()
            number = pack(*params)
            (value,) = _INT.unpack(count((number,)).get_value(0, 0))
            set_count((pack(value + 1), number))
            commit()

        self.gets.append(client.retried(value_of))
        self.pairs.append(client.retried(both))
        self.puts.append(client.retried(replace))
        self.batches.append(client.retried(replace_all))
        self.updates.append(client.retried(increment))


# The user's statements, whose parameters have names. A value is sent with the type that the same literal
# would have in SQL.


_DECODERS: dict[int, Callable[[bytes], Any]] = {
    16: b"t".__eq__,
    **dict.fromkeys((20, 21, 23, 26), int),
    **dict.fromkeys((700, 701), float),
}
"""Functions that decode a value from text, by PostgreSQL's number of the type (pg_type.oid).

The types are bool; int8, int2, int4 and oid; float4 and float8. Values of all other types remain text.
"""


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


def _decoded(data: bytes | None, kind: int) -> Any:
    return None if data is None else _DECODERS.get(kind, bytes.decode)(data)
