"""What can be asked of a server."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

from sqlstress.errors import UsageError
from sqlstress.options.dsn import EXTRA, Dsn
from sqlstress.report.case import KEPT, Case
from sqlstress.report.server import Server

MOST_TABLES = 1000
"""Each connection prepares its statements for every table."""


def checked(case: Case, server: Server, anyway: bool) -> Case:
    """Return a case with its server, and without what is SQLite's alone. Raises UsageError."""
    if find_spec("psycopg") is None:
        raise UsageError(f"the driver {case.driver} is not installed: {EXTRA}.")
    if case.settings.synchronous == "extra":
        raise UsageError(
            "--synchronous extra is SQLite's: a server's commits wait for a sync (full) or not (normal, off)."
        )
    if case.buckets > MOST_TABLES:
        raise UsageError(
            f"--buckets is the number of tables with --driver {case.driver}: {MOST_TABLES:,} at most."
        )
    _check_local(server.address, anyway)
    return replace(case, server=server, settings=replace(case.settings, journal_mode=KEPT))


def _check_local(address: str | None, anyway: bool) -> None:
    if isinstance(address, Dsn) and not address.is_local and not anyway:
        raise UsageError(
            f"{address} may not be this machine: others may need it. Add --anyway to load it all the same."
        )
    if address is None and anyway:
        raise UsageError("--anyway is for a server that is not on this machine: add --dsn, or leave it out.")
