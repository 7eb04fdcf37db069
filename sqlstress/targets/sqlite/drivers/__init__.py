"""Drivers: modules that adapt Python's libraries for SQLite (bindings), such as apsw, to one interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from sqlstress import sqlite_codes as codes
from sqlstress.errors import NotInstalled, SqlstressError, error_message, plainly
from sqlstress.target import DEFAULT
from sqlstress.target import DRIVERS as KNOWN

if TYPE_CHECKING:
    from pathlib import Path

DRIVERS = {name: info.module for name, info in KNOWN.items() if info.target == "sqlite"}
"""Module of each driver, such as {"apsw": "sqlstress.targets.sqlite.drivers.apsw_driver"}."""

Row = tuple[Any, ...]
Named = dict[str, Any]
"""Values by parameter name, such as {"id": 7} for :id. Values that the statement does not use are allowed."""


class Connection(Protocol):
    """One connection in autocommit: the driver never begins a transaction by itself.

    Only one thread at a time may use the connection, except for the method `interrupt`.
    """

    _connection: Any
    """Connection object of the binding (Python's library for SQLite)."""

    def scalar(self, sql: str) -> Callable[[Row], Any]:
        """Return a function that runs `sql` with parameters and returns the first value, or None.

        The function runs the statement to its end, so that no snapshot stays open.
        """

    def writer(self, sql: str) -> Callable[[Row], Any]:
        """Return a function that runs `sql`, which has no result rows, with parameters."""
        return partial(self._connection.cursor().execute, sql)

    def runs(self, sql: str) -> Callable[[Named], Any]:
        """Return a function that runs `sql`, which has no result rows, with named parameters."""
        return partial(self._connection.cursor().execute, sql)

    def reads(self, sql: str) -> Callable[[Named], list[Row]]:
        """Return a function that runs `sql` with named parameters and returns all rows."""
        execute = self._connection.cursor().execute
        return lambda params: list(execute(sql, params))

    def names(self, sql: str) -> Callable[[Named], tuple[Sequence[str], list[Row]]]:
        """Return a function that runs `sql` with named parameters and returns (column names, all rows)."""

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        """Run a statement and return its rows."""

    def iterate(self, sql: str) -> Iterator[Row]:
        """Run a statement and yield its rows one by one."""
        return iter(self._connection.execute(sql))

    def run_many(self, sql: str, rows: Iterable[Row]) -> None:
        self._connection.executemany(sql, rows)

    def function(self, name: str, arity: int, call: Callable[..., Any]) -> None:
        """Register the Python function `call` as the SQL function `name` with `arity` arguments.

        SQLite calls the function for each row, because it is not marked as deterministic.
        """

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def interrupt(self) -> None:
        """Interrupt a statement that runs in another thread, so that it soon fails."""
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()


class Driver(Protocol):
    """Interface of a driver, which is a module with these functions."""

    def connect(self, path: Path, busy_timeout_ms: int) -> Connection:
        """Open a database file; create the file if it does not exist."""

    def result_code(self, error: BaseException) -> int | None:
        """Return SQLite's extended result code of an exception; None if it is not from SQLite."""

    def versions(self) -> tuple[str, str]:
        """Return the versions of the binding (Python's library for SQLite) and of SQLite."""


def load_driver(name: str) -> Driver:
    """Import a driver by its name in DRIVERS. Raises NotInstalled if a package is missing."""
    try:
        return cast(Driver, import_module(DRIVERS[name]))
    except ImportError as error:
        raise NotInstalled(name, "" if name == DEFAULT else name, error) from error


def explain(name: str, error: Exception) -> str:
    """Return a description of an error of the driver `name`, with a remedy and SQLite's code, if any."""
    code = None if isinstance(error, SqlstressError | MemoryError) else load_driver(name).result_code(error)
    return plainly(error) if code is None else codes.explained(code, error_message(error))
