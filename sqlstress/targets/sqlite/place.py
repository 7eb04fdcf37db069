"""The class of a place in SQLite: one process's access to the data of a case.
A case is one combination of options (`report.case.Case`). Its data is divided into buckets, with one database
file per bucket, such as kv_0.db. The parent is the process that starts the workers.

Modules that only the parent needs are imported inside functions, so that workers do not load them.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from sqlstress import sqlite_codes as codes
from sqlstress.errors import error_message
from sqlstress.targets import run_watched
from sqlstress.targets.place import TRIAL_FOLDER, Place, Seal
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.connections import SqliteClient, SqliteStore, native_store
from sqlstress.targets.sqlite.drivers import Connection, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.files import SqliteSnapshot, SqliteTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlstress.report import Check, Space, WorkerResult
    from sqlstress.report.case import Case
    from sqlstress.report.results import Where
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.native import NativeStore
    from sqlstress.targets.place import Definition
    from sqlstress.targets.sqlite.drivers import Row
    from sqlstress.targets.sqlite.shim import ShimRecorder
    from sqlstress.targets.sqlite.wal_observer import WalObserver
    from sqlstress.targets.views import ConnectionInfo, DatabaseError, T


class SqlitePlace(Place):
    """One process's access to the database files of a case, in the parent or a worker."""

    stores: Literal[True] = True

    def __init__(self, case: Case, where: Path) -> None:
        self.case, self.where = case, where
        self.paths = files.paths(case, where)
        """Paths of the database files. The index is the bucket's number."""
        self._table: SqliteTable | None = None
        self._watch: ShimRecorder | None = None

    def watch(self, trace: Any, process: int) -> ShimRecorder:
        from sqlstress.targets.sqlite.shim import ShimRecorder

        words, processes = trace
        self._watch = ShimRecorder(self.case.driver, words, process, processes)
        return self._watch

    def pause(self, schedule: Sequence[int]) -> None:
        from sqlstress.targets.sqlite import shim

        shim.begin_pauses(self.case.driver, schedule)

    def trace(self, processes: int) -> tuple[Any, int]:
        from sqlstress.system.sharing import shared_array
        from sqlstress.targets.sqlite.shim import size

        return shared_array("q", size(processes)), processes

    def account(self, trace: Any, workers: Sequence[WorkerResult]) -> Where | None:
        from sqlstress.targets.sqlite.where import account

        words, processes = trace
        return account(words, processes, workers)

    # Methods for a worker.

    def client(self, worker: int) -> SqliteClient:
        return SqliteClient(self.case, self.paths, worker, self._watch)

    def keyvalue(self, worker: int, begin: str, sample: Any) -> SqliteStore:
        return SqliteStore(self.client(worker), begin)

    @contextmanager
    def bare_call(self) -> Iterator[Callable[[], object]]:
        with closing(self.client(0)) as client:
            select = client.connect(0).scalar("SELECT 1")
            yield lambda: select(())

    def native(self, worker: int, begin: str) -> NativeStore:
        return native_store(self.client(worker), begin)

    def seal(self) -> Seal:
        suffixes: Sequence[str] = files.OPEN_SUFFIXES
        if self.case.settings.journal_mode == pragmas.KEPT:
            # The user's programs choose the journal mode, and each opens and closes connections. Leave out
            # -wal and -shm: in WAL mode SQLite deletes them whenever the last connection closes.
            suffixes = suffixes[:1]
        return Seal(path.with_name(path.name + suffix) for path in self.paths for suffix in suffixes)

    # Methods for the parent.

    def opened(self, bucket: int = 0) -> AbstractContextManager[Connection]:
        """Open the database file of a bucket with SQLite's default settings, for the parent."""
        return files.opened(self.case, self.paths[bucket])

    def wal_observer(self) -> WalObserver:
        from sqlstress.targets.sqlite.wal_observer import WalObserver

        return WalObserver(self.paths[0])

    def table(self, key_type: str, value_size: int, counters: int) -> SqliteTable:
        self._table = SqliteTable(self.case, self.paths, self.copies, key_type, value_size, counters)
        return self._table

    def proving(self, plan: dict[str, Any], pulse: Pulse) -> AbstractContextManager[Callable[[], int | None]]:
        from sqlstress.targets.sqlite.connections import check_in_parallel

        return check_in_parallel(self.case, self.paths, plan, pulse)

    def create_tables(self, definitions: Iterable[str], pulse: Pulse) -> None:
        """Replace all files by new files with the case's settings and the CREATE statements `definitions`."""
        definitions = tuple(definitions)
        self.discard()
        for path in self.paths:
            pulse()
            files.create_tables(self.case, path, definitions)

    def schema(self) -> list[Definition]:
        from sqlstress.targets.sqlite.integrity import schema

        return schema(self.case, self.paths[0])

    def snapshot(self, pulse: Pulse) -> SqliteSnapshot:
        return SqliteSnapshot(self.case, self.paths, pulse)

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        return pragmas.differences(self.case.settings, effective)

    def integrity(self, level: str, pulse: Pulse) -> Check:
        from sqlstress.targets.sqlite.integrity import integrity_check

        return integrity_check(self.case, (*self.paths, *self._user_databases()), level, pulse)

    def _user_databases(self) -> list[Path]:
        from sqlstress.targets.sqlite.integrity import databases_in

        return databases_in(self.where, self.paths) if self.where.name == TRIAL_FOLDER else []

    def redefined(self, created: Sequence[Definition], pulse: Pulse) -> Check:
        # SQLite's integrity check does not notice a changed definition.
        from sqlstress.report.results import CheckCounter
        from sqlstress.targets.place import check_schemas
        from sqlstress.targets.sqlite.integrity import schema

        def schemas() -> Iterator[tuple[str, Sequence[Definition]]]:
            for path in self.paths:
                pulse()
                yield f"the schema of {path.name}", schema(self.case, path)

        return check_schemas(CheckCounter("schema"), created, schemas())

    def space(self, pulse: Pulse) -> Space:
        """Return the space that each b-tree takes in the first bucket's file."""
        from sqlstress.targets.sqlite.space import measure_space

        return measure_space(self.case, self.paths[0], pulse)

    def discard(self) -> None:
        if self.where.name == TRIAL_FOLDER:
            from sqlstress.system.files import empty

            empty(self.where)
        elif not (self._table and self._table.stays):
            files.remove(self.paths)

    # Methods for the user's SQL and programs.

    def directions(self) -> ConnectionInfo:
        from sqlstress.targets.views import ConnectionInfo

        return ConnectionInfo(str(self.paths[0].absolute()), {})

    def clear(self) -> None:
        self.discard()

    def is_filled(self) -> bool:
        return (self.paths[0].is_file() and self.paths[0].stat().st_size > 0) or bool(self._user_databases())

    def settle(self, pulse: Pulse) -> None:
        """Do nothing: the user program has chosen the settings, and the data stays as the program left it."""

    def rows_written(self, pulse: Pulse) -> None:
        return None

    def reader(self) -> SqliteReader:
        return SqliteReader(self.case.driver, self.client(0).connect(0))

    @contextmanager
    def reading(self, pulse: Pulse) -> Iterator[SqliteReader]:
        with self.opened() as connection:
            yield SqliteReader(self.case.driver, connection)

    @contextmanager
    def making(self, pulse: Pulse) -> Iterator[SqliteMaker]:
        settings = self.case.settings
        with self.opened() as connection:
            pragmas.apply(connection, settings)
            connection.rows("PRAGMA synchronous=OFF")
            yield SqliteMaker(self.case.driver, connection, pulse)
            pragmas.apply(connection, settings)
            connection.rows(f"PRAGMA user_version={connection.rows('PRAGMA user_version')[0][0]}")
            pragmas.check(settings, pragmas.read_back(connection, settings))
            # RESTART does not shrink the WAL, so that workers need not extend the WAL again.
            connection.rows("PRAGMA wal_checkpoint(RESTART)")


class _ParentConnection:
    """A connection of the parent. `answer` converts an exception of SQLite into a `DatabaseError`."""

    def __init__(self, driver: str, connection: Connection) -> None:
        self._driver, self._connection = driver, connection

    def answer(self, error: BaseException) -> DatabaseError | None:
        from sqlstress.targets.views import BUSY, INTERRUPTED, LACKING, REFUSED, DatabaseError

        code, text = load_driver(self._driver).result_code(error), error_message(error).removesuffix(".")
        if code is None:
            return None
        if codes.is_busy(code):
            return DatabaseError(BUSY, text)
        if code == codes.INTERRUPT:
            return DatabaseError(INTERRUPTED, text)
        if advice := codes.advice(code):
            return DatabaseError(LACKING, f"{text} ({advice})")
        return DatabaseError(REFUSED, text)


class SqliteReader(_ParentConnection):
    """A connection with which the parent reads a user's data."""

    def __init__(self, driver: str, connection: Connection) -> None:
        super().__init__(driver, connection)
        self.end, self.interrupt, self.close = connection.rollback, connection.interrupt, connection.close
        connection.rows("PRAGMA query_only=ON")

    def begin(self) -> None:
        self._connection.rows("BEGIN")

    def first(self, sql: str, most: int) -> list[Row]:
        return list(islice(self._connection.iterate(sql), most))

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        return self._connection.rows(sql, tuple(params))

    def understood(self, sql: str, names: Sequence[str]) -> None:
        self._connection.reads(f"EXPLAIN {sql}")(dict.fromkeys(names))


class SqliteMaker(_ParentConnection):
    """A connection with which the parent creates the data of a trial, without syncs."""

    def __init__(self, driver: str, connection: Connection, pulse: Pulse) -> None:
        super().__init__(driver, connection)
        self._pulse = pulse
        self.in_transaction = connection.in_transaction

    def run(self, sql: str) -> None:
        self._connection.rows(sql)

    def watched(self, task: Callable[[], T]) -> T:
        return run_watched(self._connection, task, self._pulse)
