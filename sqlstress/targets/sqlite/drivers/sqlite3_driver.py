"""The driver sqlite3: the module sqlite3 of Python's standard library."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlstress import sqlite_codes as codes
from sqlstress.targets.sqlite.drivers import Connection, Named, Row


class StdlibConnection(Connection):
    """A connection of sqlite3 with isolation_level None: autocommit in every version of Python."""

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

    def names(self, sql: str) -> Callable[[Named], tuple[Sequence[str], list[Row]]]:
        execute = self._connection.cursor().execute

        def read(params: Named) -> tuple[Sequence[str], list[Row]]:
            rows = execute(sql, params)
            return [column[0] for column in rows.description or ()], rows.fetchall()

        return read

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        return list(self._connection.execute(sql, params))

    def function(self, name: str, arity: int, call: Callable[..., Any]) -> None:
        self._connection.create_function(name, arity, call)


def file_name(path: Path) -> str:
    """Return a path that SQLite does not take for a URI, such as "./file:a.db" for "file:a.db"."""
    name = str(path)
    return f"./{name}" if name.startswith("file:") else name


def connect(path: Path, busy_timeout_ms: int) -> StdlibConnection:
    return StdlibConnection(path, busy_timeout_ms / 1000)


def result_code(error: BaseException) -> int | None:
    if isinstance(error, UnicodeDecodeError):
        return codes.CORRUPT  # SQLite quotes a text from a damaged file, and the text is not valid UTF-8.
    return getattr(error, "sqlite_errorcode", None) if isinstance(error, sqlite3.Error) else None


def versions() -> tuple[str, str]:
    return f"Python {sys.version.split()[0]}", sqlite3.sqlite_version
