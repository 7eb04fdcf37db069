"""A worker's connection, by libpq's own functions: a prepared statement is one call, and one answer.

A serialization failure is what BUSY_SNAPSHOT is to SQLite, and a deadlock or a lock that stayed taken what
BUSY is: the transaction is begun again, until its time-out has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Any

from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, PGconn, TransactionStatus

from sqlstress.errors import EnvironmentFailure
from sqlstress.options.sql_text import POSTGRES
from sqlstress.targets.place import ClientStore
from sqlstress.targets.postgres.dialect import (
    BUSY,
    REPORTED,
    SERIALIZATION_FAILURE,
    UNDEFINED_PARAMETER,
    UNTYPED,
    ServerError,
    dsn_of,
    explained,
    one_line,
    set_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlstress.report.case import Case
    from sqlstress.targets.views import Operation

PATIENCE_S = 10
"""So long a server may take to answer at all."""
_FINE = (int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK))
_BINARY = 1
Statement = Callable[[Sequence[bytes | None]], Any]
"""Parameters → a result of psycopg.pq."""

INT8, TEXT, BYTEA, BOOL, NUMERIC = 20, 25, 17, 16, 1700
_INTEGERS, _FLOATS = frozenset({INT8, 21, 23, 26}), frozenset({700, 701})
"""Numbers of types: int8, int2, int4, oid; float4, float8. Source: PostgreSQL's catalog pg_type."""


def with_defaults(dsn: str) -> str:
    """Return a connection string that says how long to wait for an answer, and in which characters."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    defaults: dict[str, Any] = {"connect_timeout": PATIENCE_S, "client_encoding": "UTF8"}
    return make_conninfo("", **{**defaults, **conninfo_to_dict(dsn)})


def connected(dsn: str, what: str) -> Any:
    """Connect by libpq alone; `what` is what for. Raises EnvironmentFailure, with the server's words."""
    connection = PGconn.connect(dsn.encode())
    if connection.status != ConnStatus.OK:
        reason = one_line(connection.error_message.decode(errors="replace"))
        connection.finish()
        raise EnvironmentFailure(f"{what}: {reason}")
    connection.notice_handler = None
    return connection


def fine(result: Any) -> Any:
    """Return a result. Raises ServerError for one that is an error."""
    if result.status in _FINE:
        return result
    code, text = (
        (result.error_field(field) or b"").decode(errors="replace")
        for field in (DiagnosticField.SQLSTATE, DiagnosticField.MESSAGE_PRIMARY)
    )
    raise ServerError(code, text or (result.error_message or b"").decode(errors="replace"))


class Client:
    """One worker's connection to a schema, and for SQL of the user's its session: in true autocommit."""

    def __init__(self, case: Case, schema: str, clock: Callable[[], float] = time.perf_counter) -> None:
        self.busy = self.busy_snapshot = 0
        self._clock, self._timeout_s = clock, case.settings.busy_timeout_ms / 1000
        self._case, self._schema, self._numbers = case, schema, count(1)
        self._connection: Any = None

    def connect(self, bucket: int = 0) -> Client:
        """Connect, and return itself. Raises EnvironmentFailure, with the server's words."""
        self._connection = connected(with_defaults(dsn_of(self._case)), f"cannot open {self._schema}")
        try:
            self.run(set_up(self._case, self._schema))
        except ServerError as error:
            self.close()
            raise EnvironmentFailure(f"cannot open {self._schema}: {explained(error)}") from error
        return self

    def run(self, sql: str) -> Any:
        return fine(self._connection.exec_(sql.encode()))

    def prepare(self, name: bytes, sql: str, types: Sequence[int] = ()) -> list[int]:
        """Prepare a statement, and return the types of its parameters; the server infers those that are 0."""
        fine(self._connection.prepare(name, sql.encode(), types))
        described = fine(self._connection.describe_prepared(name))
        return [described.param_type(number) for number in range(described.nparams)]

    def prepared(self, name: bytes, *formats: Any) -> Statement:
        """Return what runs a prepared statement. `formats` are those of its parameters and of its result;
        without them all are text.
        """
        run = self._connection.exec_prepared

        def answer(params: Sequence[bytes | None]) -> Any:
            result = run(name, params, *formats)
            return result if result.status in _FINE else fine(result)

        return answer

    def binary(self, name: bytes, sql: str) -> tuple[Statement, list[int]]:
        """Prepare a statement, and return it, with all in binary, and the types of its parameters."""
        types = self.prepare(name, sql)
        return self.prepared(name, (_BINARY,) * len(types), _BINARY), types

    def simple(self, sql: bytes) -> Callable[[], Any]:
        run = self._connection.exec_
        return lambda: fine(run(sql))

    def runs(self, sql: str) -> Callable[[Mapping[str, Any]], Any]:
        return _NamedStatement(self, self._numbers, sql).run

    reads = runs

    def names(self, sql: str) -> Callable[[Mapping[str, Any]], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        run = self.runs(sql)

        def read(values: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
            result = run(values)
            columns = range(result.nfields)
            types = [result.ftype(column) for column in columns]
            rows = [
                [_read(result.get_value(row, column), types[column]) for column in columns]
                for row in range(result.ntuples)
            ]
            return [result.fname(column).decode() for column in columns], rows

        return read

    def begun_again(self, call: Operation) -> Operation:
        """Wrap an operation so that it is begun again, as a whole, until it is done or its time is over."""
        clock = self._clock

        def attempt_until_done(params: Any) -> Any:
            begun = clock()
            while True:
                try:
                    return call(params)
                except Exception as error:
                    self.rollback()
                    if not _is_busy(error) or clock() - begun >= self._timeout_s:
                        raise
                    self.was_busy(error)

        return attempt_until_done

    def was_busy(self, error: BaseException) -> bool:
        code = getattr(error, "sqlstate", "")
        self.busy += code in BUSY
        self.busy_snapshot += code == SERIALIZATION_FAILURE
        return _is_busy(error)

    def busy_counts(self) -> tuple[int, int]:
        return self.busy, self.busy_snapshot

    def effective(self) -> dict[str, str]:
        result = self.run(f"SELECT {', '.join(f'current_setting({name!r})' for name in REPORTED)}")
        return {name: result.get_value(0, place).decode() for place, name in enumerate(REPORTED)}

    def rollback(self) -> None:
        if self._connection.status == ConnStatus.OK and self.in_transaction():
            self._connection.exec_(b"ROLLBACK")

    def in_transaction(self) -> bool:
        return bool(self._connection.transaction_status != TransactionStatus.IDLE)

    def close(self) -> None:
        if self._connection:
            self._connection.finish()


def _is_busy(error: BaseException) -> bool:
    code = getattr(error, "sqlstate", "")
    return code in BUSY or code == SERIALIZATION_FAILURE


# A worker's view of keys and values: one connection, and a table for each bucket.


GET = "SELECT value FROM {kv} WHERE key = $1"
PAIR = "SELECT key, value FROM {kv} WHERE key IN ($1, $2)"
PUT = "INSERT INTO {kv} (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
COUNT = "SELECT n FROM {counter} WHERE id = $1"
SET_COUNT = "UPDATE {counter} SET n = $1 WHERE id = $2"
_INT = Struct("!q")
CODERS: dict[int, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    INT8: (_INT.pack, lambda data: int.from_bytes(data, "big", signed=True)),
    TEXT: (str.encode, bytes.decode),
    BYTEA: (bytes, bytes),
}
"""By type: how a value is written, in binary, and read."""


def table_name(bucket: int) -> str:
    return f"kv_{bucket}"


def counter_name(bucket: int) -> str:
    return f"counter_{bucket}"


class PostgresStore(ClientStore):
    """Opens the tables of a schema. Raises EnvironmentFailure, with the server's words."""

    def __init__(self, case: Case, schema: str, begin: str) -> None:
        """`begin` is how transactions of several statements begin: "immediate" takes their locks first."""
        client = Client(case, schema).connect()
        super().__init__(client)
        try:
            for bucket in range(case.buckets):
                self._prepare(client, bucket, locks=begin == "immediate")
        except ServerError as error:
            self.close()
            raise EnvironmentFailure(f"cannot open {schema}: {explained(error)}") from error

    def _prepare(self, client: Client, bucket: int, locks: bool) -> None:
        retried, kv, counter = client.begun_again, table_name(bucket), counter_name(bucket)
        put, types = client.binary(b"put_%d" % bucket, PUT.format(kv=kv))
        get, _ = client.binary(b"get_%d" % bucket, GET.format(kv=kv))
        pair, _ = client.binary(b"pair_%d" % bucket, PAIR.format(kv=kv))
        (write_key, read_key), (write_value, read_value) = (CODERS[kind] for kind in types)
        begin, commit = client.simple(b"BEGIN"), client.simple(b"COMMIT")

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
            # In an order that all have in common, nobody waits for one who waits for him.
            for row in sorted(rows, key=itemgetter(0)) if locks else rows:
                replace(row)
            commit()

        self.gets.append(retried(value_of))
        self.pairs.append(retried(both))
        self.puts.append(retried(replace))
        self.batches.append(retried(replace_all))
        pack = _INT.pack
        read, _ = client.binary(b"count_%d" % bucket, COUNT.format(counter=counter) + " FOR UPDATE" * locks)
        write, _ = client.binary(b"set_%d" % bucket, SET_COUNT.format(counter=counter))

        def increment(params: tuple[int]) -> None:
            begin()
            number = pack(*params)
            (before,) = _INT.unpack(read((number,)).get_value(0, 0))
            write((pack(before + 1), number))
            commit()

        self.updates.append(retried(increment))


# Statements of the user's, whose parameters have names.
#
# What a query returns is received as text, and made values of only where somebody asks for them.


def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with $1, $2, ... for its variables, which are written :name, and their names.

    Each place has a number of its own: the server may infer another type for each.
    """
    parts: list[str] = []
    names: list[str] = []
    for token in POSTGRES.tokens(sql):
        if token.kind == "parameter" and token.text[0] == ":":
            names.append(token.text[1:])
            parts.append(f"${len(names)}")
        else:
            parts.append(token.text)
    return "".join(parts), tuple(names)


class _NamedStatement:
    """A statement: prepared once, or once for each kind of values where the SQL leaves their types open.

    The server infers a type from where a parameter stands, which is what makes a number a text in a column
    of texts. Where nothing says it (:a - :b), or it would take numbers for texts (:a > :b), a value has the
    type that it would have if it were written there.
    """

    def __init__(self, client: Client, numbers: Iterator[int], sql: str) -> None:
        self._client, self._numbers = client, numbers
        self._text, self._names = numbered(sql)
        self._open: frozenset[int] = frozenset()
        """The places of the parameters whose types are those of their values."""
        self._prepared: dict[tuple[int, ...], Statement] = {}
        places = range(len(self._names))
        try:
            inferred = self._prepare(())
        except ServerError as error:
            # Any other error may be over when it runs: an earlier statement may make what this one uses.
            self._open = frozenset(places if error.sqlstate in UNTYPED else ())
            return
        texts = frozenset(place for place in places if inferred[place] == TEXT)
        if texts:
            try:
                self._prepare(tuple(INT8 if place in texts else 0 for place in places))
            except ServerError:
                return
            self._open = texts

    def run(self, values: Mapping[str, Any]) -> Any:
        try:
            given = [values[name] for name in self._names]
        except KeyError as error:
            raise ServerError(UNDEFINED_PARAMETER, f"the variable :{error.args[0]} has no value") from None
        types: tuple[int, ...] = ()
        if self._open:
            types = tuple(_type(value) if place in self._open else 0 for place, value in enumerate(given))
        if types not in self._prepared:
            self._prepare(types)
        return self._prepared[types]([*map(_written, given)])

    def _prepare(self, types: tuple[int, ...]) -> list[int]:
        name = f"s{next(self._numbers)}".encode()
        inferred = self._client.prepare(name, self._text, types)
        self._prepared[types] = self._client.prepared(name)
        return inferred


def _type(value: Any) -> int:
    """Return the type that a value would have if it were written there; 0: that depends."""
    if isinstance(value, bool):
        return BOOL
    return INT8 if isinstance(value, int) else NUMERIC if isinstance(value, float) else 0


def _written(value: Any) -> bytes | None:
    """Return a value as the server reads it, whatever type it has there; None for NULL."""
    if value is None:
        return None
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return value if isinstance(value, bytes) else str(value).encode()


def _read(data: bytes | None, kind: int) -> Any:
    """Return a value of a result; one of another type as its text."""
    if data is None:
        return None
    if kind in _INTEGERS:
        return int(data)
    if kind in _FLOATS:
        return float(data)
    return data == b"t" if kind == BOOL else data.decode()
