"""PostgreSQL: a schema of our own on a server of the user's, or on one that is started for the run."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlstress.errors import SqlstressError, plainly

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlstress.options.dsn import Dsn
    from sqlstress.report.case import Case
    from sqlstress.report.server import Server
    from sqlstress.targets.directions import Directions
    from sqlstress.targets.meeting import Invitation, Meeting
    from sqlstress.targets.postgres.place import PostgresPlace

STORES = True
FILES: str | None = None
DESCRIPTORS = 1
"""The connection; but a table needs none of its own."""


def open_place(case: Case, where: Path) -> PostgresPlace:
    from sqlstress.targets.postgres.place import PostgresPlace

    return PostgresPlace(case, where)


def checked(case: Case, server: Server, anyway: bool) -> Case:
    from sqlstress.targets.postgres.installed import checked

    return checked(case, server, anyway)


def stand_in(folder: Path) -> Directions:
    """Return directions to a socket that is not there."""
    from sqlstress.targets.postgres.programs import directions

    return directions({"host": folder.as_posix(), "dbname": "none"}, "none", None)


def serving(cases: Sequence[Case], folder: Path) -> AbstractContextManager[None]:
    from sqlstress.targets.postgres.server import serving

    return serving(cases, folder)


@contextmanager
def joining(cases: Sequence[Case], invited: Invitation) -> Iterator[Meeting]:
    """Have a host's part in a meeting at the server that all cases name."""
    from sqlstress.targets.postgres.address import dsn_of
    from sqlstress.targets.postgres.postgres_meeting import PostgresMeeting

    found = PostgresMeeting(dsn_of(cases[0]), invited)
    try:
        yield found
    finally:
        found.leave()


def durability(case: Case, effective: Mapping[str, str]) -> str:
    """Return what a commit waits for, in words, by the settings that were read back."""
    from sqlstress.report.power_failure import at_server

    return at_server(effective) or ""


def preload(driver: str) -> tuple[str, ...]:
    own = "sqlstress.targets.postgres"
    return f"{own}.place", f"{own}.client", f"{own}.scripts", "sqlstress.targets.native._native"


def explain(driver: str, error: Exception) -> str:
    if isinstance(error, SqlstressError | MemoryError):
        return plainly(error)
    from sqlstress.targets.postgres.errors import explained

    return explained(error) or plainly(error)


def lacks_native(driver: str) -> str | None:
    from sqlstress.targets.postgres.client import lacks

    return lacks()


def foresees(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] == "psycopg" or type(error).__name__ == "ServerError"


def untold(driver: str) -> str:
    return "only of SQLite's own locks is it told who held them"


def at_hand(driver: str, address: Dsn | None) -> str:
    from sqlstress.targets.postgres.installed import at_hand

    return at_hand(address)


def describe(driver: str) -> None:
    """Name no library of SQLite's: the server's version is read back with its settings."""
