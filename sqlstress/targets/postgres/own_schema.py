"""Our schema on a server: made, used and dropped; and dropped by the next start if we were killed.

A schema is ours if its name and the comment on it say so. It has an owner as long as a session holds its
advisory lock, which the server takes away from a session that ends, however that ended. Nothing else of the
server is ever touched.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from sqlstress.errors import EnvironmentFailure
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.postgres.client import with_defaults
from sqlstress.targets.postgres.dialect import PREFIX, explained, key_of, one_line

Connection = psycopg.Connection[tuple[Any, ...]]
"""The parent's, through psycopg: it may wait, and is in no figure."""

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

    One that has just been started anew takes nobody for a while: it is tried again for `patience_s`.
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


def first(connection: Connection, sql: Any, params: Any = ()) -> tuple[Any, ...]:
    row = connection.execute(sql, params or None).fetchone()
    assert row
    return row


def await_quiet(connection: Connection, schema: str, pulse: Pulse) -> None:
    """Wait until no worker's session is left: of one that died, the server may still do what it was told.

    Raises EnvironmentFailure when one stays.
    """
    begun = time.monotonic()
    while rows := connection.execute(_OTHERS, (schema,)).fetchall():
        waited_s = time.monotonic() - begun
        if waited_s > QUIET_S:
            raise EnvironmentFailure(
                f"{len(rows)} sessions of sqlstress are still on the server after their processes ended."
            )
        if waited_s > GRACE_S:
            with suppress(psycopg.errors.InsufficientPrivilege):  # as far as the user of ours may
                connection.execute(_END, (schema,))
        pulse()
        time.sleep(_POLL_S)


COMMENT = json.dumps({"made_by": "sqlstress"})
LOCKED_S = 10
"""So long it is waited for a table that a session holds, whose name says nothing of us."""
_OURS = (
    "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s) "
    "AND obj_description(oid, 'pg_namespace') = %s ORDER BY nspname"
)
_TRY_LOCK = "SELECT pg_try_advisory_lock(%s)"
_UNLOCK = "SELECT pg_advisory_unlock(%s)"


class Owner:
    """Holds a schema of ours, from when it is made until it is dropped."""

    def __init__(self, dsn: str, schema: str) -> None:
        self.dsn, self.schema = dsn, schema
        self._connection: Connection | None = None

    def make(self) -> None:
        """Make the schema anew and empty. Raises EnvironmentFailure; nobody else's is dropped for it."""
        connection = self._held()
        try:
            _drop_ours(connection, self.schema)
            name = Identifier(self.schema)
            connection.execute(SQL("CREATE SCHEMA {}").format(name))
            connection.execute(SQL("COMMENT ON SCHEMA {} IS {}").format(name, Literal(COMMENT)))
        except psycopg.Error as error:
            said = f"cannot create the schema {self.schema}: {explained(error)}."
            raise EnvironmentFailure(said) from error

    def drop(self) -> None:
        """Drop the schema, if it is there and ours, and let it go.

        Raises ConnectionError where that can't be: the next start does it.
        """
        try:
            _drop_ours(self._held(RECOVERY_S), self.schema)
        except (psycopg.Error, EnvironmentFailure) as error:
            raise ConnectionError(f"cannot drop the schema {self.schema}: {error}") from error
        finally:
            self._let_go()

    def _held(self, patience_s: float = 0.0) -> Connection:
        """Return a session that holds the schema's lock."""
        if self._connection:
            try:
                self._connection.execute("SELECT 1")
            except psycopg.Error:
                self._let_go()
        if self._connection is None:
            connection = connect(self.dsn, "cannot use the server", patience_s)
            # A stranger's session may hold a table of ours, for hours: the next start drops it then.
            connection.execute(SQL("SET lock_timeout = {}").format(Literal(f"{LOCKED_S}s")))
            if not first(connection, _TRY_LOCK, (key_of(self.schema),))[0]:
                connection.close()
                raise EnvironmentFailure(
                    f"another sqlstress uses the schema {self.schema}. Wait until it ends."
                )
            self._connection = connection
        return self._connection

    def _let_go(self) -> None:
        if self._connection:
            # A session that is closed holds its lock until the server has heard of it.
            with suppress(psycopg.Error):
                self._connection.execute(_UNLOCK, (key_of(self.schema),))
            self._connection.close()
            self._connection = None


def drop_abandoned(dsn: str) -> list[str]:
    """Drop the schemas of ours that have no owner any more; return their names."""
    dropped = []
    with opened(dsn, "cannot use the server") as connection:
        for (schema,) in connection.execute(_OURS, (PREFIX, COMMENT)).fetchall():
            with suppress(psycopg.errors.InsufficientPrivilege):  # made by another of its users
                if drop_if_alone(connection, schema):
                    dropped.append(schema)
    return dropped


def drop_if_alone(connection: Connection, schema: str) -> bool:
    """Drop a schema of ours unless a session holds its lock; say whether none did."""
    if not first(connection, _TRY_LOCK, (key_of(schema),))[0]:
        return False
    try:
        _drop_ours(connection, schema)
    finally:
        connection.execute(_UNLOCK, (key_of(schema),))
    return True


def _drop_ours(connection: Connection, schema: str) -> None:
    """Drop a schema that its comment says is ours; its lock is held."""
    if (schema,) in connection.execute(_OURS, (schema, COMMENT)).fetchall():
        connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(schema)))
