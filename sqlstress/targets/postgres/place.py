"""Data of a case on a PostgreSQL server: a schema that sqlstress creates, with tables for each bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote, urlencode

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import Conninfo, TransactionStatus
from psycopg.sql import SQL, Identifier

from sqlstress.errors import UsageError
from sqlstress.report.results import CheckCounter
from sqlstress.target import AS_SET
from sqlstress.targets import run_watched
from sqlstress.targets.place import DURING_MEASUREMENT, Disturbance, Place, Snapshot, schema_differences
from sqlstress.targets.postgres import own_schema
from sqlstress.targets.postgres.client import PostgresClient, PostgresStore, number_parameters
from sqlstress.targets.postgres.dialect import UNTYPED, answer, dsn_of, requested, schema_of
from sqlstress.targets.postgres.own_schema import Connection, Owner, connect, end_sessions, opened
from sqlstress.targets.views import ConnectionInfo, Row, T, TableView

if TYPE_CHECKING:
    from pathlib import Path

    from sqlstress.report import Check
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Definition

CANCEL_S = 5.0
SQL_TYPES = {"int": "bigint", "text": "text", "blob": "bytea"}
ROWS_PER_PULSE = 10_000
# Servers before version 15 update the counts with a delay.
_WRITTEN = """
SELECT CASE WHEN current_setting('server_version_num')::int >= 150000
    THEN coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint END
FROM pg_stat_all_tables WHERE schemaname = %s
"""
_RELATIONS = "FROM pg_class c WHERE relnamespace = to_regnamespace(%s)"
_IDENTITIES = f"SELECT relname, oid, relfilenode {_RELATIONS} AND relkind = 'r'"
_DEFINITIONS = f"""
WITH relation AS (SELECT oid, relname, relkind::text || relpersistence::text AS kind {_RELATIONS})
SELECT 'relation', relname, kind FROM relation
UNION ALL SELECT 'column', relname, format('%%s %%s%%s', attname, format_type(atttypid, atttypmod),
       CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END)
FROM pg_attribute JOIN relation ON oid = attrelid WHERE kind LIKE 'r%%' AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'index', relname, pg_get_indexdef(indexrelid) FROM pg_index JOIN relation ON oid = indrelid
UNION ALL SELECT 'constraint', relname, pg_get_constraintdef(o.oid)
FROM pg_constraint o JOIN relation r ON r.oid = conrelid WHERE contype <> 'n'
ORDER BY 1, 2, 3
"""


class PostgresPlace(Place):
    """Schema of a case. Its name follows from the data folder of the case."""

    stores: Literal[True] = True

    def __init__(self, case: Case, where: Path) -> None:
        self.case, self.where, self.name = case, where, schema_of(where)

    def keyvalue(self, worker: int, begin: str, sample: Any) -> PostgresStore:
        return PostgresStore(self.case, self.name, begin)

    @contextmanager
    def bare_call(self) -> Iterator[Callable[[], object]]:
        with closing(self.client(worker=0).connect()) as client:
            yield client.prepare("SELECT 1")

    def client(self, worker: int) -> PostgresClient:
        return PostgresClient(self.case, self.name)

    @cached_property
    def owner(self) -> Owner:
        return Owner(dsn_of(self.case), self.name)

    @contextmanager
    def read(self, pulse: Pulse = lambda: None) -> Iterator[Connection]:
        """End all sessions of workers, and yield a connection. Raises EnvironmentFailure."""
        with opened(dsn_of(self.case), f"cannot read {self.name}", own_schema.RECOVERY_S) as connection:
            end_sessions(connection, self.name, pulse)
            connection.execute(f"SET lock_timeout = '{own_schema.LOCKED_S:g}s'".encode())
            yield connection

    def query(self, sql: str, pulse: Pulse = lambda: None) -> list[Row]:
        """Return the rows of a query, whose parameter is the name of the schema."""
        with self.read(pulse) as connection:
            return connection.execute(sql.encode(), (self.name,)).fetchall()

    def table(self, key_type: str, value_size: int, counters: int) -> PostgresTable:
        return PostgresTable(self, key_type, value_size, counters)

    def schema(self, pulse: Pulse = lambda: None) -> Sequence[Definition]:
        rows = self.query(_DEFINITIONS, pulse)
        return [(f"the {kind} of {name}", definition) for kind, name, definition in rows]

    def snapshot(self, pulse: Pulse) -> PostgresSnapshot:
        return PostgresSnapshot(self, pulse)

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        for setting, value in requested(self.case):
            name = setting.removeprefix("default_")
            if effective.get(name) not in (None, value):
                yield name, value, effective[name]

    def redefined(self, created: Sequence[Definition], pulse: Pulse) -> Check:
        tally = CheckCounter("schema")
        tally.checked = len(created)
        for difference in schema_differences(created, self.schema(pulse)):
            tally.problem(f"the schema {difference}")
        return tally.check()

    def discard(self) -> None:
        self.owner.drop()

    def directions(self) -> ConnectionInfo:
        isolation = self.case.server.isolation if self.case.server else AS_SET
        return directions(resolve_dsn(dsn_of(self.case)), self.name, isolation)

    def clear(self) -> None:
        self.owner.make()

    def is_filled(self) -> bool:
        return bool(self.schema())

    def settle(self, pulse: Pulse) -> None:
        with self.reading(pulse) as session:
            session.vacuum()

    def rows_written(self, pulse: Pulse) -> int | None:
        ((count,),) = self.query(_WRITTEN, pulse)
        return cast(int | None, count)

    def reader(self) -> PostgresSession:
        connection = connect(dsn_of(self.case), f"cannot read {self.name}")
        return PostgresSession(connection, self.name, lambda: None)

    @contextmanager
    def reading(self, pulse: Pulse) -> Iterator[PostgresSession]:
        with self.read(pulse) as connection:
            yield PostgresSession(connection, self.name, pulse)

    @contextmanager
    def making(self, pulse: Pulse) -> Iterator[PostgresSession]:
        """Create the schema and yield a session to fill it. Vacuum afterwards: none is due during the load.

        Raises UsageError if the block changes the search path.
        """
        self.owner.make()
        with opened(self.owner.dsn, f"cannot fill {self.name}") as connection:
            connection.execute("SET synchronous_commit = off")
            session = PostgresSession(connection, self.name, pulse)
            yield session
            if session.rows("SELECT current_schema()") != [(self.name,)]:
                raise UsageError(
                    "the setup changes the search_path. Remove that: sqlstress uses its own schema, "
                    "which it drops afterwards."
                )
            session.vacuum()


class PostgresTable(TableView):
    """Tables of keys and values, and of counters, for each bucket."""

    def __init__(self, place: PostgresPlace, key_type: str, value_size: int, counters: int) -> None:
        self._place, self._counters = place, counters
        self._types = (SQL_TYPES[key_type], "bigint" if value_size == 8 else "bytea")

    def create(self, pulse: Pulse) -> None:
        self.fill(((),) * self._place.case.buckets, pulse)

    def fill(self, buckets: Iterable[Iterable[tuple[Any, Any]]], pulse: Pulse) -> None:
        key, value = self._types
        with self._place.making(pulse) as session:
            for bucket, rows in enumerate(buckets):
                session.run(f"CREATE TABLE kv_{bucket} (key {key} PRIMARY KEY, value {value})")
                session.run(f"CREATE TABLE counter_{bucket} (id bigint PRIMARY KEY, n bigint NOT NULL)")
                numbers = f"SELECT id, 0 FROM generate_series(0, {self._counters - 1}) AS id"
                session.run(f"INSERT INTO counter_{bucket} {numbers}")
                copy_in = f"COPY kv_{bucket} FROM STDIN (FORMAT BINARY)".encode()
                with session.connection.cursor() as cursor, cursor.copy(copy_in) as copy:
                    copy.set_types(self._types)
                    for number, row in enumerate(rows):
                        if number % ROWS_PER_PULSE == 0:
                            pulse()
                        copy.write_row(row)

    def name(self, bucket: int) -> str:
        return f"kv_{bucket}"

    def rows(self, bucket: int) -> Iterator[tuple[Any, Any]]:
        copy_out = f"COPY {self._place.name}.kv_{bucket} TO STDOUT (FORMAT BINARY)".encode()
        with self._place.read() as connection, connection.cursor() as cursor, cursor.copy(copy_out) as copy:
            copy.set_types(self._types)
            yield from cast(Iterator[tuple[Any, Any]], copy.rows())

    def counters(self, bucket: int) -> list[tuple[int, Any]]:
        with self._place.read() as connection:
            query = f"SELECT id, n FROM {self._place.name}.counter_{bucket} ORDER BY id".encode()
            return cast(list[tuple[int, Any]], connection.execute(query).fetchall())


class PostgresSnapshot(Snapshot):
    """Identities of the schema's tables and their files: the check of the rows misses a replaced table."""

    def __init__(self, place: PostgresPlace, pulse: Pulse) -> None:
        self._place, self._tables = place, place.query(_IDENTITIES, pulse)

    def changed(self, pulse: Pulse) -> Disturbance | None:
        tables = {name: identity for name, *identity in self._place.query(_IDENTITIES, pulse)}
        for name, *identity in self._tables:
            if tables.get(name) != identity:
                how = "replaced by another table" if name in tables else "dropped"
                return Disturbance(f"{name} was {how} {DURING_MEASUREMENT}", "failed")
        return None


class PostgresSession:
    """Connection of the parent process that looks up names in the schema."""

    def __init__(self, connection: Connection, schema: str, pulse: Pulse) -> None:
        self.connection, self._schema, self._pulse = connection, schema, pulse
        self.close, self.answer = connection.close, answer
        self.run(f"SET search_path = {schema}, pg_catalog; SET application_name = {schema}")

    def interrupt(self) -> None:
        with suppress(psycopg.Error):
            self.connection.cancel_safe(timeout=CANCEL_S)

    def run(self, sql: str) -> None:
        self.connection.execute(sql.encode())

    def watched(self, task: Callable[[], T]) -> T:
        return run_watched(self, task, self._pulse)

    def vacuum(self) -> None:
        """Vacuum and analyze all tables of the schema."""
        tables = self.rows(f"SELECT relname {_RELATIONS} AND relkind IN ('r', 'm')", (self._schema,))
        names = [Identifier(self._schema, table) for (table,) in sorted(tables)]
        if names:
            vacuum = SQL("VACUUM (ANALYZE) {}").format(SQL(", ").join(names))
            self.watched(lambda: self.connection.execute(vacuum))

    def in_transaction(self) -> bool:
        return self.connection.info.transaction_status != TransactionStatus.IDLE

    def begin(self) -> None:
        """Begin to read a snapshot, which fits a serial order of the load's serializable transactions."""
        self.run("BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE")

    def first(self, sql: str, most: int) -> list[Row]:
        return self.connection.execute(sql.encode()).fetchmany(most)

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        return self.connection.execute(sql.encode(), tuple(params) or None).fetchall()

    def end(self) -> None:
        with suppress(psycopg.OperationalError):  # A lost connection has no transaction.
            self.connection.rollback()

    def understood(self, sql: str, names: Sequence[str]) -> None:
        result = self.connection.pgconn.prepare(b"", number_parameters(sql)[0].encode())
        error = error_from_result(result) if result.error_message else None
        if error and error.sqlstate not in UNTYPED:
            raise error


# Connection data for the user's programs: libpq's environment variables, and a URL without the password,
# because it appears in commands and messages.


VARIABLES = {
    option.keyword.decode(): option.envvar.decode()
    for option in Conninfo.get_defaults()
    if option.keyword and option.envvar
}
"""Environment variables of libpq, by keyword of the connection string."""
SECRET = frozenset({"password", "sslpassword", "oauth_client_secret"})


def resolve_dsn(dsn: str) -> dict[str, str]:
    """Connect; return the values of libpq's keywords, also from the environment or a service file."""
    with closing(psycopg.connect(dsn)) as connection:
        return {**connection.info.get_parameters(), "password": connection.info.password}


def directions(parts: Mapping[str, str], schema: str, isolation: str = AS_SET) -> ConnectionInfo:
    """Return the data with which a user's program connects to the schema.

    `parts` are the values of libpq's keywords. `isolation` is the default isolation level.
    """
    options = f"{parts.get('options', '')} -c search_path={schema},pg_catalog".lstrip()
    if isolation != AS_SET:
        level = isolation.replace("-", r"\ ")  # In options, a space within a value needs a backslash.
        options += f" -c default_transaction_isolation={level}"
    whole = {name: value for name, value in parts.items() if value and name != "service"}
    whole |= {"options": options, "application_name": schema}
    variables = {variable: whole.get(name) for name, variable in VARIABLES.items()}
    public = {name: value for name, value in whole.items() if name not in SECRET}
    user, database = (quote(public.pop(name, ""), safe="") for name in ("user", "dbname"))
    address = f"{user}@" if user else ""
    # A host with one of these characters, such as the path of a socket, must be a parameter of the URL.
    if not set(public.get("host", "/")) & set("/@,:"):
        address += ":".join(public.pop(name) for name in ("host", "port") if name in public)
    url = f"postgresql://{address}/{database}?{urlencode(public, quote_via=quote, safe='')}"
    return ConnectionInfo(url, variables, parts.get("password", ""))
