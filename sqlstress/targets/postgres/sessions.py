"""The parent's connections, through psycopg: they may wait, and are in no figure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from sqlstress.errors import EnvironmentFailure
from sqlstress.system.pulse import Pulse
from sqlstress.targets.postgres.client import with_defaults
from sqlstress.targets.postgres.errors import explained, one_line

Connection = psycopg.Connection[tuple[Any, ...]]

GRACE_S = 5.0
"""So long what processes of ours had asked for may go on after they have ended. Then it is ended: a program
that was killed may have asked for something that takes hours."""
QUIET_S = 30.0
"""So long that may take."""
RECOVERY_S = 20.0
"""So long a server that has been there may take to be there again."""
RETRY_S = 0.2
_POLL_S = 0.01
_OF_OTHERS = "FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"
_OTHERS = f"SELECT pid {_OF_OTHERS}"
_END = f"SELECT pg_terminate_backend(pid) {_OF_OTHERS}"


def connect(dsn: str, what: str, patience_s: float = 0.0) -> Connection:
    """Connect, in true autocommit; `what` is what for. Raises EnvironmentFailure, with the server's words.

    One that has just been started anew takes nobody for a while: it is asked again for `patience_s`.
    """
    until = time.monotonic() + patience_s
    while True:
        try:
            return psycopg.connect(with_defaults(dsn), autocommit=True)
        except psycopg.Error as error:
            if time.monotonic() >= until:
                raise EnvironmentFailure(f"{what}: {one_line(str(error))}.") from error
        time.sleep(RETRY_S)


@contextmanager
def opened(dsn: str, what: str, patience_s: float = 0.0) -> Iterator[Connection]:
    """Connect for as long as the block lasts. Raises EnvironmentFailure for what a server lacks."""
    connection = connect(dsn, what, patience_s)
    try:
        yield connection
    except psycopg.OperationalError as error:
        raise EnvironmentFailure(f"{what}: {explained(error)}.") from error
    finally:
        connection.close()


def await_quiet(connection: Connection, schema: str, pulse: Pulse) -> None:
    """Wait until no worker's session is left: of one that died, the server may still do what it was told.

    Raises EnvironmentFailure when one stays.
    """
    begun = time.monotonic()
    while rows := connection.execute(_OTHERS, (schema,)).fetchall():
        waited_s = time.monotonic() - begun
        if waited_s > QUIET_S:
            raise EnvironmentFailure(
                f"{len(rows)} sessions of ours stay on the server though their processes ended."
            )
        if waited_s > GRACE_S:
            _end(connection, schema)
        pulse()
        time.sleep(_POLL_S)


def _end(connection: Connection, schema: str) -> None:
    """End the sessions that are left, as far as the user of ours may."""
    with suppress(psycopg.errors.InsufficientPrivilege):
        connection.execute(_END, (schema,))
