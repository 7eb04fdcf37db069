"""Where a case's data lies on a server: a schema of our own, and in it a table for each bucket."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote, urlencode

import psycopg
from psycopg.pq import Conninfo, TransactionStatus
from psycopg.sql import SQL, Identifier

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.target import AS_SET
from sqlstress.targets import run_watched
from sqlstress.targets.place import Place
from sqlstress.targets.postgres import own_schema
from sqlstress.targets.postgres.client import (
    INT8,
    Client,
    PostgresStore,
    connected,
    fine,
    numbered,
)
from sqlstress.targets.postgres.dialect import (
    NO_NATIVE,
    UNTYPED,
    ServerError,
    answer,
    differences,
    dsn_of,
    schema_of,
)
from sqlstress.targets.postgres.own_schema import Connection, Owner, await_quiet, connect, first, opened
from sqlstress.targets.views import Answer, Directions, NativeLoop, Row, T

if TYPE_CHECKING:  # what a worker needs not is imported when the parent does it
    from pathlib import Path

    from sqlstress.report import Check
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Definition
    from sqlstress.targets.postgres.tables import PostgresSnapshot, PostgresTable

COUNTED_AT_ONCE = 150_000
"""From this version on what a session did is counted when it has ended, and not a while later."""
CANCEL_S = 5.0
"""So long a server may take to hear that a query is not waited for any more."""
_WRITTEN = (
    "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_all_tables "
    "WHERE schemaname = %s"
)
_TABLES = (
    "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'm') "
    "ORDER BY relname"
)
_SNAPSHOT = SQL("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_SAFE = SQL("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE")


def _no_pulse() -> None:
    pass


class PostgresPlace(Place):
    """A schema of a case, called after the folder that the case was given."""

    stores: Literal[True] = True

    def __init__(self, case: Case, where: Path) -> None:
        self.case, self.where = case, where
        self.name = schema_of(where)
        """The schema's."""
        self._owner: Owner | None = None

    # A worker's.

    def keyvalue(self, worker: int, begin: str, sample: Any) -> PostgresStore:
        return PostgresStore(self.case, self.name, begin)

    @contextmanager
    def bare_call(self) -> Iterator[Callable[[], object]]:
        with closing(self.client(worker=0).connect()) as client:
            select, _ = client.binary(b"bare", "SELECT 1")
            yield lambda: select(())

    def native(self, worker: int, begin: str) -> NativeLoop:
        raise EnvironmentFailure(f"{NO_NATIVE}. Use --loop python.")

    def client(self, worker: int) -> Client:
        return Client(self.case, self.name)

    # The parent's.

    @property
    def owner(self) -> Owner:
        """Who holds the schema."""
        if self._owner is None:
            self._owner = Owner(dsn_of(self.case), self.name)
        return self._owner

    @contextmanager
    def read(self, pulse: Pulse = _no_pulse) -> Iterator[Connection]:
        """Connect to read what is there when no worker of ours is connected any more."""
        with opened(dsn_of(self.case), f"cannot read {self.name}", own_schema.RECOVERY_S) as connection:
            await_quiet(connection, self.name, pulse)
            yield connection

    def table(self, key_type: str, value_size: int, counters: int) -> PostgresTable:
        from sqlstress.targets.postgres.tables import PostgresTable

        return PostgresTable(self, key_type, value_size, counters)

    def schema(self) -> Sequence[Definition]:
        from sqlstress.targets.postgres.tables import definitions

        return definitions(self, _no_pulse)

    def snapshot(self, pulse: Pulse) -> PostgresSnapshot:
        from sqlstress.targets.postgres.tables import PostgresSnapshot

        return PostgresSnapshot(self, pulse)

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        return differences(self.case, effective)

    def integrity(self, level: str, pulse: Pulse) -> Check:
        from sqlstress.targets.postgres.tables import integrity_check

        return integrity_check(self, level, pulse)

    def redefined(self, created: Sequence[Definition], pulse: Pulse) -> Check:
        from sqlstress.targets.postgres.tables import schema_check

        return schema_check(self, created, pulse)

    def discard(self) -> None:
        self.owner.drop()

    # For SQL of the user's.

    def directions(self) -> Directions:
        isolation = self.case.server.isolation if self.case.server else AS_SET
        return directions(resolved(dsn_of(self.case)), self.name, None if isolation == AS_SET else isolation)

    def clear(self) -> None:
        """Leave the schema, and nothing in it."""
        self.owner.make()

    def is_filled(self) -> bool:
        return bool(self.schema())

    def settle(self, pulse: Pulse) -> None:
        """Vacuum what programs of the user's have made in the schema, when they are gone."""
        with self.read(pulse) as connection:
            self._vacuum(connection, PostgresMaker(connection, pulse))

    def rows_written(self, pulse: Pulse) -> int | None:
        with self.read(pulse) as connection:
            if connection.info.server_version < COUNTED_AT_ONCE:
                return None
            return int(first(connection, _WRITTEN, (self.name,))[0])

    def reader(self) -> PostgresReader:
        return PostgresReader(self, connect(dsn_of(self.case), f"cannot read {self.name}"))

    @contextmanager
    def reading(self, pulse: Pulse) -> Iterator[PostgresReader]:
        with self.read(pulse) as connection:
            yield PostgresReader(self, connection)

    @contextmanager
    def making(self, pulse: Pulse) -> Iterator[PostgresMaker]:
        """Make the schema, and what is in it; then vacuum it, which no worker is to have to do."""
        self.owner.make()
        with opened(self.owner.dsn, f"cannot fill {self.name}") as connection:
            _enter(connection, self.name)
            connection.execute("SET synchronous_commit = off")
            maker = PostgresMaker(connection, pulse)
            yield maker
            if first(connection, "SELECT current_schema()")[0] != self.name:
                raise UsageError(
                    "the setup changes the search_path. Remove that: sqlstress uses its own schema, "
                    "which it drops afterwards."
                )
            self._vacuum(connection, maker)

    def _vacuum(self, connection: Connection, maker: PostgresMaker) -> None:
        for (table,) in connection.execute(_TABLES, (self.name,)).fetchall():
            vacuum = SQL("VACUUM (ANALYZE) {}").format(Identifier(self.name, table))
            maker.watched(lambda vacuum=vacuum: connection.execute(vacuum))  # type: ignore[misc]


def _enter(connection: Connection, schema: str) -> None:
    """Let a session be one of ours, whose names are found in the schema."""
    connection.execute(SQL("SET search_path = {}, pg_catalog").format(Identifier(schema)))
    connection.execute("SELECT set_config('application_name', %s, false)", (schema,))


class _Interruptible:
    """A connection whose query ends soon if another thread says so."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def interrupt(self) -> None:
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=CANCEL_S)

    def answer(self, error: BaseException) -> Answer | None:
        return answer(error)


class PostgresReader(_Interruptible):
    """A connection that only reads: what one moment has shown is what all queries of a round see.

    Among serializable transactions that is a moment at which nothing can be seen that no order of them
    explains: it is waited for.
    """

    def __init__(self, place: PostgresPlace, connection: Connection) -> None:
        super().__init__(connection)
        self.close = connection.close
        _enter(connection, place.name)
        server = place.case.server
        # Where nobody asked for a level the user's own may be any.
        self._begin = _SAFE if server and server.isolation in ("serializable", AS_SET) else _SNAPSHOT

    def begin(self) -> None:
        self._connection.execute(self._begin)

    def first(self, sql: str, most: int) -> list[Row]:
        with self._connection.cursor() as cursor:
            rows = cast("Generator[Row, None, None]", cursor.stream(sql.encode()))
            with closing(rows):
                return list(islice(rows, most))

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql.encode(), tuple(params) or None).fetchall()

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


class PostgresMaker(_Interruptible):
    """A connection that makes what is there; nobody needs it after a power failure: no sync is waited for."""

    def __init__(self, connection: Connection, pulse: Pulse) -> None:
        super().__init__(connection)
        self._pulse = pulse

    def run(self, sql: str) -> None:
        self._connection.execute(sql.encode())

    def watched(self, task: Callable[[], T]) -> T:
        return run_watched(self, task, self._pulse)

    def in_transaction(self) -> bool:
        return self._connection.info.transaction_status != TransactionStatus.IDLE


# How programs of the user's find our schema: by a URL, and by the variables that libpq looks for.
#
# Nothing secret stands in the URL, which is a word of commands and may stand in messages: a password is in
# the environment only.


SERVICE = "PGSERVICE"
SECRET = frozenset({"password", "sslpassword", "oauth_client_secret"})
_PLACE = ("host", "hostaddr", "port", "user", "dbname")
"""What is said in any case; of the other keywords what is not as libpq has it."""
_VARIABLES = {
    option.keyword.decode(): option.envvar.decode()
    for option in Conninfo.get_defaults()
    if option.keyword and option.envvar
}
"""Of libpq: keyword → variable of the environment."""


def resolved(dsn: str) -> dict[str, str]:
    """Return what a connection string comes to, with what the environment and a service add, by keyword.

    It connects, as only libpq knows all of that. Raises EnvironmentFailure.
    """
    connection = connected(dsn, "cannot use the server")
    try:
        options = {option.keyword.decode(): (option.val, option.compiled) for option in connection.info}
    finally:
        connection.finish()
    return {
        name: value.decode()
        for name, (value, usual) in options.items()
        if value and name != "service" and (name in _PLACE or value != usual)
    }


def directions(parts: Mapping[str, str], schema: str, isolation: str | None) -> Directions:
    """Return how a program gets to a server, into a schema, whatever of libpq it uses: by keyword, resolved.

    Its transactions begin with the level of isolation, unless it asks for another one.
    """
    options = [parts.get("options", ""), f"-c search_path={schema},pg_catalog"]
    if isolation:
        level = isolation.replace("-", r"\ ")  # a space within a value
        options.append(f"-c default_transaction_isolation={level}")
    whole = {**parts, "options": " ".join(filter(None, options)), "application_name": schema}
    # No other variable of libpq's may lead elsewhere: a service goes before what the others say.
    variables = dict.fromkeys((SERVICE, *_VARIABLES.values()))
    variables |= {_VARIABLES[name]: value for name, value in whole.items() if name in _VARIABLES}
    rest = {name: value for name, value in whole.items() if name not in SECRET}
    user, database = (quote(rest.pop(name, ""), safe="") for name in ("user", "dbname"))
    where = ""
    # A host that can't stand in its usual place, as a socket's folder, stands behind it.
    if not set(rest.get("host", "/")) & set("/@,:"):
        port = rest.pop("port", "")
        where = rest.pop("host") + (f":{port}" if port else "")
    at = f"{user}@" if user else ""
    url = f"postgresql://{at}{where}/{database}?{urlencode(rest, quote_via=quote, safe='')}"
    return Directions(url, variables, parts.get("password", ""))
