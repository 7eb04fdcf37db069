"""Turso's connections, in true autocommit: no transaction begins that nobody asked for; and what went wrong.

Its lock is on the whole file, and of this process: SQLite must not open the file here meanwhile, since to
close it again would take the lock away.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sqlstress.errors import EnvironmentFailure, NotInstalled, plainly, said
from sqlstress.target import DEFAULT

if TYPE_CHECKING:
    from pathlib import Path

MEMORY = ":memory:"
_LOCKED = "locked by another process"


def load() -> Any:
    """Import the binding. Raises NotInstalled."""
    try:
        return import_module("turso")
    except ImportError as error:
        raise NotInstalled("turso", "'.[turso]'", error) from error


class TursoConnection:
    """A connection to a database that is there, or to one of its own in memory."""

    def __init__(self, name: str) -> None:
        self._connection: Any = load().connect(name, isolation_level=None)
        self.cursor = self._connection.cursor

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        found: list[tuple[Any, ...]] = self._connection.execute(sql).fetchall()
        return found

    def rollback(self) -> None:
        """End an open transaction, if there is one, and undo it."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


def opened(path: Path) -> TursoConnection:
    """Open a database file. Raises EnvironmentFailure."""
    turso = load()
    if not path.exists():  # Turso would make it anew
        raise EnvironmentFailure(f"cannot open {path.name}: the file is not there")
    try:
        return TursoConnection(str(path))
    except (turso.Error, OSError, MemoryError) as error:
        raise EnvironmentFailure(f"cannot open {path.name}: {explained(error)}") from error


def own_version() -> str:
    """Return Turso's own version; the one that it gives as SQLite's says only whose SQL it speaks."""
    connection = TursoConnection(MEMORY)
    try:
        return str(connection.rows("SELECT turso_version()")[0][0])
    finally:
        connection.close()


def foresees(error: Exception) -> bool:
    """Return whether an error is Turso's own, or of SQLite, with which the parent works on the files."""
    return _library(error) in ("turso", DEFAULT)


def explained(error: Exception) -> str:
    """Return what went wrong, and what to do about it."""
    if _library(error) == DEFAULT:
        from sqlstress.targets.sqlite.drivers import explain  # a worker needs it no more often

        return explain(DEFAULT, error)
    if not foresees(error):
        return plainly(error)
    text = said(error)
    return f"Turso: {text}" + (" (end the other program)" if _LOCKED in text else "")


def _library(error: Exception) -> str:
    return type(error).__module__.partition(".")[0]
