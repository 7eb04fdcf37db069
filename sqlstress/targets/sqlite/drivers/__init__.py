"""The bindings of SQLite. A driver that is not installed costs nothing until it is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from sqlstress.errors import NotInstalled, SqlstressError, UsageError, plainly, said
from sqlstress.target import DEFAULT, drivers_of
from sqlstress.targets.sqlite.drivers import codes

if TYPE_CHECKING:
    from pathlib import Path

    from sqlstress.targets.sqlite.busy import Waiting

DRIVERS = drivers_of("sqlite")
"""Name → module."""

VFSS = {
    "recording": "sqlstress.targets.sqlite.disk_vfs",
    "image": "sqlstress.targets.sqlite.disk_vfs",
}
"""Stand-ins for a disk, below SQLite: only apsw can have them."""

Row = tuple[Any, ...]
Named = dict[str, Any]
"""Values by the names of the parameters; there may be more than those."""


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

    def runs(self, sql: str) -> Callable[[Named], Any]:
        """Return a function of named parameters that runs a statement without rows."""

    def reads(self, sql: str) -> Callable[[Named], list[Row]]:
        """Return a function of named parameters: all rows. The statement has then run to its end."""

    def names(self, sql: str) -> Callable[[Named], tuple[Sequence[str], list[Row]]]:
        """Return a function of named parameters: the names of the columns, and all rows."""

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

    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""

    def limit(self, category: int) -> int:
        """Return a limit of this connection: `category` is one of SQLite's numbers, as in codes.py."""

    def interrupt(self) -> None:
        """Let a statement that runs in another thread fail soon."""

    def close(self) -> None:
        """Close the connection."""


class Driver(Protocol):
    """A binding of SQLite. Each driver is a module that has these names."""

    LIBRARY: str
    """What the library below it is called."""
    WHOLE: bool
    """Whether it tells extended result codes, takes functions of ours and named parameters, and can be
    interrupted; else it serves the key-value experiment only, which needs none of that."""
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


def load_driver(name: str) -> Driver:
    """Import a driver by its name in DRIVERS. Raises NotInstalled."""
    try:
        return cast(Driver, import_module(DRIVERS[name]))
    except ImportError as error:
        raise NotInstalled(name, "" if name == DEFAULT else name, error) from error


def load_vfs(name: str) -> Any:
    """Import a module of VFSS by its name. Raises UsageError when apsw is not installed."""
    try:
        return import_module(VFSS[name])
    except ImportError as error:
        raise UsageError(
            f"power cuts need apsw, which is not installed ({error}): python -m pip install apsw."
        ) from error


def explain(name: str, error: Exception) -> str:
    """Return what went wrong, and what to do about it, with SQLite's name for what that driver met."""
    code = None if isinstance(error, SqlstressError | MemoryError) else load_driver(name).result_code(error)
    if code is None:
        return plainly(error)
    return codes.explained(code, said(error))
