"""Data of a case on a PostgreSQL server: a new schema with two tables per bucket."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from decimal import Decimal
from functools import cached_property
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote, urlencode

import psycopg
from psycopg.adapt import AdaptersMap, PyFormat, Transformer
from psycopg.errors import UndefinedParameter, error_from_result
from psycopg.pq import Conninfo, ExecStatus, Format, TransactionStatus
from psycopg.sql import SQL, Identifier
from psycopg.types.numeric import Int4, Int8, Int8BinaryDumper
from psycopg.types.string import TextLoader

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.options.sql_text import POSTGRES
from sqlstress.report.case import Case
from sqlstress.report.results import Check, CheckCounter
from sqlstress.system.interrupt import Pulse
from sqlstress.target import AS_SET
from sqlstress.targets import place as interface
from sqlstress.targets import run_watched
from sqlstress.targets.postgres import dialect, own_schema
from sqlstress.targets.postgres.dialect import dsn_of, requested, schema_of
from sqlstress.targets.postgres.own_schema import Connection, Owner, connect, end_sessions, opened
from sqlstress.targets.views import ConnectionInfo, Operation, Row, T, TableView

SQL_TYPES = {"int": "bigint", "text": "text", "blob": "bytea"}
ROWS_PER_PULSE = 10_000
# Number of rows written; NULL on servers before version 15, which update their counts with a delay.
_WRITTEN = """SELECT CASE WHEN current_setting('server_version_num')::int >= 150000
    THEN coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint END
FROM pg_stat_all_tables WHERE schemaname = %s"""
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
ORDER BY 1, 2, 3"""
GET = "SELECT value FROM kv_{} WHERE key = $1"
PAIR = "SELECT key, value FROM kv_{} WHERE key IN ($1, $2)"
PUT = "INSERT INTO kv_{} (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
COUNT = "SELECT n FROM counter_{} WHERE id = $1"
SET_COUNT = "UPDATE counter_{} SET n = $1 WHERE id = $2"


class PostgresPlace(interface.Place):
    """A place (see `Place`) in PostgreSQL: a schema whose name derives from the case's data folder."""

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
        """End all sessions of workers, also killed workers. Yield a connection. Raises EnvironmentFailure."""
        with opened(dsn_of(self.case), f"cannot read {self.name}", own_schema.RECOVERY_S) as connection:
            end_sessions(connection, self.name, pulse)
            connection.execute(f"SET lock_timeout = '{own_schema.LOCKED_S:g}s'".encode())
            yield connection

    def query(self, sql: str, pulse: Pulse = lambda: None) -> list[Row]:
        """Return the rows of a query, whose single parameter (%s) is the name of the schema."""
        with self.read(pulse) as connection:
            return connection.execute(sql.encode(), (self.name,)).fetchall()

    def table(self, key_type: str, value_size: int, counters: int) -> PostgresTable:
        return PostgresTable(self, key_type, value_size, counters)

    def schema(self, pulse: Pulse = lambda: None) -> Sequence[Row]:
        rows = self.query(_DEFINITIONS, pulse)
        return [(f"the {kind} of {name}", definition) for kind, name, definition in rows]

    def snapshot(self, pulse: Pulse) -> PostgresSnapshot:
        return PostgresSnapshot(self, pulse)

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        for setting, value in requested(self.case):
            name = setting.removeprefix("default_")
            if effective.get(name) not in (None, value):
                yield name, value, effective[name]

    def redefined(self, created: Sequence[Row], pulse: Pulse) -> Check:
        schemas = {"the schema": self.schema(pulse)}
        return interface.check_schemas(CheckCounter("schema"), created, schemas.items())

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
        return cast(int | None, self.query(_WRITTEN, pulse)[0][0])

    def reader(self) -> PostgresSession:
        return PostgresSession(connect(dsn_of(self.case), f"cannot read {self.name}"), self.name)

    @contextmanager
    def reading(self, pulse: Pulse) -> Iterator[PostgresSession]:
        with self.read(pulse) as connection:
            yield PostgresSession(connection, self.name, pulse)

    @contextmanager
    def making(self, pulse: Pulse) -> Iterator[PostgresSession]:
        """Create the schema, yield a session to fill it, and vacuum, so that no autovacuum runs later.

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
    """The parent's access to the key-value data: two tables per bucket, for rows and for counters."""

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
                with session.connection.cursor().copy(copy_in) as copy:
                    copy.set_types(self._types)
                    for number, row in enumerate(rows):
                        if number % ROWS_PER_PULSE == 0:
                            pulse()
                        copy.write_row(row)

    def name(self, bucket: int) -> str:
        return f"kv_{bucket}"

    def rows(self, bucket: int) -> Iterator[tuple[Any, Any]]:
        copy_out = f"COPY {self._place.name}.kv_{bucket} TO STDOUT (FORMAT BINARY)".encode()
        with self._place.read() as connection, connection.cursor().copy(copy_out) as copy:
            copy.set_types(self._types)
            yield from cast(Iterator[tuple[Any, Any]], copy.rows())

    def counters(self, bucket: int) -> list[tuple[int, Any]]:
        with self._place.read() as connection:
            query = f"SELECT id, n FROM {self._place.name}.counter_{bucket} ORDER BY id".encode()
            return cast(list[tuple[int, Any]], connection.execute(query).fetchall())


class PostgresSnapshot(interface.Snapshot):
    """Record of the tables' identities before a trial, to detect a dropped or replaced table."""

    def __init__(self, place: PostgresPlace, pulse: Pulse) -> None:
        self._place, self._tables = place, place.query(_IDENTITIES, pulse)

    def changed(self, pulse: Pulse) -> interface.Disturbance | None:
        tables = {name: identity for name, *identity in self._place.query(_IDENTITIES, pulse)}
        for name, *identity in self._tables:
            if tables.get(name) != identity:
                how = "replaced by another table" if name in tables else "dropped"
                return interface.Disturbance(f"{name} was {how} {interface.DURING_MEASUREMENT}", "failed")
        return None


class PostgresStore(interface.ClientStore):
    """A worker's key-value store, whose lists of operations (see `Store`) have one function per bucket."""

    def __init__(self, case: Case, schema: str, begin: str) -> None:
        """Connect. If `begin` is "immediate", updates read with FOR UPDATE, and batches sort their rows."""
        client = PostgresClient(case, schema).connect()
        super().__init__(client)
        if client.rows("SELECT current_schema()") != [(schema,)]:
            self.close()
            raise EnvironmentFailure(f"cannot open {schema}: this schema does not exist.")
        for bucket in range(case.buckets):
            self._add_bucket(client, bucket, begin == "immediate")

    def _add_bucket(self, client: PostgresClient, bucket: int, locks: bool) -> None:
        statements = (GET, PAIR, PUT, COUNT + " FOR UPDATE" * locks, SET_COUNT, "BEGIN", "COMMIT")
        get, pair, put, count_of, set_count, begin, commit = (
            client.prepare(sql.format(bucket)) for sql in statements
        )

        def value_of(key: tuple[Any]) -> Any:
            rows = get(key)
            return rows[0][0] if rows else None

        def replace_all(rows: Iterable[tuple[Any, Any]]) -> None:
            begin()
            # If all transactions lock rows in the same order, there are no deadlocks.
            for row in sorted(rows, key=itemgetter(0)) if locks else rows:
                put(row)
            commit()

        def increment(number: tuple[int]) -> None:
            begin()
            ((value,),) = count_of(number)
            set_count((value + 1, *number))
            commit()

        self.gets.append(client.retried(value_of))
        self.pairs.append(client.retried(pair))
        self.puts.append(client.retried(put))
        self.batches.append(client.retried(replace_all))
        self.updates.append(client.retried(increment))


ADAPTERS = AdaptersMap(psycopg.adapters)
"""psycopg's type conversions for workers. All values except int, float and bool are read as text."""
ADAPTERS.register_dumper(int, Int8BinaryDumper)
for _type in psycopg.postgres.types:
    ADAPTERS.register_loader(_type.array_oid, TextLoader)
    if _type.name not in ("bool", "int2", "int4", "int8", "oid", "float4", "float8"):
        ADAPTERS.register_loader(_type.oid, TextLoader)


def _check(result: Any) -> Any:
    if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        return result
    raise error_from_result(result)


class PostgresSession:
    """A connection in autocommit mode, whose statements find the case's tables (search path)."""

    def __init__(self, connection: Connection, schema: str, pulse: Pulse = lambda: None) -> None:
        self.connection, self._schema, self._pulse = connection, schema, pulse
        self.close, self.answer, self.end = connection.close, dialect.answer, self.rollback
        self.run(f"SET search_path = {schema}, pg_catalog; SET application_name = {schema}")

    def interrupt(self) -> None:
        with suppress(psycopg.Error):
            self.connection.cancel_safe(timeout=5.0)

    def run(self, sql: str) -> None:
        self.connection.execute(sql.encode())

    def watched(self, task: Callable[[], T]) -> T:
        return run_watched(self, task, self._pulse)

    def vacuum(self) -> None:
        tables = self.rows(f"SELECT relname {_RELATIONS} AND relkind IN ('r', 'm')", (self._schema,))
        names = [Identifier(self._schema, table) for (table,) in sorted(tables)]
        if names:
            vacuum = SQL("VACUUM (ANALYZE) {}").format(SQL(", ").join(names))
            self.watched(lambda: self.connection.execute(vacuum))

    def in_transaction(self) -> bool:
        return self.connection.info.transaction_status != TransactionStatus.IDLE

    def begin(self) -> None:
        """Begin a read-only transaction on a serializable snapshot."""
        self.run("BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE")

    def first(self, sql: str, most: int) -> list[Row]:
        return self.connection.execute(sql.encode()).fetchmany(most)

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        return self.connection.execute(sql.encode(), tuple(params) or None).fetchall()

    def rollback(self) -> None:
        with suppress(psycopg.OperationalError):  # A lost connection has no transaction.
            self.connection.rollback()

    def understood(self, sql: str, names: Sequence[str]) -> None:
        try:
            _check(self.connection.pgconn.prepare(b"", number_parameters(sql)[0].encode()))
        except psycopg.Error as error:
            if error.sqlstate not in dialect.UNTYPED:
                raise


class PostgresClient(PostgresSession):
    """A worker's connection, which counts busy errors. Serialization failures count as BUSY_SNAPSHOT."""

    def __init__(self, case: Case, schema: str) -> None:
        self.busy = self.busy_snapshot = 0
        self._numbers = count()
        self._case, self._schema = case, schema

    def connect(self, bucket: int = 0) -> PostgresClient:
        connection = connect(dsn_of(self._case), f"cannot open {self._schema}", context=ADAPTERS)
        super().__init__(connection, self._schema)
        timeout_ms = max(1, self._case.settings.busy_timeout_ms)  # 0 would mean to wait without a limit.
        for name, value in (*requested(self._case), ("lock_timeout", timeout_ms)):
            self.run(f"SET {name} = '{value}'")
        return self

    def prepare(self, sql: str) -> Callable[..., Any]:
        """Return a function that runs a prepared statement with libpq, twice as fast as a psycopg cursor."""
        pgconn, name = self.connection.pgconn, str(next(self._numbers)).encode()
        _check(pgconn.prepare(name, sql.encode()))
        values, formats = Transformer(self.connection), [PyFormat.BINARY] * sql.count("$")

        def run(params: Sequence[Any] = ()) -> list[Row]:
            encoded: Any = values.dump_sequence(params, formats)
            result = _check(pgconn.exec_prepared(name, encoded, values.formats, Format.BINARY))
            values.set_pgresult(result)
            return values.load_rows(0, result.ntuples, tuple)

        return run

    def runs(self, sql: str) -> Callable[[Mapping[str, Any]], Any]:
        """Return a function that takes values by name, and runs a statement with parameters like :name."""
        text, names = number_parameters(sql)
        cursor: Any = psycopg.RawCursor(self.connection)

        def run(values: Mapping[str, Any]) -> Any:
            try:
                params = [_as_literal(values[name]) for name in names]
            except KeyError as error:
                raise UndefinedParameter(f"the variable :{error.args[0]} has no value") from None
            return cursor.execute(text, params, prepare=True)

        return run

    reads = runs

    def names(self, sql: str) -> Callable[[Mapping[str, Any]], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        run = self.runs(sql)

        def read(values: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
            cursor = run(values)
            return [column.name for column in cursor.description], cursor.fetchall()

        return read

    def retried(self, call: Operation) -> Operation:
        """Return an operation that repeats `call` after a busy error, until the busy timeout."""
        clock, timeout_s = time.perf_counter, self._case.settings.busy_timeout_ms / 1000

        def attempt_until_done(params: Any) -> Any:
            started_s = clock()
            while True:
                try:
                    return call(params)
                except Exception as error:
                    self.rollback()
                    if clock() - started_s >= timeout_s or not self.was_busy(error):
                        raise

        return attempt_until_done

    def was_busy(self, error: BaseException) -> bool:
        code = getattr(error, "sqlstate", None)
        self.busy_snapshot += code == dialect.SERIALIZATION_FAILURE
        self.busy += code in dialect.BUSY and code != dialect.SERIALIZATION_FAILURE
        return code in dialect.BUSY

    def busy_counts(self) -> tuple[int, int]:
        return self.busy, self.busy_snapshot

    def effective(self) -> dict[str, str]:
        settings = ", ".join(f"current_setting({name!r})" for name in dialect.REPORTED)
        (values,) = self.rows(f"SELECT {settings}")
        return dict(zip(dialect.REPORTED, values, strict=True))


def number_parameters(sql: str) -> tuple[str, list[str]]:
    """Return a statement with $1, $2, … for its :name parameters, and the names, such as ["a", "b"]."""
    text, names = "", list[str]()
    for token in POSTGRES.tokens(sql):
        is_name = token.kind == "parameter" and token.text[0] == ":"
        names += [token.text[1:]] * is_name
        text += f"${len(names)}" if is_name else token.text
    return text, names


def _as_literal(value: Any) -> Any:
    """Convert a number so that the server gives it the type of an SQL literal, such as numeric for 1.5."""
    if isinstance(value, float):
        return Decimal(str(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Int4(value) if -(2**31) <= value < 2**31 else Int8(value)
    return value


VARIABLES = {
    option.keyword.decode(): option.envvar.decode()
    for option in Conninfo.get_defaults()
    if option.keyword and option.envvar
}
"""Environment variable of libpq for each keyword of a connection string, such as {"port": "PGPORT"}."""
SECRET = frozenset({"password", "sslpassword", "oauth_client_secret"})


def resolve_dsn(dsn: str) -> dict[str, str]:
    """Connect; return connection parameters by keyword, from the DSN, environment and service file."""
    with closing(psycopg.connect(dsn)) as connection:
        return {**connection.info.get_parameters(), "password": connection.info.password}


def directions(parts: Mapping[str, str], schema: str, isolation: str = AS_SET) -> ConnectionInfo:
    """Return the URL and environment variables for a user's program to connect to the schema.

    `parts` has the values of libpq's keywords. The URL has no password, because messages show the URL.
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
