"""The target PostgreSQL: data in a new schema, on the user's server or a temporary server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from sqlstress.errors import NotInstalled, UsageError, plainly
from sqlstress.options.dsn import PACKAGE, Dsn
from sqlstress.report.case import KEEP_JOURNAL_MODE, Case, Server
from sqlstress.targets.place import Place, Target
from sqlstress.targets.postgres.dialect import SERVER_VARIABLE, dsn_of, error_text, programs
from sqlstress.targets.views import ConnectionInfo

MAX_TABLES = 1000
"""Maximum number of buckets (tables), because each connection prepares statements for each table."""
EACH, RESERVED = 4, 13
"""Connections of a temporary server: 4 (EACH) per worker, and 13 (RESERVED) for sqlstress and the server."""


class PostgresTarget(Target):
    DESCRIPTORS = 1

    def open_place(self, case: Case, where: Path) -> Place:
        from sqlstress.targets.postgres.place import PostgresPlace

        return PostgresPlace(case, where)

    def checked(self, case: Case, server: Server, anyway: bool) -> Case:
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
        return replace(case, server=server, settings=replace(case.settings, journal_mode=KEEP_JOURNAL_MODE))

    def stand_in(self, folder: Path) -> ConnectionInfo:
        from sqlstress.targets.postgres.place import directions

        return directions({"host": folder.as_posix(), "dbname": "none"}, "none")

    @contextmanager
    def serving(self, cases: Sequence[Case], folder: Path) -> Iterator[None]:
        """Run a temporary server for cases without --dsn. On --dsn servers, drop schemas of killed runs."""
        from sqlstress.targets.postgres.own_schema import drop_abandoned
        from sqlstress.targets.postgres.place import VARIABLES
        from sqlstress.targets.postgres.server import running

        named = {dsn_of(case) for case in cases if case.server and case.server.address}
        for dsn in named:
            drop_abandoned(dsn)
        processes = [case.concurrency for case in cases if not (case.server and case.server.address)]
        if not processes:
            yield
            return
        # With libpq's variables, such as PGHOST, libpq could connect to another server than the temporary
        # server. Keep the variables if there is a --dsn, because its server may need them.
        names = () if named else os.environ.keys() & VARIABLES.values()
        hidden = {name: os.environ.pop(name) for name in names}
        try:
            with running(folder, EACH * max(processes) + RESERVED) as dsn:
                os.environ[SERVER_VARIABLE] = dsn
                yield
        finally:
            os.environ.pop(SERVER_VARIABLE, None)
            os.environ.update(hidden)

    def preload(self, driver: str) -> tuple[str, ...]:
        return (f"{__name__}.place",)

    def explain(self, driver: str, error: Exception) -> str:
        return error_text(error) or plainly(error)

    def durability(self, case: Case, effective: Mapping[str, str]) -> str:
        from sqlstress.report.power_failure import server_durability

        return server_durability(effective) or ""

    def foresees(self, error: Exception) -> bool:
        return type(error).__module__.partition(".")[0] == "psycopg"

    def describe_available(self, driver: str, address: Dsn | None) -> str:
        try:
            import psycopg
        except ImportError as error:
            raise NotInstalled("psycopg", PACKAGE, error) from error
        from sqlstress.targets.postgres.own_schema import opened

        if address is None:
            return f"PostgreSQL would be started, from {programs()} (psycopg {psycopg.__version__})"
        with opened(address.whole, "cannot use the server") as connection:
            version = connection.info.parameter_status("server_version")
        return f"PostgreSQL {version}, the server of --dsn (psycopg {psycopg.__version__})"


TARGET = PostgresTarget()
