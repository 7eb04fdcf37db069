"""A worker's connection, by libpq's own functions: a prepared statement is one call, and one answer.

A serialization failure is what BUSY_SNAPSHOT is to SQLite, and a deadlock or a lock that stayed taken what
BUSY is: the transaction is begun again, until its time-out has passed.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from struct import Struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg.pq import ConnStatus, ExecStatus, PGconn, TransactionStatus

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.native import NotToBeHad, carry_out, extension, lacking, needed
from sqlstress.targets.postgres import settings
from sqlstress.targets.postgres.address import PATIENCE_S, dsn_of
from sqlstress.targets.postgres.errors import (
    BUSY,
    SERIALIZATION_FAILURE,
    ServerError,
    explained,
    of_result,
    one_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlstress.report.case import Case
    from sqlstress.targets.views import Operation


ROWS, DONE = int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK)
BINARY = 1
_FINE = (ROWS, DONE)


class Client:
    """One worker's connection to a schema. Raises EnvironmentFailure, with the server's words."""

    def __init__(self, case: Case, schema: str, clock: Callable[[], float] = time.perf_counter) -> None:
        self.case, self.schema = case, schema
        self.busy = self.busy_snapshot = 0
        self._clock, self._timeout_s = clock, case.settings.busy_timeout_ms / 1000
        self._connection: Any = connected(with_defaults(dsn_of(case)), f"cannot open {schema}")
        try:
            self.run(settings.statements(case, schema))
        except ServerError as error:
            self.close()
            raise EnvironmentFailure(f"cannot open {schema}: {explained(error)}") from error

    @property
    def address(self) -> int:
        """Where libpq's own connection lies."""
        return int(self._connection.pgconn_ptr)

    def run(self, sql: str) -> Any:
        """Run SQL without parameters; return its last result. Raises ServerError."""
        return fine(self._connection.exec_(sql.encode()))

    def prepare(self, name: bytes, sql: str, types: Sequence[int] = ()) -> Sequence[int]:
        """Prepare a statement, and return the types of its parameters; the server infers those that are 0."""
        fine(self._connection.prepare(name, sql.encode(), types))
        described = fine(self._connection.describe_prepared(name))
        return [described.param_type(number) for number in range(described.nparams)]

    def prepared(self, name: bytes, parameters: int) -> Callable[[Sequence[bytes]], Any]:
        """Return a function of parameters, in binary, that runs a prepared statement; so is its result."""
        run, formats = self._connection.exec_prepared, (BINARY,) * parameters

        def answer(params: Sequence[bytes]) -> Any:
            result = run(name, params, formats, BINARY)
            return result if result.status in _FINE else fine(result)

        return answer

    def named(self, name: bytes) -> Callable[[Sequence[bytes | None]], Any]:
        """Return a function of parameters, as text, that runs a prepared statement; so is its result."""
        run = self._connection.exec_prepared

        def answer(params: Sequence[bytes | None]) -> Any:
            result = run(name, params)
            return result if result.status in _FINE else fine(result)

        return answer

    def simple(self, sql: bytes) -> Callable[[], Any]:
        """Return a function that runs a statement without parameters."""
        run = self._connection.exec_
        return lambda: fine(run(sql))

    def retried(self, call: Operation) -> Operation:
        """Wrap an operation so that it is begun again, as a whole, until it is done or its time is over."""
        clock = self._clock

        def attempt_until_done(params: Any) -> Any:
            begun = clock()
            while True:
                try:
                    return call(params)
                except Exception as error:
                    self.recover()
                    if not _is_busy(error) or clock() - begun >= self._timeout_s:
                        raise
                    self._count(error)

        return attempt_until_done

    def was_busy(self, error: BaseException) -> bool:
        """Return whether an operation was given up because it could not be served in time; count it if so."""
        self._count(error)
        return _is_busy(error)

    def effective(self) -> dict[str, str]:
        """Return the settings as the server answers them, in this session."""
        names = ", ".join(f"current_setting('{name}')" for name in settings.REPORTED)
        result = self.run(f"SELECT {names}")
        return {name: result.get_value(0, place).decode() for place, name in enumerate(settings.REPORTED)}

    def close(self) -> None:
        """Close the connection; a transaction that is open is undone."""
        self._connection.finish()

    def recover(self) -> None:
        """End what a failed attempt has left open."""
        if self._connection.status == ConnStatus.OK and self.in_transaction():
            self._connection.exec_(b"ROLLBACK")

    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""
        return bool(self._connection.transaction_status != TransactionStatus.IDLE)

    def _count(self, error: BaseException) -> None:
        code = getattr(error, "sqlstate", "")
        self.busy += code in BUSY
        self.busy_snapshot += code == SERIALIZATION_FAILURE


def connected(dsn: str, what: str) -> Any:
    """Connect by libpq alone; `what` is what for. Raises EnvironmentFailure, with the server's words."""
    connection = PGconn.connect(dsn.encode())
    if connection.status != ConnStatus.OK:
        said = one_line(connection.error_message.decode(errors="replace"))
        connection.finish()
        raise EnvironmentFailure(f"{what}: {said}")
    connection.notice_handler = None
    return connection


def with_defaults(dsn: str) -> str:
    """Return a connection string that says how long to wait for an answer, and in which characters."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    own: dict[str, Any] = {"connect_timeout": PATIENCE_S, "client_encoding": "UTF8"}
    return make_conninfo("", **{**own, **conninfo_to_dict(dsn)})


def fine(result: Any) -> Any:
    """Return a result. Raises ServerError for one that is an error."""
    if result.status not in _FINE:
        raise of_result(result)
    return result


def _is_busy(error: BaseException) -> bool:
    code = getattr(error, "sqlstate", "")
    return code in BUSY or code == SERIALIZATION_FAILURE


# A worker's view of a schema: one connection, and a table for each bucket.


GET = "SELECT value FROM {kv} WHERE key = $1"
PAIR = "SELECT key, value FROM {kv} WHERE key IN ($1, $2)"
PUT = "INSERT INTO {kv} (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
COUNT = "SELECT n FROM {counter} WHERE id = $1"
SET_COUNT = "UPDATE {counter} SET n = $1 WHERE id = $2"

INT8, TEXT, BYTEA = 20, 25, 17
"""Numbers of types. Source: PostgreSQL's catalog pg_type."""
_INT = Struct("!q")


class Coder(NamedTuple):
    """How a type is written, in binary, and read."""

    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]


def _read_int(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _as_it_is(data: bytes) -> bytes:
    return data


CODERS = {
    INT8: Coder(_INT.pack, _read_int),
    TEXT: Coder(str.encode, bytes.decode),
    BYTEA: Coder(bytes, bytes),
}


class PostgresStore:
    """Opens the tables of a schema. Raises EnvironmentFailure, with the server's words."""

    def __init__(self, case: Case, schema: str, begin: str) -> None:
        """`begin` is how transactions of several statements begin: "immediate" takes their locks first."""
        self._client, self._locks = Client(case, schema), begin == "immediate"
        self.gets: list[Operation] = []
        self.pairs: list[Operation] = []
        self.puts: list[Operation] = []
        self.batches: list[Operation] = []
        self.updates: list[Operation] = []
        self._begin, self._commit = self._client.simple(b"BEGIN"), self._client.simple(b"COMMIT")
        try:
            for bucket in range(case.buckets):
                self._prepare(bucket)
        except ServerError as error:
            self.close()
            raise EnvironmentFailure(f"cannot open {schema}: {explained(error)}") from error

    def _prepare(self, bucket: int) -> None:
        retried, kv, counter = self._client.retried, table_name(bucket), counter_name(bucket)
        put, types = self._statement("put", bucket, PUT.format(kv=kv))
        key, value = (CODERS[each] for each in types)
        get, _ = self._statement("get", bucket, GET.format(kv=kv))
        pair, _ = self._statement("pair", bucket, PAIR.format(kv=kv))
        self.gets.append(retried(_get(get, key, value)))
        self.pairs.append(retried(_pair(pair, key, value)))
        replace = _replace(put, key, value)
        self.puts.append(retried(replace))
        self.batches.append(retried(self._batch(replace)))
        count = COUNT.format(counter=counter) + " FOR UPDATE" * self._locks
        read, _ = self._statement("count", bucket, count)
        write, _ = self._statement("set", bucket, SET_COUNT.format(counter=counter))
        self.updates.append(retried(self._update(read, write)))

    def _statement(self, kind: str, bucket: int, sql: str) -> tuple[Callable[..., Any], list[int]]:
        name = f"{kind}_{bucket}".encode()
        types = list(self._client.prepare(name, sql))
        return self._client.prepared(name, len(types)), types

    def _batch(self, replace: Operation) -> Operation:
        begin, commit, in_order = self._begin, self._commit, self._locks

        def replace_all(rows: Iterable[tuple[Any, Any]]) -> None:
            begin()
            # In an order that all have in common, nobody waits for one who waits for him.
            for row in sorted(rows) if in_order else rows:
                replace(row)
            commit()

        return replace_all

    def _update(self, read: Callable[..., Any], write: Callable[..., Any]) -> Operation:
        begin, commit, pack = self._begin, self._commit, _INT.pack

        def increment(counter: tuple[int]) -> None:
            begin()
            number = pack(*counter)
            (before,) = _INT.unpack(read((number,)).get_value(0, 0))
            write((pack(before + 1), number))
            commit()

        return increment

    @property
    def address(self) -> int:
        """Where libpq's own connection lies, on which all this is prepared."""
        return self._client.address

    def was_busy(self, error: Exception) -> bool:
        return self._client.was_busy(error)

    def busy_counts(self) -> tuple[int, int]:
        return self._client.busy, self._client.busy_snapshot

    def effective(self) -> dict[str, str]:
        return self._client.effective()

    def close(self) -> None:
        self._client.close()


def table_name(bucket: int) -> str:
    """Return what the table of a bucket is called."""
    return f"kv_{bucket}"


def counter_name(bucket: int) -> str:
    """Return what the table of a bucket's counters is called."""
    return f"counter_{bucket}"


def _get(run: Callable[..., Any], key: Coder, value: Coder) -> Operation:
    write, read = key.write, value.read

    def get(params: tuple[Any]) -> Any:
        result = run((write(params[0]),))
        return read(result.get_value(0, 0)) if result.ntuples else None

    return get


def _pair(run: Callable[..., Any], key: Coder, value: Coder) -> Operation:
    def both(params: tuple[Any, Any]) -> list[tuple[Any, Any]]:
        result = run([*map(key.write, params)])
        rows = range(result.ntuples)
        return [(key.read(result.get_value(row, 0)), value.read(result.get_value(row, 1))) for row in rows]

    return both


def _replace(run: Callable[..., Any], key: Coder, value: Coder) -> Operation:
    write_key, write_value = key.write, value.write

    def put(params: tuple[Any, Any]) -> None:
        run((write_key(params[0]), write_value(params[1])))

    return put


# Where the functions of psycopg's own libpq lie, for the loop in C: a second libpq is never an option.


NAMES = (
    "PQexec",
    "PQexecPrepared",
    "PQresultStatus",
    "PQresultErrorField",
    "PQerrorMessage",
    "PQtransactionStatus",
    "PQntuples",
    "PQgetisnull",
    "PQgetlength",
    "PQgetvalue",
    "PQclear",
)
"""What the loop in C calls, as postgres.h has it."""


@cache
def lacks() -> str | None:
    """Say why there is no native loop for psycopg here; None: there is."""
    try:
        return lacking(extension) or lacking(functions)
    except ImportError as error:
        return f"psycopg can't be imported ({error})"


@cache
def functions() -> Mapping[str, int]:
    """Return the address of each function. Raises NotToBeHad."""
    from psycopg import pq

    try:
        library = ctypes.CDLL(_library(pq))
        found = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in NAMES}
        version = library.PQlibVersion()
    except (AttributeError, OSError) as error:
        raise NotToBeHad(f"psycopg hides its libpq ({error})") from error
    if version != pq.version():
        raise NotToBeHad(f"libpq {version} was found, and psycopg's is {pq.version()}")
    return MappingProxyType(found)


def _library(pq: Any) -> str:
    """Return the file through which psycopg's libpq is found: its binding, or where that is none, itself."""
    if pq.__impl__ == "python":
        from psycopg.pq.misc import find_libpq_full_path

        return _there(find_libpq_full_path())
    binding = Path(str(sys.modules[pq.PGconn.__module__].__file__))
    if sys.platform != "win32":
        return str(binding)
    # There a library does not show what those have that it needs.
    beside = binding.parent.with_name(f"{binding.parent.name}.libs")
    return _there(next(map(str, beside.glob("libpq*.dll")), None))


def _there(library: str | None) -> str:
    if library is None:
        raise NotToBeHad("the library that psycopg uses was not found")
    return library


# A worker's view of a schema from C: psycopg's own connection, and what is prepared on it, handed over.


KINDS = ("get", "pair", "put", "count", "set")
"""The statements of a bucket, in the order of Prepared in postgres.h."""
_STATE = 5
"""Characters of an SQLSTATE."""


class PostgresNativeStore:
    """Opens the tables of a schema. Raises EnvironmentFailure, with the server's words."""

    def __init__(self, case: Case, schema: str, begin: str) -> None:
        """`begin` is how transactions of several statements begin: "immediate" takes their locks first."""
        with needed(case.driver):
            self._native, addresses = extension(), functions()
        self._store = PostgresStore(case, schema, begin)
        names = [f"{kind}_{bucket}".encode() for bucket in range(case.buckets) for kind in KINDS]
        self._plan: dict[str, Any] = {
            "stores": True,
            "server": (self._store.address, dict(addresses), names, begin == "immediate"),
        }

    def run(self, plan: dict[str, Any]) -> dict[str, Any]:
        return carry_out(self._native, {**plan, **self._plan}, _explained)

    def effective(self) -> dict[str, str]:
        return self._store.effective()

    def close(self) -> None:
        self._store.close()


def _explained(_code: int, said: str) -> str:
    """Return the server's words for what stopped the loop."""
    error = ServerError(said[:_STATE].strip(), said[_STATE:])
    return explained(error) or str(error)
