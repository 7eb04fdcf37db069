"""The standard library's binding."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqlstress.targets.sqlite.busy import Waiting
from sqlstress.targets.sqlite.drivers import Named, Row, codes

LIBRARY = "SQLite"
WHOLE = True
HANDLES_BUSY = False


class StdlibConnection:
    """A connection with isolation_level None, which is true autocommit on every Python version."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._connection = sqlite3.connect(
            file_name(path), timeout=timeout_s, isolation_level=None, check_same_thread=False
        )

    def scalar(self, sql: str) -> Callable[[Row], Any]:
        execute = self._connection.cursor().execute

        def read(params: Row) -> Any:
            # fetchone() steps past the row, which ends the statement and its snapshot.
            row = execute(sql, params).fetchone()
            return row and row[0]

        return read

    def writer(self, sql: str) -> Callable[[Row], Any]:
        return partial(self._connection.cursor().execute, sql)

    def runs(self, sql: str) -> Callable[[Named], Any]:
        return partial(self._connection.cursor().execute, sql)

    def reads(self, sql: str) -> Callable[[Named], list[Row]]:
        execute = self._connection.cursor().execute
        return lambda params: execute(sql, params).fetchall()

    def names(self, sql: str) -> Callable[[Named], tuple[Sequence[str], list[Row]]]:
        execute = self._connection.cursor().execute

        def read(params: Named) -> tuple[Sequence[str], list[Row]]:
            found = execute(sql, params)
            return [column[0] for column in found.description or ()], found.fetchall()

        return read

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        return self._connection.execute(sql, params).fetchall()

    def iterate(self, sql: str) -> Iterator[Row]:
        return iter(self._connection.execute(sql))

    def run_many(self, sql: str, rows: Iterable[Row]) -> None:
        self._connection.executemany(sql, rows)

    def function(self, name: str, arity: int, call: Callable[..., Any]) -> None:
        self._connection.create_function(name, arity, call)

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.rollback()

    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def limit(self, category: int) -> int:
        return self._connection.getlimit(category)

    def interrupt(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()


def file_name(path: Path) -> str:
    """Return a path such that SQLite never takes it for a URI."""
    name = str(path)
    return f"./{name}" if name.startswith("file:") else name


def connect(path: Path, busy_timeout_ms: int, waiting: Waiting | None) -> StdlibConnection:
    """Open a database; with `waiting`, BUSY comes back at once and the caller begins again."""
    return StdlibConnection(path, 0 if waiting else busy_timeout_ms / 1000)


def result_code(error: BaseException) -> int | None:
    """Return the extended result code; the standard library has it since Python 3.11."""
    if isinstance(error, UnicodeDecodeError):
        return codes.CORRUPT  # SQLite quotes from a damaged file what is no text any more
    return getattr(error, "sqlite_errorcode", None) if isinstance(error, sqlite3.Error) else None


def versions() -> tuple[str, str]:
    """Return Python's version, whose part the binding is, and SQLite's."""
    return f"Python {sys.version.split()[0]}", sqlite3.sqlite_version
