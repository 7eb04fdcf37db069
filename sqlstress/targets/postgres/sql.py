"""The parent's half of SQL of the user's, in a schema of ours: it is made, and read."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, cast

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.sql import SQL, Identifier

from sqlstress.errors import UsageError
from sqlstress.target import AS_SET
from sqlstress.targets.postgres.address import dsn_of
from sqlstress.targets.postgres.client import fine
from sqlstress.targets.postgres.errors import UNTYPED, ServerError, answer
from sqlstress.targets.postgres.schema import Connection, connect, opened
from sqlstress.targets.postgres.scripts import INT8, numbered
from sqlstress.targets.views import Answer, Row
from sqlstress.targets.watched import run_watched

if TYPE_CHECKING:
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.postgres.place import PostgresPlace


T = TypeVar("T")
CANCEL_S = 5.0
"""So long a server may take to hear that a query is not waited for any more."""
_SNAPSHOT = SQL("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_SAFE = SQL("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE")
_TABLES = (
    "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'm') "
    "ORDER BY relname"
)


class PostgresReader:
    """A connection that only reads: what one moment has shown is what all queries of a round see.

    Among serializable transactions that is a moment at which nothing can be seen that no order of them
    explains: it is waited for.
    """

    def __init__(self, place: PostgresPlace, connection: Connection) -> None:
        self._connection = connection
        enter(connection, place.name)
        server = place.case.server
        # Where nobody asked for a level the user's own may be any.
        self._begin = _SAFE if server and server.isolation in ("serializable", AS_SET) else _SNAPSHOT

    def begin(self) -> None:
        self._connection.execute(self._begin)

    def first(self, sql: str, most: int) -> list[Row]:
        with self._connection.cursor() as cursor:
            rows = cast("Generator[Row, None, None]", cursor.stream(_text(sql)))
            with closing(rows):
                return list(islice(rows, most))

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(_text(sql), tuple(params) or None).fetchall()

    def end(self) -> None:
        with suppress(psycopg.OperationalError):  # one that is gone has ended it
            self._connection.execute("ROLLBACK")

    def understood(self, sql: str, names: Sequence[str]) -> None:
        text, places = numbered(sql)
        prepare = self._connection.pgconn.prepare
        try:
            fine(prepare(b"", text.encode()))
        except ServerError as error:
            if error.sqlstate not in UNTYPED:
                raise
            # As the workers do it: the values say of what type they are.
            fine(prepare(b"", text.encode(), [INT8] * len(places)))

    def interrupt(self) -> None:
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=CANCEL_S)

    def answer(self, error: BaseException) -> Answer | None:
        return answer(error)

    def close(self) -> None:
        self._connection.close()


class PostgresMaker:
    """A connection that makes what is there; nobody needs it after a power failure: no sync is waited for."""

    def __init__(self, connection: Connection, pulse: Pulse) -> None:
        self._connection, self._pulse = connection, pulse

    def run(self, sql: str) -> None:
        self._connection.execute(_text(sql))

    def watched(self, task: Callable[[], T]) -> T:
        return run_watched(self, task, self._pulse)

    def interrupt(self) -> None:
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=CANCEL_S)

    def in_transaction(self) -> bool:
        return self._connection.info.transaction_status != TransactionStatus.IDLE

    def answer(self, error: BaseException) -> Answer | None:
        return answer(error)


def reader(place: PostgresPlace) -> PostgresReader:
    """Connect to read while workers work. Raises EnvironmentFailure."""
    return PostgresReader(place, connect(dsn_of(place.case), f"cannot read {place.name}"))


@contextmanager
def making(place: PostgresPlace, pulse: Pulse) -> Iterator[PostgresMaker]:
    """Make the schema of a place, and what is in it; then vacuum it, which no worker is to have to do."""
    place.owner.make()
    with opened(place.owner.dsn, f"cannot fill {place.name}") as connection:
        enter(connection, place.name)
        connection.execute("SET synchronous_commit = off")
        maker = PostgresMaker(connection, pulse)
        yield maker
        row = connection.execute("SELECT current_schema()").fetchone()
        if not row or row[0] != place.name:
            raise UsageError(
                "the setup leaves another search_path: leave it out. All is made in one schema of ours, "
                "which is dropped afterwards."
            )
        _vacuum(connection, place.name, maker)


def settle(place: PostgresPlace, pulse: Pulse) -> None:
    """Vacuum what programs of the user's have made in the schema, when they are gone."""
    with place.read(pulse) as connection:
        _vacuum(connection, place.name, PostgresMaker(connection, pulse))


def _vacuum(connection: Connection, schema: str, maker: PostgresMaker) -> None:
    for (table,) in connection.execute(_TABLES, (schema,)).fetchall():
        vacuum = SQL("VACUUM (ANALYZE) {}").format(Identifier(schema, table))
        maker.watched(lambda vacuum=vacuum: connection.execute(vacuum))  # type: ignore[misc]


def enter(connection: Connection, schema: str) -> None:
    """Let a session be one of ours, whose names are found in the schema."""
    connection.execute(SQL("SET search_path = {}, pg_catalog").format(Identifier(schema)))
    connection.execute("SELECT set_config('application_name', %s, false)", (schema,))


def _text(sql: str) -> bytes:
    """Return SQL that the user wrote, as it is."""
    return sql.encode()
