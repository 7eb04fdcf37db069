"""The driver apsw: the Python package APSW, which includes its own SQLite library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw

from sqlstress import sqlite_codes as codes
from sqlstress.errors import UsageError
from sqlstress.targets.sqlite.drivers import Connection, Named, Row


class ApswConnection(Connection):
    """A connection of APSW, which never begins a transaction by itself."""

    def __init__(self, path: Path, busy_timeout_ms: int) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.set_busy_timeout(busy_timeout_ms)

    def scalar(self, sql: str) -> Callable[[Row], Any]:
        execute = self._connection.cursor().execute

        def read(params: Row) -> Any:
            # `get` reads all rows, which ends the statement and its snapshot.
            return execute(sql, params).get

        return read

    def names(self, sql: str) -> Callable[[Named], tuple[Sequence[str], list[Row]]]:
        cursor = self._connection.cursor()

        def read(params: Named) -> tuple[Sequence[str], list[Row]]:
            rows = cursor.execute(sql, params)
            # APSW does not return the names of the columns after the last row.
            first = next(rows, None)
            if first is None:
                return [], []
            return [column[0] for column in rows.get_description()], [first, *rows]

        return read

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        # Statements without parameters, such as PRAGMAs, run once and are not cached. A dozen cached
        # statements would fill the connection's lookaside memory, so that the measured statements would call
        # malloc.
        return list(self._connection.execute(sql, params, can_cache=bool(params)))

    def function(self, name: str, arity: int, call: Callable[..., Any]) -> None:
        self._connection.create_scalar_function(name, call, arity)


def connect(path: Path, busy_timeout_ms: int) -> ApswConnection:
    """Open a database file. Raises UsageError if its path is not UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"apsw needs a UTF-8 path, and {str(path)!r:.200} is not UTF-8. Choose another --dir or --driver."
        ) from error
    return ApswConnection(path, busy_timeout_ms)


def result_code(error: BaseException) -> int | None:
    if isinstance(error, UnicodeDecodeError):
        return codes.CORRUPT  # The text in a damaged file is not valid UTF-8.
    return getattr(error, "extendedresult", None) if isinstance(error, apsw.Error) else None


def versions() -> tuple[str, str]:
    return f"apsw {apsw.apsw_version()}", apsw.sqlite_lib_version()
