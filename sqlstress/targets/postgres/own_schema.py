"""Schemas of sqlstress on a server: create them, and drop them after use.

A killed run leaves its schema; the next run on this server drops it. Schemas of sqlstress have a prefix in
their names and a mark in their comments. A schema is in use while a session holds the advisory lock of the
schema; the server releases the lock when the session ends, for any reason. Nothing else on the server is
changed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier, Literal

from sqlstress.errors import EnvironmentFailure
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.postgres.dialect import PREFIX, error_text, one_line

Connection = psycopg.Connection[tuple[Any, ...]]

ANSWER_S = 10
"""Default time limit for connecting, in seconds."""
RECOVERY_S = 20.0
"""Maximum wait for a server that recovers from a crash, in seconds."""
QUIET_S = 30.0
"""Maximum wait for the end of sessions whose processes have ended, in seconds."""
LOCKED_S = 10.0
"""Maximum wait for a lock that another session holds, in seconds."""
_POLL_S = 0.02


def connect(dsn: str, what: str, patience_s: float = 0.0) -> Connection:
    """Return a connection in autocommit mode. Retry for `patience_s` seconds if the server refuses.

    Raises EnvironmentFailure, whose message begins with `what`.
    """
    until = time.monotonic() + patience_s
    options: dict[str, Any] = {"connect_timeout": ANSWER_S, "client_encoding": "UTF8"}
    while True:
        try:
            return psycopg.connect(**{**options, **conninfo_to_dict(dsn)}, autocommit=True)
        except psycopg.Error as error:
            if time.monotonic() >= until:
                raise EnvironmentFailure(f"{what}: {one_line(str(error))}.") from error
        time.sleep(_POLL_S)


@contextmanager
def opened(dsn: str, what: str, patience_s: float = 0.0) -> Iterator[Connection]:
    """Yield a connection as from `connect`, and close it after the block.

    Raises EnvironmentFailure if the connection or the server fails, also during the block.
    """
    with closing(connect(dsn, what, patience_s)) as connection:
        try:
            yield connection
        except psycopg.OperationalError as error:
            raise EnvironmentFailure(f"{what}: {error_text(error)}.") from error


def first(connection: Connection, sql: Any, params: Any = None) -> tuple[Any, ...]:
    """Return the first row of a query that returns at least one row."""
    row = connection.execute(sql, params).fetchone()
    assert row
    return row


_END_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = %s AND pid <> pg_backend_pid()"
)


def end_sessions(connection: Connection, schema: str, pulse: Pulse) -> None:
    """End all sessions of workers in a schema, and wait until they have ended, with calls of `pulse`.

    The statement of a killed worker may still run on the server, for hours. Raises EnvironmentFailure if a
    session remains after QUIET_S.
    """
    until = time.monotonic() + QUIET_S
    while connection.execute(_END_SESSIONS, (schema,)).rowcount:
        if time.monotonic() > until:
            raise EnvironmentFailure(
                "sessions of sqlstress are still on the server after their processes ended."
            )
        pulse()
        time.sleep(_POLL_S)


COMMENT = json.dumps({"made_by": "sqlstress"})
_OURS = (
    "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s) "
    "AND obj_description(oid, 'pg_namespace') = %s ORDER BY nspname"
)
_KEY = "(hashtextextended(%s, 0))"
"""SQL expression of the key of a schema's advisory lock; its parameter is the name of the schema."""


class Owner:
    """Owner of a schema: its session holds the schema's advisory lock from `make` to `drop`."""

    def __init__(self, dsn: str, schema: str) -> None:
        self.dsn, self.schema = dsn, schema
        self._connection: Connection | None = None

    def make(self) -> None:
        """Create the schema, empty. An earlier schema of sqlstress with this name is dropped.

        Raises EnvironmentFailure, also if the user has a schema with this name.
        """
        try:
            connection, name = self._locked(), Identifier(self.schema)
            _drop_ours(connection, self.schema)
            connection.execute(SQL("CREATE SCHEMA {}").format(name))
            connection.execute(SQL("COMMENT ON SCHEMA {} IS {}").format(name, Literal(COMMENT)))
        except psycopg.Error as error:
            raise EnvironmentFailure(
                f"cannot create the schema {self.schema}: {error_text(error)}."
            ) from error

    def drop(self) -> None:
        """Drop the schema if it exists and has the mark of sqlstress.

        Raises ConnectionError if that fails; the next run on the server tries again.
        """
        try:
            _drop_ours(self._locked(RECOVERY_S), self.schema)
        except (psycopg.Error, EnvironmentFailure) as error:
            raise ConnectionError(f"cannot drop the schema {self.schema}: {error}") from error
        finally:
            self._close()

    def _locked(self, patience_s: float = 0.0) -> Connection:
        """Return a new session that holds the schema's advisory lock.

        It is new, because the server may have ended the last one. Raises EnvironmentFailure if another run
        holds the lock.
        """
        self._close()
        self._connection = connect(self.dsn, "cannot use the server", patience_s)
        self._connection.execute(f"SET lock_timeout = '{LOCKED_S:g}s'".encode())
        try:
            self._connection.execute(f"SELECT pg_advisory_lock{_KEY}".encode(), (self.schema,))
        except psycopg.errors.LockNotAvailable as error:
            self._close()
            raise EnvironmentFailure(
                f"another sqlstress uses the schema {self.schema}. Wait until it ends."
            ) from error
        return self._connection

    def _close(self) -> None:
        if self._connection:
            self._connection.close()


def drop_abandoned(dsn: str) -> None:
    """Drop the schemas of sqlstress on this server that no run uses. Raises EnvironmentFailure."""
    with opened(dsn, "cannot use the server") as connection:
        for (schema,) in connection.execute(_OURS, (PREFIX, COMMENT)).fetchall():
            # The server releases the lock when this connection is closed.
            if first(connection, f"SELECT pg_try_advisory_lock{_KEY}".encode(), (schema,))[0]:
                with suppress(psycopg.errors.InsufficientPrivilege):  # Another user's run created the schema.
                    _drop_ours(connection, schema)


def _drop_ours(connection: Connection, schema: str) -> None:
    """Drop a schema if its comment has the mark of sqlstress. The caller must hold its advisory lock."""
    if (schema,) in connection.execute(_OURS, (schema, COMMENT)).fetchall():
        connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(schema)))
