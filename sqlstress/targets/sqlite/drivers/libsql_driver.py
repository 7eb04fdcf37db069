"""libSQL, a fork of SQLite, through its own binding.

The binding tells errors in words alone, and binds whole numbers of more than 32 bits as floating-point ones,
which loses digits: they are bound as text here, which a column of numbers makes numbers of again. It knows no
functions of ours, no limits, and can't be interrupted. A statement ends when its rows have been fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import libsql

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.sqlite.busy import Waiting
from sqlstress.targets.sqlite.drivers import Named, Row, codes

WHOLE = False
HANDLES_BUSY = False
LIBRARY = "libSQL"

_EXACT = 1 << 31
_CODES = {
    "database is locked": codes.BUSY,
    "database table is locked": codes.LOCKED,
    "database disk image is malformed": codes.CORRUPT,
    "malformed database schema": codes.CORRUPT,
    "constraint failed": codes.CONSTRAINT,
    "file is not a database": codes.NOTADB,
    "unable to open database file": codes.CANTOPEN,
    "disk I/O error": codes.IOERR,
    "database or disk is full": codes.FULL,
    "attempt to write a readonly database": codes.READONLY,
    "out of memory": codes.NOMEM,
}
"""What it says → SQLite's code. What stands between, such as BUSY and BUSY_SNAPSHOT, can't be told apart.

Source: sqlite3_errstr() of SQLite's main.c
"""
_ERROR = ("no such ", "near ", "table ")


def _bound(params: Row) -> Row:
    """Return parameters as they can be bound without a loss."""
    for value in params:
        if isinstance(value, int) and not -_EXACT <= value < _EXACT:
            return tuple(
                str(one) if isinstance(one, int) and not -_EXACT <= one < _EXACT else one for one in params
            )
    return params


def _fetched(cursor: Any) -> list[Row]:
    """Return all rows. Raises Unreadable where the binding breaks down over one."""
    try:
        return list(cursor.fetchall() or ())
    except Exception:
        raise
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise Unreadable(f"libsql broke down: {error}") from None


class Unreadable(Exception):
    """Rows that the binding can't read, such as text that is none."""


class LibsqlConnection:
    """A connection in true autocommit."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._connection: Any = libsql.connect(str(path), timeout=timeout_s, isolation_level=None)

    @property
    def _open(self) -> Any:
        if self._connection is None:  # it ends the process's thread where it is used
            raise EnvironmentFailure("Cannot operate on a closed database.")
        return self._connection

    def scalar(self, sql: str) -> Callable[[Row], Any]:
        def read(params: Row) -> Any:
            found = _fetched(self._open.execute(sql, _bound(params)))
            return found[0][0] if found else None

        return read

    def writer(self, sql: str) -> Callable[[Row], Any]:
        return lambda params: self._open.execute(sql, _bound(params))

    def runs(self, sql: str) -> Callable[[Named], Any]:
        raise EnvironmentFailure("libsql knows no parameters by name.")

    def reads(self, sql: str) -> Callable[[Named], list[Row]]:
        raise EnvironmentFailure("libsql knows no parameters by name.")

    def names(self, sql: str) -> Callable[[Named], tuple[Sequence[str], list[Row]]]:
        raise EnvironmentFailure("libsql knows no parameters by name.")

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        found = self._open.execute(sql, _bound(params))
        return _fetched(found) if found.description else []

    def iterate(self, sql: str) -> Iterator[Row]:
        found = self._open.execute(sql)
        while found.description and (row := found.fetchone()):
            yield row

    def run_many(self, sql: str, rows: Iterable[Row]) -> None:
        execute = self._open.execute
        for row in rows:
            execute(sql, _bound(row))

    def function(self, name: str, arity: int, call: Callable[..., Any]) -> None:
        raise EnvironmentFailure("libsql knows no functions of ours.")

    def rollback(self) -> None:
        if self._open.in_transaction:
            self._open.execute("ROLLBACK")

    def in_transaction(self) -> bool:
        return bool(self._open.in_transaction)

    def limit(self, category: int) -> int:
        raise EnvironmentFailure("libsql does not tell its limits.")

    def interrupt(self) -> None:
        """Do nothing: it can't be interrupted, and whoever waits for it waits until it has done."""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def connect(path: Path, busy_timeout_ms: int, waiting: Waiting | None) -> LibsqlConnection:
    """Open a database; with `waiting`, BUSY comes back at once and the caller begins again."""
    return LibsqlConnection(path, 0 if waiting else busy_timeout_ms / 1000)


def result_code(error: BaseException) -> int | None:
    """Return the primary result code, by what the binding says; it tells no other."""
    if not isinstance(error, ValueError | libsql.Error):
        return None
    text = str(error)
    found = next((code for said, code in _CODES.items() if said in text), None)
    return codes.ERROR if found is None and text.startswith(_ERROR) else found


def versions() -> tuple[str, str]:
    """Return the binding's version, and that of the SQLite that libSQL was forked from."""
    connection = LibsqlConnection(Path(":memory:"), 0)
    try:
        return f"libsql {version('libsql')}", str(connection.rows("SELECT sqlite_version()")[0][0])
    finally:
        connection.close()
