"""What a driver is: a module that opens connections and names errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from sqlstress.targets.sqlite.drivers.waiting import Waiting

Row = tuple[Any, ...]


class Connection(Protocol):
    """One connection in true autocommit: no transaction begins that nobody asked for.

    It may be used by one thread after the other; only interrupt() is for a second one meanwhile.
    """

    def scalar(self, sql: str) -> Callable[[Row], Any]:
        """Return a function of parameters: the only column of the only row, or None without one.

        The statement has run to its end when the function returns, so no snapshot stays open.
        """

    def writer(self, sql: str) -> Callable[[Row], Any]:
        """Return a function of parameters that runs the statement."""

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        """Run a statement and return its rows."""

    def iterate(self, sql: str) -> Iterator[Row]:
        """Run a statement and yield its rows one by one."""

    def run_many(self, sql: str, rows: Iterable[Row]) -> None:
        """Run a statement once for each row of parameters."""

    def function(self, name: str, arity: int, call: Callable[..., Any]) -> None:
        """Let SQL call a function of ours by this name, anew for every row."""

    def rollback(self) -> None:
        """End an open transaction, if there is one, and undo it."""

    def limit(self, category: int) -> int:
        """Return a limit of this connection: `category` is one of SQLite's numbers, as in codes.py."""

    def interrupt(self) -> None:
        """Let a statement that runs in another thread fail soon."""

    def close(self) -> None:
        """Close the connection."""


class Driver(Protocol):
    """A binding of SQLite. Each driver is a module that has these names."""

    HANDLES_BUSY: bool
    """Whether a busy handler of ours can run inside SQLite; else operations are begun again."""

    def connect(self, path: Path, busy_timeout_ms: int, waiting: Waiting | None) -> Connection:
        """Open a database file, created if need be.

        `waiting` takes the place of SQLite's own busy handler; None keeps SQLite's.
        """

    def result_code(self, error: BaseException) -> int | None:
        """Return SQLite's (extended) result code of an exception; None if it isn't SQLite's."""

    def versions(self) -> tuple[str, str]:
        """Return the versions of the binding and of the SQLite library."""
