"""A worker's view of SQLite files: one connection to each bucket, statements prepared by the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.errors import EnvironmentFailure
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.native import NotToBeHad, carry_out, extension, lacking, needed
from sqlstress.targets.sqlite.busy import Turns, Waiting, waiting_of
from sqlstress.targets.sqlite.drivers import Connection, explain, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.drivers.codes import explained, is_busy

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.where_recording import Watch
    from sqlstress.targets.views import Operation


GET = "SELECT value FROM kv WHERE key = ?"
PAIR = "SELECT key, value FROM kv WHERE key IN (?, ?)"
PUT = "REPLACE INTO kv (key, value) VALUES (?, ?)"
COUNT = "SELECT n FROM counter WHERE id = ?"
SET_COUNT = "UPDATE counter SET n = ? WHERE id = ?"


class SqliteStore:
    """Opens every bucket of a client's place. Raises EnvironmentFailure, with SQLite's code."""

    def __init__(self, client: Client, begin: str) -> None:
        """`begin` is how transactions of several statements begin."""
        self._client, self._begin = client, f"BEGIN {begin}"
        self.gets: list[Operation] = []
        self.pairs: list[Operation] = []
        self.puts: list[Operation] = []
        self.batches: list[Operation] = []
        self.updates: list[Operation] = []
        for connection in client.connect_all():
            self._prepare(connection)

    def _prepare(self, connection: Connection) -> None:
        simple = self._retried if self._client.waits_outside else _as_it_is
        in_turn = self._client.turns()
        self.gets.append(simple(connection, connection.scalar(GET)))
        self.pairs.append(simple(connection, lambda keys: connection.rows(PAIR, keys)))
        self.puts.append(in_turn(simple(connection, connection.writer(PUT))))
        self.batches.append(in_turn(self._retried(connection, _batch(connection, self._begin))))
        self.updates.append(in_turn(self._retried(connection, _update(connection, self._begin))))

    def _retried(self, connection: Connection, operation: Operation) -> Operation:
        return self._client.retried(operation, connection.rollback)

    def was_busy(self, error: Exception) -> bool:
        return self._client.was_busy(error)

    def busy_counts(self) -> tuple[int, int]:
        return self._client.busy_counts()

    def effective(self) -> dict[str, str]:
        return self._client.effective()

    def close(self) -> None:
        self._client.close()


def _as_it_is(_connection: Connection, operation: Operation) -> Operation:
    return operation


def _batch(connection: Connection, begin: str) -> Operation:
    start, end = connection.writer(begin), connection.writer("COMMIT")

    def replace_all(rows: list[tuple[object, object]]) -> None:
        start(())
        connection.run_many(PUT, rows)
        end(())

    return replace_all


def _update(connection: Connection, begin: str) -> Operation:
    start, end = connection.writer(begin), connection.writer("COMMIT")
    read, write = connection.scalar(COUNT), connection.writer(SET_COUNT)

    def increment(counter: tuple[int]) -> None:
        start(())
        write((read(counter) + 1, *counter))
        end(())

    return increment


# A worker's connections to the files of a place, with the settings of its case.


def connect(case: Case, path: Path, waiting: Waiting) -> Connection:
    """Open a file with the case's settings. Raises EnvironmentFailure, with SQLite's code."""
    settings, driver = case.settings, load_driver(case.driver)
    try:
        connection = driver.connect(
            path, settings.busy_timeout_ms, waiting if settings.busy == "fair" else None
        )
        # Whoever opens a WAL that nobody holds sets it up, and the others wait for it.
        apply = waiting.retried(
            lambda _: pragmas.apply(connection, settings), driver.result_code, connection.rollback
        )
        try:
            apply(None)
        except BaseException:
            connection.close()
            raise
    except Exception as error:
        raise EnvironmentFailure(f"cannot open {path.name}: {explain(case.driver, error)}") from error
    return connection


class Client:
    """One worker's connections to the files of a place, opened when they are asked for."""

    def __init__(self, case: Case, paths: Sequence[Path], worker: int, watch: Watch | None = None) -> None:
        """`worker` only seeds the jitter of its waits; `watch` is told of operations that are given up."""
        self.case, self.worker, self._paths, self._watch = case, worker, paths, watch
        self._driver = load_driver(case.driver)
        self.waiting = waiting_of(case, worker)
        self._connections: list[Connection] = []

    def connect(self, bucket: int) -> Connection:
        """Open a bucket's file with the case's settings. Raises EnvironmentFailure, with SQLite's code."""
        connection = connect(self.case, self._paths[bucket], self.waiting)
        self._connections.append(connection)
        return connection

    def connect_all(self) -> list[Connection]:
        """Open every bucket's file."""
        return [self.connect(bucket) for bucket in range(len(self._paths))]

    @property
    def waits_outside(self) -> bool:
        """Whether a busy handler of ours is wanted and can't run inside SQLite: operations are retried."""
        return self.case.settings.busy == "fair" and not self._driver.HANDLES_BUSY

    def retried(self, call: Operation, recover: Callable[[], None]) -> Operation:
        """Wrap an operation as `Waiting.retried` does."""
        return self.waiting.retried(call, self._driver.result_code, recover)

    def turns(self) -> Callable[[Operation], Operation]:
        """Return what lets the writes to one file wait for their turn, where waits are to be fair."""
        if self.case.settings.busy != "fair":
            return lambda write: write
        return Turns(self.waiting, self._watch.paused if self._watch else _ignored).kept

    def result_code(self, error: BaseException) -> int | None:
        """Return SQLite's code of an exception; None if it isn't SQLite's."""
        return self._driver.result_code(error)

    def was_busy(self, error: BaseException) -> bool:
        """Return whether an operation was given up because a lock stayed taken, and count it if so."""
        code = self.result_code(error)
        self.waiting.count(code)
        if self._watch and is_busy(code):
            self._watch.gave_up()
        return is_busy(code)

    def busy_counts(self) -> tuple[int, int]:
        """Return how many BUSY and BUSY_SNAPSHOT answers were met."""
        return self.waiting.busy, self.waiting.busy_snapshot

    def effective(self) -> dict[str, str]:
        """Return the settings as SQLite answers them; where files differ, all answers."""
        answers = [pragmas.read_back(connection, self.case.settings) for connection in self._connections]
        return {name: " / ".join(dict.fromkeys(answer[name] for answer in answers)) for name in answers[0]}

    def close(self) -> None:
        """Close every connection; a transaction that is open is undone."""
        for connection in self._connections:
            connection.close()


def _ignored(_begin_s: float, _end_s: float) -> None:
    """Hear of a pause."""


# How the C extension gets at a driver's SQLite, and at the connections that the driver has opened.
#
# It is a loadable extension of SQLite as well as a module of Python, so a driver's SQLite calls it for a
# connection, and hands over its table of functions. A second SQLite in the process is never an option: two
# libraries that work on one file break each other's POSIX locks.


ENTRY = "sqlite3_native_init"


class Handle(NamedTuple):
    """A connection as C knows it."""

    connection: int
    """Address of the sqlite3."""
    functions: int
    """Address of its library's table of functions."""


def reached(
    driver: str, connect: Callable[[], Sequence[Connection]]
) -> tuple[list[Connection], list[Handle]]:
    """Open connections, and return them with their handles; closes them where it raises NotToBeHad."""
    native = extension()
    native.handed_over()
    with _watched(driver):
        connections = list(connect())
    try:
        for connection in connections:
            _hand_over(driver, connection)
        handles = [Handle(*one) for one in native.handed_over()]
        _check(driver, native, len(connections), handles)
    except BaseException:
        for connection in connections:
            connection.close()
        raise
    return connections, handles


def _check(driver: str, native: Any, count: int, handles: Sequence[Handle]) -> None:
    """Raise NotToBeHad where what was handed over is not what was opened."""
    if len(handles) != count:
        raise NotToBeHad(f"{driver} handed over {len(handles)} of {count} connections")
    number = sum(
        part * scale
        for part, scale in zip(
            map(int, load_driver(driver).versions()[1].split(".")), (10**6, 10**3, 1), strict=False
        )
    )
    for handle in handles:
        if native.version_number(handle.functions) != number:
            raise NotToBeHad(f"the functions that {driver} handed over are not those of its SQLite")


@cache
def lacks(driver: str) -> str | None:
    """Say why there is no native loop for a driver here; None: there is."""
    return lacking(lambda: reached_once(driver))


def reached_once(driver: str) -> Handle:
    """Return how a driver's SQLite is reached; the connection is closed again. Raises NotToBeHad."""
    extension()
    binding = load_driver(driver)
    (connection,), (handle,) = reached(driver, lambda: [binding.connect(Path(":memory:"), 0, None)])
    connection.close()
    return handle


def loads_extensions(driver: str) -> bool:
    """Return whether a driver's connections can be told to load an extension."""
    if driver == "apsw":
        import apsw

        return "OMIT_LOAD_EXTENSION" not in apsw.compile_options
    import sqlite3

    return hasattr(sqlite3.Connection, "enable_load_extension")


@contextmanager
def _watched(driver: str) -> Iterator[None]:
    """Let every connection that is opened hand itself over, where it can't be asked to later."""
    if loads_extensions(driver):
        yield
        return
    library, entry = _binding(), _entry()
    if library.sqlite3_auto_extension(entry) != 0:
        raise NotToBeHad("SQLite does not take the extension")
    try:
        yield
    finally:
        library.sqlite3_cancel_auto_extension(entry)


def _hand_over(driver: str, connection: Connection) -> None:
    if not loads_extensions(driver):
        return
    own: Any = connection._connection  # type: ignore[attr-defined]
    own.enable_load_extension(True)
    try:
        own.load_extension(str(Path(str(extension().__file__))))
    except Exception as error:
        raise NotToBeHad(f"{driver} does not load the extension ({error})") from error
    finally:
        own.enable_load_extension(False)


@cache
def _binding() -> ctypes.CDLL:
    """Return Python's own binding, through which the functions of its SQLite are found."""
    import _sqlite3

    try:
        library = ctypes.CDLL(str(_sqlite3.__file__))
        library.sqlite3_auto_extension, library.sqlite3_cancel_auto_extension  # noqa: B018
    except (AttributeError, OSError) as error:
        raise NotToBeHad(
            f"this Python's sqlite3 loads no extensions and hides its SQLite ({error})"
        ) from error
    return library


def _entry() -> ctypes.c_void_p:
    return ctypes.cast(getattr(ctypes.CDLL(str(extension().__file__)), ENTRY), ctypes.c_void_p)


# A worker's view of SQLite files from C: the driver's own connections, handed over.


_JITTER_BITS = 62


class SqliteNativeStore:
    """Opens every bucket of a client's place. Raises EnvironmentFailure, with SQLite's code."""

    def __init__(self, client: Client, begin: str) -> None:
        """`begin` is how transactions of several statements begin."""
        self._client = client
        case = client.case
        with needed(case.driver):
            _, handles = reached(case.driver, client.connect_all)
            self._native = extension()
        waiting = client.waiting
        self._plan: dict[str, Any] = {
            "stores": True,
            "connections": [tuple(handle) for handle in handles],
            # In the order of Sql in loop.h.
            "statements": (GET, PAIR, PUT, f"BEGIN {begin}", "COMMIT", "ROLLBACK", COUNT, SET_COUNT),
            "fair": case.settings.busy == "fair",
            "turn_ns": int(waiting.turn_s * NS_PER_S),
            "mean_wait_ns": int(waiting.mean_s * NS_PER_S),
            "least_wait_ns": int(waiting.least_s * NS_PER_S),
            "jitter": Random(f"{case.seed}:waiting:{client.worker}").getrandbits(_JITTER_BITS),
        }

    def run(self, plan: dict[str, Any]) -> dict[str, Any]:
        return carry_out(self._native, {**plan, **self._plan}, explained)

    def effective(self) -> dict[str, str]:
        return self._client.effective()

    def close(self) -> None:
        self._client.close()
