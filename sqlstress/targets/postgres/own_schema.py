"""Schemas of sqlstress on a server: create them, and drop them after use.
A run holds an advisory lock on its schema. A schema without this lock was left by a killed run, and the next
run drops it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import psycopg
from psycopg.abc import AdaptContext
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier, Literal

from sqlstress.errors import EnvironmentFailure
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.postgres.dialect import PREFIX, error_text, one_line

Connection = psycopg.Connection[tuple[Any, ...]]

ANSWER_S, RECOVERY_S, QUIET_S, LOCKED_S = 10, 20.0, 30.0, 10.0
"""Time limits, in s.

ANSWER_S: to connect. RECOVERY_S: for the server's crash recovery. QUIET_S: until all sessions have ended.
LOCKED_S: to get a lock.
"""
_POLL_S = 0.02


def connect(dsn: str, what: str, patience_s: float = 0.0, context: AdaptContext | None = None) -> Connection:
    """Return a connection in autocommit mode; if the server refuses it, retry for `patience_s` seconds.

    Raises EnvironmentFailure, with a message that begins with `what`, such as "cannot use the server".
    `context` has psycopg's type conversions.
    """
    until = time.monotonic() + patience_s
    while True:
        try:
            parts: Any = {"connect_timeout": ANSWER_S, "client_encoding": "UTF8", **conninfo_to_dict(dsn)}
            return psycopg.connect(**parts, autocommit=True, context=context)
        except psycopg.Error as error:
            if time.monotonic() >= until:
                raise EnvironmentFailure(f"{what}: {one_line(str(error))}.") from error
        time.sleep(_POLL_S)


@contextmanager
def opened(dsn: str, what: str, patience_s: float = 0.0) -> Iterator[Connection]:
    """Connect and yield the connection. Errors of the server, also in the block, raise EnvironmentFailure."""
    with closing(connect(dsn, what, patience_s)) as connection:
        try:
            yield connection
        except psycopg.OperationalError as error:
            raise EnvironmentFailure(f"{what}: {error_text(error)}.") from error


_END_SESSIONS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = %s AND pid <> pg_backend_pid()"""


def end_sessions(connection: Connection, schema: str, pulse: Pulse) -> None:
    """End all other sessions that use a schema: a killed worker's statement may run for hours.

    Raises EnvironmentFailure if a session remains after QUIET_S seconds.
    """
    until = time.monotonic() + QUIET_S
    while connection.execute(_END_SESSIONS, (schema,)).rowcount:
        if time.monotonic() > until:
            raise EnvironmentFailure("sessions of sqlstress are still on the server after their end.")
        pulse()
        time.sleep(_POLL_S)


COMMENT = '{"made_by": "sqlstress"}'
_OURS = """SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)
AND obj_description(oid, 'pg_namespace') = %s ORDER BY nspname"""
_KEY = "(hashtextextended(%s, 0))"
"""SQL expression for the key of a schema's advisory lock. The parameter %s is the schema's name."""


class Owner:
    """Owner of a schema. The owner's connection holds the schema's advisory lock from `make` to `drop`."""

    def __init__(self, dsn: str, schema: str) -> None:
        self.dsn, self.schema = dsn, schema
        self._connection: Connection | None = None

    def make(self) -> None:
        """Create the schema, in place of an older schema of sqlstress. Raises EnvironmentFailure."""
        create = SQL("CREATE SCHEMA {0}; COMMENT ON SCHEMA {0} IS {1}")
        try:
            _drop_ours(connection := self._connect_and_lock(), self.schema)
            connection.execute(create.format(Identifier(self.schema), Literal(COMMENT)))
        except psycopg.Error as error:
            raise EnvironmentFailure(f"cannot create {self.schema}: {error_text(error)}.") from error

    def drop(self) -> None:
        """Drop the schema if sqlstress created it. After a ConnectionError, the next run drops the schema."""
        try:
            _drop_ours(self._connect_and_lock(RECOVERY_S), self.schema)
        except (psycopg.Error, EnvironmentFailure) as error:
            raise ConnectionError(f"cannot drop the schema {self.schema}: {error}") from error
        finally:
            self._close()

    def _connect_and_lock(self, patience_s: float = 0.0) -> Connection:
        self._close()  # The server may have ended the last session.
        self._connection = connect(self.dsn, "cannot use the server", patience_s)
        self._connection.execute(f"SET lock_timeout = '{LOCKED_S:g}s'".encode())
        try:
            self._connection.execute(f"SELECT pg_advisory_lock{_KEY}".encode(), (self.schema,))
        except psycopg.errors.LockNotAvailable as error:
            self._close()
            raise EnvironmentFailure(f"another sqlstress uses {self.schema}. Wait until it ends.") from error
        return self._connection

    def _close(self) -> None:
        if self._connection:
            self._connection.close()


def drop_abandoned(dsn: str) -> None:
    """Drop the schemas of sqlstress on this server that no run uses. Raises EnvironmentFailure."""
    with opened(dsn, "cannot use the server") as connection:
        for (schema,) in connection.execute(_OURS, (PREFIX, COMMENT)).fetchall():
            lock = f"SELECT 1 WHERE pg_try_advisory_lock{_KEY}".encode()
            if connection.execute(lock, (schema,)).rowcount:  # Locked until the connection is closed.
                with suppress(psycopg.errors.InsufficientPrivilege):  # The schema belongs to another user.
                    _drop_ours(connection, schema)


def _drop_ours(connection: Connection, schema: str) -> None:
    if (schema,) in connection.execute(_OURS, (schema, COMMENT)).fetchall():
        connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(schema)))
