"""PostgreSQL: a schema of our own on the user's server, or on a temporary one."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from sqlstress.errors import NotInstalled, SqlstressError, UsageError, plainly
from sqlstress.targets.place import Target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlstress.options.dsn import Dsn
    from sqlstress.report.case import Case, Server
    from sqlstress.targets.postgres.place import PostgresPlace
    from sqlstress.targets.views import Directions

MAX_TABLES = 1000
"""Limit of tables, because each connection prepares statements for each of them."""


class PostgresTarget(Target):
    DESCRIPTORS = 1
    """The connection, whatever the number of tables."""

    def open_place(self, case: Case, where: Path) -> PostgresPlace:
        from sqlstress.targets.postgres.place import PostgresPlace

        return PostgresPlace(case, where)

    def checked(self, case: Case, server: Server, anyway: bool) -> Case:
        """Return a case with its server, and without SQLite's journal mode. Raises UsageError."""
        from dataclasses import replace

        from sqlstress.options.dsn import PACKAGE, Dsn
        from sqlstress.report.case import KEPT

        if find_spec("psycopg") is None:
            raise NotInstalled(case.driver, PACKAGE)
        if case.settings.synchronous == "extra":
            raise UsageError(
                "--synchronous extra needs SQLite. On a server, use full (synced commits), or normal or "
                "off (unsynced)."
            )
        if case.buckets > MAX_TABLES:
            raise UsageError(
                f"--buckets is the number of tables with --driver {case.driver}. Give at most {MAX_TABLES:,}."
            )
        address = server.address
        if isinstance(address, Dsn) and not address.is_local and not anyway:
            raise UsageError(
                f"{address} may be another machine, which others may need. Add --anyway to load it anyway."
            )
        if address is None and anyway:
            raise UsageError("--anyway needs a server on another machine. Add --dsn, or leave it out.")
        return replace(case, server=server, settings=replace(case.settings, journal_mode=KEPT))

    def stand_in(self, folder: Path) -> Directions:
        """Return directions to a socket that does not exist."""
        from sqlstress.targets.postgres.place import directions

        return directions({"host": folder.as_posix(), "dbname": "none"}, "none", None)

    def serving(self, cases: Sequence[Case], folder: Path) -> AbstractContextManager[None]:
        from sqlstress.targets.postgres.server import serving

        return serving(cases, folder)

    def preload(self, driver: str) -> tuple[str, ...]:
        return (f"{__name__}.place",)

    def explain(self, driver: str, error: Exception) -> str:
        if isinstance(error, SqlstressError | MemoryError):
            return plainly(error)
        from sqlstress.targets.postgres.dialect import explained

        return explained(error) or plainly(error)

    def durability(self, case: Case, effective: Mapping[str, str]) -> str:
        from sqlstress.report.power_failure import at_server

        return at_server(effective) or ""

    def lacks_native(self, driver: str) -> str:
        return "the native loop drives SQLite only"

    def foresees(self, error: Exception) -> bool:
        return type(error).__module__.partition(".")[0] == "psycopg"

    def untold(self, driver: str) -> str:
        return "only SQLite shows who held its locks"

    def at_hand(self, driver: str, address: Dsn | None) -> str:
        """Return the versions of psycopg and of the named server, or of the one that a run would start."""
        from sqlstress.options.dsn import PACKAGE

        try:
            import psycopg
        except ImportError as error:
            raise NotInstalled("psycopg", PACKAGE, error) from error
        from sqlstress.targets.postgres.own_schema import first, opened
        from sqlstress.targets.postgres.server import programs

        if address is None:
            folder = programs()
            return f"PostgreSQL would be started, from {folder} (psycopg {psycopg.__version__})"
        with opened(address.whole, "cannot use the server") as connection:
            version = first(connection, "SELECT current_setting('server_version')")[0]
        return f"PostgreSQL {version}, the server of --dsn (psycopg {psycopg.__version__})"


TARGET = PostgresTarget()
