"""PostgreSQL: a schema of our own on a server of the user's, or on one that is started for the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlstress.errors import SqlstressError, plainly

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.report.server import Server
    from sqlstress.targets.postgres.place import PostgresPlace

STORES = True
FILES: str | None = None
DESCRIPTORS = 1
"""The connection; but a table needs none of its own."""


def open_place(case: Case, where: Path) -> PostgresPlace:
    from sqlstress.targets.postgres.place import PostgresPlace

    return PostgresPlace(case, where)


def checked(case: Case, server: Server, anyway: bool) -> Case:
    from sqlstress.targets.postgres.asked import checked

    return checked(case, server, anyway)


def serving(cases: Sequence[Case], folder: Path) -> AbstractContextManager[None]:
    from sqlstress.targets.postgres.servers import serving

    return serving(cases, folder)


def durability(case: Case, effective: Mapping[str, str]) -> str:
    """Return what a commit waits for, in words, by the settings that were read back."""
    from sqlstress.report.commits import at_server

    return at_server(effective) or "what a commit waits for was not read back"


def preload(driver: str) -> tuple[str, ...]:
    return "sqlstress.targets.postgres.place", "sqlstress.targets.postgres.keyvalue"


def explain(driver: str, error: Exception) -> str:
    if isinstance(error, SqlstressError | MemoryError):
        return plainly(error)
    from sqlstress.targets.postgres.errors import explained

    return explained(error) or plainly(error)


def lacks_native(driver: str) -> str:
    return "the loop in C speaks to SQLite only"


def foresees(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] == "psycopg" or type(error).__name__ == "ServerError"


def untold(driver: str) -> str:
    return "only of SQLite's own locks is it told who held them"


def describe(driver: str) -> None:
    """Name no library of SQLite's: the server's version is read back with its settings."""
