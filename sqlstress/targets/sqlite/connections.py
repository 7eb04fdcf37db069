"""A worker's connections to SQLite files, with prepared statements.
A worker is a process whose operations are measured. A case is one combination of options. Its data is divided
into buckets, with one file per bucket, such as kv_0.db.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.errors import EnvironmentFailure
from sqlstress.sqlite_codes import explained, is_busy
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets import watched
from sqlstress.targets.native import (
    NativeStore,
    NativeUnavailable,
    extension,
    require_native,
    unavailable_reason,
)
from sqlstress.targets.place import ClientStore
from sqlstress.targets.sqlite.busy import worker_waiting
from sqlstress.targets.sqlite.drivers import Connection, explain, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas

if TYPE_CHECKING:
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.sqlite.shim import ShimRecorder
    from sqlstress.targets.views import Operation, Refusal


class SqliteClient:
    """One worker's connections to the files of a case, with its rules for retries after BUSY."""

    def __init__(
        self, case: Case, paths: Sequence[Path], worker: int, watch: ShimRecorder | None = None
    ) -> None:
        """`worker` is the worker's number, from 1. `watch` records the activities for --where, or is None."""
        self.case, self.worker, self._paths, self._watch = case, worker, paths, watch
        self._driver = load_driver(case.driver)
        self.waiting = worker_waiting(case, worker)
        self._connections: list[Connection] = []

    def connect(self, bucket: int) -> Connection:
        """Open a bucket's file with the case's settings. Raises EnvironmentFailure with SQLite's code."""
        settings, path = self.case.settings, self._paths[bucket]
        try:
            connection = self._driver.connect(path, settings.busy_timeout_ms)
            try:
                # The first connection to a WAL initializes it. Until then, other connections get BUSY.
                self.retried(lambda _: pragmas.apply(connection, settings), connection.rollback)(None)
            except BaseException:
                connection.close()
                raise
        except Exception as error:
            reason = explain(self.case.driver, error)
            raise EnvironmentFailure(f"cannot open {path.name}: {reason}") from error
        self._connections.append(connection)
        return connection

    def connect_all(self) -> list[Connection]:
        try:
            return [self.connect(bucket) for bucket in range(len(self._paths))]
        except BaseException:
            self.close()
            raise

    def retried(self, call: Operation, recover: Callable[[], None]) -> Operation:
        return self.waiting.retried(call, self._driver.result_code, recover)

    def result_code(self, error: BaseException) -> int | None:
        return self._driver.result_code(error)

    def was_busy(self, error: BaseException) -> bool:
        code = self.result_code(error)
        self.waiting.count(code)
        if self._watch and is_busy(code):
            self._watch.gave_up()
        return is_busy(code)

    def busy_counts(self) -> tuple[int, int]:
        return self.waiting.busy, self.waiting.busy_snapshot

    def effective(self) -> dict[str, str]:
        settings = [pragmas.read_back(connection, self.case.settings) for connection in self._connections]
        return {name: " / ".join(dict.fromkeys(values[name] for values in settings)) for name in settings[0]}

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


GET = "SELECT value FROM kv WHERE key = ?"
PAIR = "SELECT key, value FROM kv WHERE key IN (?, ?)"
PUT = "REPLACE INTO kv (key, value) VALUES (?, ?)"
COMMIT = "COMMIT"
COUNT = "SELECT n FROM counter WHERE id = ?"
SET_COUNT = "UPDATE counter SET n = ? WHERE id = ?"
_SINGLE = {"get": GET, "pair": PAIR, "replace": PUT}
"""SQL of each kind of operation that is a single statement. Other operations are transactions."""


def statements_before(sql: str, begin: str) -> tuple[str, ...]:
    """Return the statements that come before `sql` in a transaction, such as (`begin`, PUT) for COMMIT.

    `begin` is the first statement, such as "BEGIN IMMEDIATE".
    """
    earlier = {COMMIT: (PUT,), SET_COUNT: (COUNT,)}
    return (begin, *earlier.get(sql, ()))


class SqliteStore(ClientStore):
    """A worker's key-value store in SQLite. The constructor connects. Raises EnvironmentFailure."""

    def __init__(self, client: SqliteClient, begin: str) -> None:
        super().__init__(client)
        self._waiting, self._result_code = client.waiting, client.result_code
        self._begin = f"BEGIN {begin.upper()}"
        for connection in client.connect_all():
            self._prepare(client, connection, self._begin)

    def refuse(self, kind: str, error: Exception, waited_s: float) -> None:
        if (code := self._result_code(error)) is not None:
            self._waiting.refusals.add(_SINGLE[kind], False, code, waited_s)

    def refusals(self) -> list[Refusal]:
        if not self._waiting.refusals.kinds:
            return []
        from sqlstress.targets.views import Refusal

        return [
            Refusal(sql, statements_before(sql, self._begin) if in_transaction else (), *figures)
            for (sql, in_transaction), figures in self._waiting.refusals
        ]

    def _prepare(self, client: SqliteClient, connection: Connection, begin: str) -> None:
        self.gets.append(connection.scalar(GET))
        self.pairs.append(lambda keys: connection.rows(PAIR, keys))
        self.puts.append(connection.writer(PUT))
        start, end, waiting = connection.writer(begin), connection.writer(COMMIT), client.waiting

        def replace_all(rows: list[tuple[object, object]]) -> None:
            statement = begin
            try:
                start(())
                statement = PUT
                connection.run_many(PUT, rows)
                statement = COMMIT
                end(())
            except Exception:
                waiting.refused = statement, connection.in_transaction()
                raise

        self.batches.append(client.retried(replace_all, connection.rollback))
        read, write = connection.scalar(COUNT), connection.writer(SET_COUNT)

        def increment(counter: tuple[int]) -> None:
            statement = begin
            try:
                start(())
                statement = COUNT
                count = read(counter) + 1
                statement = SET_COUNT
                write((count, *counter))
                statement = COMMIT
                end(())
            except Exception:
                waiting.refused = statement, connection.in_transaction()
                raise

        self.updates.append(client.retried(increment, connection.rollback))


# The C extension uses the connections of a driver, such as apsw. Each connection loads it as an extension of
# SQLite, which hands over the addresses of the connection and of SQLite's functions. The C extension includes
# no SQLite library, because two libraries that use one file break each other's POSIX locks.


ENTRY = "sqlite3_native_init"
_JITTER_BITS = 62


def native_store(client: SqliteClient, begin: str) -> NativeStore:
    """Connect, and return a key-value store for the C loop. `begin` is, for example, "immediate".

    Raises EnvironmentFailure if a file cannot be opened or the driver has no C loop on this system.
    """
    case, waiting = client.case, client.waiting
    with require_native(case.driver):
        _, handles = connect_with_handles(case.driver, client.connect_all)
    start = f"BEGIN {begin.upper()}"
    # The order of the statements must match the enum Sql in loop.h.
    statements = (GET, PAIR, PUT, start, COMMIT, "ROLLBACK", COUNT, SET_COUNT)
    plan = {
        "stores": True,
        "connections": [tuple(handle) for handle in handles],
        "statements": statements,
        "mean_wait_ns": int(waiting.mean_s * NS_PER_S),
        "least_wait_ns": int(waiting.least_s * NS_PER_S),
        "jitter": Random(f"{case.seed}:waiting:{client.worker}").getrandbits(_JITTER_BITS),
    }
    return NativeStore(client, plan, explained, [statements_before(sql, start) for sql in statements])


class Handle(NamedTuple):
    """Addresses in memory with which the C extension uses a driver's connection."""

    connection: int
    """Address of the `sqlite3` object."""
    functions: int
    """Address of the table of SQLite's functions."""


@cache
def native_unavailable(driver: str) -> str | None:
    """Return the reason why the driver has no native loop on this system, or None."""
    return unavailable_reason(lambda: driver_handle(driver))


def driver_handle(driver: str) -> Handle:
    """Return a handle for the functions of the driver's SQLite library, without a connection.

    Raises NativeUnavailable if the C extension cannot use the driver.
    """
    extension()
    binding = load_driver(driver)
    (connection,), (handle,) = connect_with_handles(driver, lambda: [binding.connect(Path(":memory:"), 0)])
    connection.close()
    return handle


def connect_with_handles(
    driver: str, connect: Callable[[], Sequence[Connection]]
) -> tuple[list[Connection], list[Handle]]:
    """Open connections with `connect`; return (connections, handles for the C extension).

    If the C extension cannot use a connection, close all connections and raise NativeUnavailable.
    """
    native = extension()
    native.handed_over()
    can_load = loads_extensions(driver)
    with nullcontext() if can_load else _load_on_open():
        connections = list(connect())
    try:
        for connection in connections if can_load else ():
            _load_extension(driver, connection)
        handles = [Handle(*addresses) for addresses in native.handed_over()]
        if len(handles) != len(connections):
            raise NativeUnavailable(f"{driver} handed over {len(handles)} of {len(connections)} connections")
        version = [*map(int, load_driver(driver).versions()[1].split(".")), 0, 0]
        number = version[0] * 10**6 + version[1] * 10**3 + version[2]
        if any(native.version_number(handle.functions) != number for handle in handles):
            raise NativeUnavailable(f"the functions of {driver} are not those of its SQLite")
    except BaseException:
        for connection in connections:
            connection.close()
        raise
    return connections, handles


def loads_extensions(driver: str) -> bool:
    """Return whether a driver's connections can load an extension of SQLite."""
    if driver == "apsw":
        import apsw

        return "OMIT_LOAD_EXTENSION" not in apsw.compile_options
    import sqlite3

    return hasattr(sqlite3.Connection, "enable_load_extension")


def _load_extension(driver: str, connection: Connection) -> None:
    binding = connection._connection
    binding.enable_load_extension(True)
    try:
        binding.load_extension(str(extension().__file__))
    except Exception as error:
        raise NativeUnavailable(f"{driver} cannot load the extension ({error})") from error
    finally:
        binding.enable_load_extension(False)


@contextmanager
def _load_on_open() -> Iterator[None]:
    """Load the C extension into each connection opened in the block, with sqlite3_auto_extension.

    Some builds of Python's module sqlite3 cannot load it in another way. Raises NativeUnavailable.
    """
    import _sqlite3

    try:
        library = ctypes.CDLL(str(_sqlite3.__file__))
        register, cancel = library.sqlite3_auto_extension, library.sqlite3_cancel_auto_extension
    except (AttributeError, OSError) as error:
        raise NativeUnavailable(
            f"the sqlite3 of this Python cannot load extensions, and its SQLite was not found ({error})"
        ) from error
    entry = ctypes.cast(getattr(ctypes.CDLL(str(extension().__file__)), ENTRY), ctypes.c_void_p)
    if register(entry) != 0:
        raise NativeUnavailable("SQLite did not load the extension")
    try:
        yield
    finally:
        cancel(entry)


# Check of all rows of all buckets in C


_ALL = "SELECT key, value FROM kv"
_STATEMENTS = 8
"""Number of statements that the C code expects (see loop.h). The check of the rows uses only _ALL."""


class _ConnectionGroup(NamedTuple):
    connections: list[Connection]

    def interrupt(self) -> None:
        for connection in self.connections:
            connection.interrupt()

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


@contextmanager
def check_in_parallel(
    case: Case, paths: Sequence[Path], plan: dict[str, Any], pulse: Pulse
) -> Iterator[Callable[[], int | None]]:
    """Check all key-value rows with C code in a thread. Yield a function that waits for the result.

    The result is the number of rows; None if a row is wrong or C cannot check. `plan` has the expected rows.
    """
    with closing(_ConnectionGroup([])) as group:
        handles = _connect_for_c(case, paths, group.connections)
        if handles is None:
            yield lambda: None
            return
        statements = (_ALL, *[""] * (_STATEMENTS - 1))
        whole = {**plan, "connections": [tuple(handle) for handle in handles], "statements": statements}
        with watched(group, lambda: int(extension().proved(whole)), pulse) as rows:
            yield lambda: None if (count := rows()) < 0 else count


def _connect_for_c(case: Case, paths: Sequence[Path], connections: list[Connection]) -> list[Handle] | None:
    driver = load_driver(case.driver)

    def connect() -> list[Connection]:
        for path in paths:
            connections.append(driver.connect(path, case.settings.busy_timeout_ms))
        return connections

    try:
        return connect_with_handles(case.driver, connect)[1]
    except NativeUnavailable:
        return None
    except Exception as error:
        if driver.result_code(error) is None:
            raise
        return None
