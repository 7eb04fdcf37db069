"""The parent's half of SQL of the user's, on a file: it is made, and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from sqlstress.errors import said
from sqlstress.targets.sqlite.drivers import Connection, Row, codes, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.views import BUSY, INTERRUPTED, LACKING, REFUSED, Answer
from sqlstress.targets.watched import run_watched

if TYPE_CHECKING:
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.sqlite.place import SqlitePlace


T = TypeVar("T")


class SqliteReader:
    """A connection that only reads."""

    def __init__(self, driver: str, connection: Connection) -> None:
        self._driver, self._connection = driver, connection
        self.interrupt = connection.interrupt
        connection.rows("PRAGMA query_only=ON")

    def begin(self) -> None:
        self._connection.rows("BEGIN")

    def first(self, sql: str, most: int) -> list[Row]:
        return list(islice(self._connection.iterate(sql), most))

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        return self._connection.rows(sql, tuple(params))

    def end(self) -> None:
        self._connection.rollback()

    def understood(self, sql: str, names: Sequence[str]) -> None:
        self._connection.reads(f"EXPLAIN {sql}")(dict.fromkeys(names))

    def answer(self, error: BaseException) -> Answer | None:
        return answer(self._driver, error)

    def close(self) -> None:
        self._connection.close()


class SqliteMaker:
    """A connection that makes what is there; nobody needs it after a power failure: no sync is waited for."""

    def __init__(self, driver: str, connection: Connection, pulse: Pulse) -> None:
        self._driver, self._connection, self._pulse = driver, connection, pulse
        self.in_transaction = connection.in_transaction

    def run(self, sql: str) -> None:
        self._connection.rows(sql)

    def watched(self, task: Callable[[], T]) -> T:
        return run_watched(self._connection, task, self._pulse)

    def answer(self, error: BaseException) -> Answer | None:
        return answer(self._driver, error)


@contextmanager
def making(place: SqlitePlace, pulse: Pulse) -> Iterator[SqliteMaker]:
    """Open the only file of a place to make what is in it; then see that the case's settings were taken."""
    settings = place.case.settings
    with place.opened() as connection:
        pragmas.apply(connection, settings)
        connection.rows("PRAGMA synchronous=OFF")
        yield SqliteMaker(place.case.driver, connection, pulse)
        pragmas.apply(connection, settings)
        connection.rows(f"PRAGMA user_version={connection.rows('PRAGMA user_version')[0][0]}")
        pragmas.check(settings, pragmas.read_back(connection, settings))
        # The WAL keeps the size that it works with.
        connection.rows("PRAGMA wal_checkpoint(RESTART)")


def answer(driver: str, error: BaseException) -> Answer | None:
    """Return what an error of SQLite's says; None of one that is not SQLite's."""
    code, text = load_driver(driver).result_code(error), said(error).removesuffix(".")
    if code is None:
        return None
    if codes.is_busy(code):
        return Answer(BUSY, text)
    if code == codes.INTERRUPT:
        return Answer(INTERRUPTED, text)
    if advice := codes.advice(code):
        return Answer(LACKING, f"{text} ({advice})")
    return Answer(REFUSED, text)
