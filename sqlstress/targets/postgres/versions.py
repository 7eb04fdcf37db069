"""Which server would be measured: the one that is named, or the one that would be started."""

from __future__ import annotations

import subprocess

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.options.dsn import EXTRA, Dsn
from sqlstress.targets.postgres.binaries import programs

_ANSWER_S = 20.0


def at_hand(address: Dsn | None) -> str:
    """Return a server's version, and where it is: `address` if that is given, else its programs' folder.

    Raises UsageError without the binding, EnvironmentFailure where there is no server or it does not answer.
    """
    try:
        import psycopg
    except ImportError as error:
        raise UsageError(f"the driver psycopg is not installed ({error}): {EXTRA}.") from error
    server = _named(address) if address else _own()
    return f"{server} (psycopg {psycopg.__version__})"


def _named(address: Dsn) -> str:
    from sqlstress.targets.postgres.sessions import opened

    with opened(address.whole, "the server can't be used") as connection:
        row = connection.execute("SELECT current_setting('server_version')").fetchone()
    return f"PostgreSQL {row[0] if row else '?'}, the server of --dsn"


def _own() -> str:
    folder = programs()
    try:
        told = subprocess.run(
            [folder / "postgres", "--version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=_ANSWER_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"the PostgreSQL server in {folder} does not run: {error}.") from error
    version = told.stdout.strip().rpartition(") ")[2]
    return f"PostgreSQL {version} would be started, from {folder}"
