"""A worker's connection to a server.

Keys and values are binary, in statements that psycopg's pgconn prepares: a call is one round trip.

A serialization failure is what BUSY_SNAPSHOT is to SQLite; a deadlock or a lock time-out is what BUSY is.
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
from sqlstress.targets.postgres.dialect import (
    REPORTED,
    SERIALIZATION_FAILURE,
    dsn_of,
    explained,
    is_busy,
    set_up,
)
from sqlstress.targets.postgres.own_schema import Connection, connect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlstress.report.case import Case
    from sqlstress.targets.views import Operation

Statement = Callable[..., Any]
"""A function of parameters, if there are any, that returns a result of psycopg.pq."""
_SUCCEEDED = (int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK))
_BINARY = 1


def checked(result: Any) -> Any:
    """Return a result. Raises the psycopg.Error of a failed one."""
    if result.status in _SUCCEEDED:
        return result
    raise error_from_result(result)


class Client:
    """A worker's connection to a schema, in autocommit."""

    _connection: Connection

    def __init__(self, case: Case, schema: str) -> None:
        self.busy = self.busy_snapshot = 0
        self._case, self._schema = case, schema
        self._names = map("s{}".format, count())

    def connect(self, bucket: int = 0) -> Client:
        self._connection = connect(dsn_of(self._case), f"cannot open {self._schema}")
        self._pgconn = self._connection.pgconn
        self._connection.execute(set_up(self._case, self._schema).encode())
        return self

    def prepare(self, sql: str) -> Statement:
        """Prepare a statement whose parameters and results are binary, and return it as a function."""
        run, name = self._pgconn.exec_prepared, next(self._names).encode()
        formats = (_BINARY,) * sql.count("$")
        checked(self._pgconn.prepare(name, sql.encode()))

        return lambda params=(): checked(run(name, params, formats, _BINARY))

    def runs(self, sql: str) -> Callable[[Mapping[str, Any]], Any]:
        """Return a function of named values that runs a statement."""
        text, names = numbered(sql)
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

    def begun_again(self, call: Operation) -> Operation:
        """Wrap an operation: after BUSY it begins again as a whole, until the busy time-out."""
        clock, timeout_s = time.perf_counter, self._case.settings.busy_timeout_ms / 1000

        def attempt_until_done(params: Any) -> Any:
            began = clock()
            while True:
                try:
                    return call(params)
                except Exception as error:
                    self.rollback()
                    if not is_busy(error) or clock() - began >= timeout_s:
                        raise
                    self.was_busy(error)

        return attempt_until_done

    def was_busy(self, error: BaseException) -> bool:
        is_snapshot = getattr(error, "sqlstate", "") == SERIALIZATION_FAILURE
        self.busy_snapshot += is_snapshot
        self.busy += is_busy(error) and not is_snapshot
        return is_busy(error)

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


# A worker's view of keys and values: one connection, and a table for each bucket.


GET = "SELECT value FROM {kv} WHERE key = $1"
PAIR = "SELECT key, value FROM {kv} WHERE key IN ($1, $2)"
PUT = "INSERT INTO {kv} (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
COUNT = "SELECT n FROM {counter} WHERE id = $1"
SET_COUNT = "UPDATE {counter} SET n = $1 WHERE id = $2"
_INT = Struct("!q")
Coder = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]
CODERS: dict[str, Coder] = {
    "int": (_INT.pack, lambda data: int.from_bytes(data, "big", signed=True)),
    "text": (str.encode, bytes.decode),
    "blob": (bytes, bytes),
}
"""Functions that encode and decode a binary value, by type."""


def table_name(bucket: int) -> str:
    return f"kv_{bucket}"


def counter_name(bucket: int) -> str:
    return f"counter_{bucket}"


class PostgresStore(ClientStore):
    """A worker's functions on the tables of a schema, by bucket."""

    def __init__(self, case: Case, schema: str, begin: str) -> None:
        """`begin` is how transactions of several statements begin: "immediate" takes their locks first."""
        client = Client(case, schema).connect()
        super().__init__(client)
        keys, values = CODERS[case.spec.key_type], CODERS["int" if case.spec.value_size == 8 else "blob"]
        try:
            for bucket in range(case.buckets):
                self._add_rows(client, table_name(bucket), keys, values, begin == "immediate")
                self._add_counters(client, counter_name(bucket), begin == "immediate")
        except psycopg.Error as error:
            self.close()
            raise EnvironmentFailure(f"cannot open {schema}: {explained(error)}") from error

    def _add_rows(self, client: Client, kv: str, keys: Coder, values: Coder, locks: bool) -> None:
        get, pair, put = (client.prepare(sql.format(kv=kv)) for sql in (GET, PAIR, PUT))
        begin, commit = client.prepare("BEGIN"), client.prepare("COMMIT")
        (write_key, read_key), (write_value, read_value) = keys, values

        def value_of(params: tuple[Any]) -> Any:
            result = get((write_key(params[0]),))
            return read_value(result.get_value(0, 0)) if result.ntuples else None

        def both(params: tuple[Any, Any]) -> list[tuple[Any, Any]]:
            result = pair([*map(write_key, params)])
            rows = range(result.ntuples)
            return [
                (read_key(result.get_value(row, 0)), read_value(result.get_value(row, 1))) for row in rows
            ]

        def replace(params: tuple[Any, Any]) -> None:
            put((write_key(params[0]), write_value(params[1])))

        def replace_all(rows: Iterable[tuple[Any, Any]]) -> None:
            begin()
            # In a common order, no transaction waits for another one that waits for it.
            for row in sorted(rows, key=itemgetter(0)) if locks else rows:
                replace(row)
            commit()

        self.gets.append(client.begun_again(value_of))
        self.pairs.append(client.begun_again(both))
        self.puts.append(client.begun_again(replace))
        self.batches.append(client.begun_again(replace_all))

    def _add_counters(self, client: Client, counter: str, locks: bool) -> None:
        begin, commit, pack = client.prepare("BEGIN"), client.prepare("COMMIT"), _INT.pack
        read = client.prepare(COUNT.format(counter=counter) + " FOR UPDATE" * locks)
        write = client.prepare(SET_COUNT.format(counter=counter))

        def increment(params: tuple[int]) -> None:
            begin()
            number = pack(*params)
            (before,) = _INT.unpack(read((number,)).get_value(0, 0))
            write((pack(before + 1), number))
            commit()

        self.updates.append(client.begun_again(increment))


# Statements of the user, whose parameters have names. A value has the type of the same literal in SQL.


_BOOL, _INTEGERS, _FLOATS = 16, frozenset({20, 21, 23, 26}), frozenset({700, 701})
"""Numbers of types: bool; int8, int2, int4, oid; float4, float8. Source: PostgreSQL's catalog pg_type."""


def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with $1, $2, ... in place of each :name, and the names."""
    parts: list[str] = []
    names: list[str] = []
    for token in POSTGRES.tokens(sql):
        if token.kind == "parameter" and token.text[0] == ":":
            names.append(token.text[1:])
            parts.append(f"${len(names)}")
        else:
            parts.append(token.text)
    return "".join(parts), tuple(names)


def _as_literal(value: Any) -> Any:
    """Return a value of the type that the same literal has in SQL."""
    if isinstance(value, float):
        return Decimal(str(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Int4(value) if -(2**31) <= value < 2**31 else Int8(value)
    return value


def _decoded(data: bytes | None, kind: int) -> Any:
    """Return a value of a result: a number, a boolean, None, or the text of any other type."""
    if data is None:
        return None
    if kind in _INTEGERS:
        return int(data)
    if kind in _FLOATS:
        return float(data)
    return data == b"t" if kind == _BOOL else data.decode()
