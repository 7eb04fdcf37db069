"""The bindings of SQLite. A driver that is not installed costs nothing until it is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from sqlstress import sqlite_codes as codes
from sqlstress.errors import NotInstalled, SqlstressError, message_of, plainly
from sqlstress.target import DEFAULT
from sqlstress.target import DRIVERS as KNOWN

if TYPE_CHECKING:
    from pathlib import Path

DRIVERS = {name: known.module for name, known in KNOWN.items() if known.target == "sqlite"}
"""Name → module."""

Row = tuple[Any, ...]
Named = dict[str, Any]
"""Values by the names of the parameters; there may be more than those."""


class Connection(Protocol):
    """One connection in true autocommit: no transaction begins that nobody asked for.

    It may be used by one thread after the other; only interrupt() is for a second one meanwhile.
    """

    _connection: Any
    """The binding's own."""

    def scalar(self, sql: str) -> Callable[[Row], Any]:
        """Return a function of parameters: the only column of the only row, or None without one.

        The statement has run to its end when the function returns, so no snapshot stays open.
        """

    def writer(self, sql: str) -> Callable[[Row], Any]:
        """Return a function of parameters that runs the statement."""
        return partial(self._connection.cursor().execute, sql)

    def runs(self, sql: str) -> Callable[[Named], Any]:
        """Return a function of named parameters that runs a statement without rows."""
        return partial(self._connection.cursor().execute, sql)

    def reads(self, sql: str) -> Callable[[Named], list[Row]]:
        """Return a function of named parameters: all rows. The statement has then run to its end."""
        execute = self._connection.cursor().execute
        return lambda params: list(execute(sql, params))

    def names(self, sql: str) -> Callable[[Named], tuple[Sequence[str], list[Row]]]:
        """Return a function of named parameters: the names of the columns, and all rows."""

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        """Run a statement and return its rows."""

    def iterate(self, sql: str) -> Iterator[Row]:
        """Run a statement and yield its rows one by one."""
        return iter(self._connection.execute(sql))

    def run_many(self, sql: str, rows: Iterable[Row]) -> None:
        """Run a statement once for each row of parameters."""
        self._connection.executemany(sql, rows)

    def function(self, name: str, arity: int, call: Callable[..., Any]) -> None:
        """Let SQL call a function of ours by this name, anew for every row."""

    def rollback(self) -> None:
        """End an open transaction, if there is one, and undo it."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""
        return bool(self._connection.in_transaction)

    def limit(self, category: int) -> int:
        """Return a limit of this connection: `category` is one of SQLite's numbers, as in codes.py."""

    def interrupt(self) -> None:
        """Let a statement that runs in another thread fail soon."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Driver(Protocol):
    """A binding of SQLite. Each driver is a module that has these names."""

    def connect(self, path: Path, busy_timeout_ms: int) -> Connection:
        """Open a database file, created if need be."""

    def result_code(self, error: BaseException) -> int | None:
        """Return SQLite's extended result code of an exception; None if it isn't SQLite's."""

    def versions(self) -> tuple[str, str]:
        """Return the versions of the binding and of the SQLite library."""


def load_driver(name: str) -> Driver:
    """Import a driver by its name in DRIVERS. Raises NotInstalled."""
    try:
        return cast(Driver, import_module(DRIVERS[name]))
    except ImportError as error:
        raise NotInstalled(name, "" if name == DEFAULT else name, error) from error


def explain(name: str, error: Exception) -> str:
    """Return what went wrong, and what to do about it, with SQLite's name for what that driver met."""
    code = None if isinstance(error, SqlstressError | MemoryError) else load_driver(name).result_code(error)
    return plainly(error) if code is None else codes.explained(code, message_of(error))
