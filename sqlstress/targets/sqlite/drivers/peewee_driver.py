"""The driver peewee: an object-relational mapper that uses the module sqlite3.

A user's application gets Peewee's `database` object. sqlstress's own statements use the sqlite3 connection
inside this object.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import peewee

from sqlstress.targets.sqlite.drivers import sqlite3_driver
from sqlstress.targets.sqlite.drivers.sqlite3_driver import StdlibConnection, file_name


class PeeweeConnection(StdlibConnection):
    """A connection opened by Peewee, in autocommit."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self.database = peewee.SqliteDatabase(file_name(path), timeout=timeout_s, check_same_thread=False)
        self._connection = self.database.connection()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        self.database.close()


def connect(path: Path, busy_timeout_ms: int) -> PeeweeConnection:
    return PeeweeConnection(path, busy_timeout_ms / 1000)


def result_code(error: BaseException) -> int | None:
    """Return the result code of sqlite3's exception; Peewee's exceptions have it in the attribute `orig`."""
    return sqlite3_driver.result_code(getattr(error, "orig", error))


def versions() -> tuple[str, str]:
    return f"peewee {version('peewee')}", sqlite3_driver.versions()[1]
