"""The files of a store, as the parent handles them: create, fill, examine, remove."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from sqlstress.errors import EnvironmentFailure
from sqlstress.report.case import Case
from sqlstress.system import in_use
from sqlstress.system.pulse import Pulse
from sqlstress.targets.keyvalue import COUNTERS
from sqlstress.targets.sqlite.drivers import Connection, codes, explain, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.drivers.base import Row
from sqlstress.targets.sqlite.keyvalue import PUT
from sqlstress.targets.sqlite.partition import file_names

T = TypeVar("T")

SUFFIXES = ("", "-wal", "-shm", "-journal")
DEFAULT_AUTOCHECKPOINT = 1000
_FRAME_HEADER = 24
_WAL_BUDGET = 128 << 20
"""Bytes of WAL that preloading fills at most, over all buckets."""
_PIECE = 8 << 20
"""Bytes of rows that preloading writes in one transaction, about."""
_KEY_BYTES = 24
_CACHE_KIB = 32 << 10
_TICK_S = 0.05

SQL_TYPES = {"int": "INTEGER", "text": "TEXT", "blob": "BLOB"}


def paths(case: Case, folder: Path) -> list[Path]:
    """Return the database files of a case, by bucket."""
    return [folder / name for name in file_names(case.buckets)]


def remove(case: Case, folder: Path) -> None:
    """Delete the database files of a case and what SQLite puts beside them."""
    for path in paths(case, folder):
        for suffix in SUFFIXES:
            in_use.remove(path.with_name(path.name + suffix))


@contextmanager
def opened(case: Case, path: Path) -> Iterator[Connection]:
    """Open one file with the case's driver, SQLite's own busy handler and its default settings.

    Raises EnvironmentFailure for what SQLite lacks there, such as space: that says nothing of the data.
    """
    driver = load_driver(case.driver)
    try:
        connection = driver.connect(path, case.settings.busy_timeout_ms, None)
        try:
            yield connection
        finally:
            connection.close()
    except Exception as error:
        if codes.is_lack(driver.result_code(error)):
            raise EnvironmentFailure(f"cannot use {path.name}: {explain(case.driver, error)}.") from error
        raise


def create(case: Case, path: Path, rows: Iterable[Row]) -> Connection:
    """Create one bucket's file, fill its table, and leave its WAL at the size that it works at.

    Filling is not what is measured, so only its checkpoints sync. Returns an idle connection, to be
    closed when the workers are connected: the last one to close would delete the WAL.
    """
    hasty = replace(case.settings, synchronous="off", wal_autocheckpoint=0, fullfsync=None)
    with opened(case, path) as connection:
        connection.rows("PRAGMA synchronous=off")  # the change to WAL mode syncs, too
        pragmas.apply(connection, hasty)
        # Keys that come in no order would write the same pages again and again.
        connection.rows(f"PRAGMA cache_size=-{_CACHE_KIB}")
        connection.rows(_table(case))
        if case.spec.update_ratio:
            _create_counters(connection)
        _fill(case, connection, rows)
        # The last page, to which nobody writes: if the file is cut off, SQLite does not put it back unseen.
        connection.rows("CREATE TABLE last_page (unused)")
        if case.settings.journal_mode == "wal":
            _grow_wal(case, path, connection)
            _checkpoint(connection)
        return _idle(case, path)


def _fill(case: Case, connection: Connection, rows: Iterable[Row]) -> None:
    """Write the rows piece by piece, so that no WAL grows long and no step takes long."""
    at_once = max(1, _PIECE // (_KEY_BYTES + case.spec.value_size))
    rows = iter(rows)
    for piece, first in enumerate(rows):
        if piece and case.settings.journal_mode == "wal":
            _checkpoint(connection)
        connection.rows("BEGIN IMMEDIATE")
        connection.run_many(PUT, chain((first,), islice(rows, at_once - 1)))
        connection.rows("COMMIT")


def _checkpoint(connection: Connection) -> None:
    """Empty the WAL of what has not been synced yet, and sync that."""
    connection.rows("PRAGMA synchronous=full")
    connection.rows("PRAGMA wal_checkpoint(RESTART)")
    connection.rows("PRAGMA synchronous=off")


def _idle(case: Case, path: Path) -> Connection:
    """Open a connection that has seen the WAL and holds no lock on it."""
    connection = load_driver(case.driver).connect(path, case.settings.busy_timeout_ms, None)
    if "locking_mode" not in dict(case.settings.pragmas):  # somebody else may hold it for good
        connection.rows("SELECT count(*) FROM sqlite_schema")
    return connection


def create_tables(case: Case, path: Path, definitions: Iterable[str]) -> None:
    """Create a file with the case's settings and these tables, and see that the settings were taken."""
    with opened(case, path) as connection:
        pragmas.apply(connection, case.settings)
        connection.rows("BEGIN IMMEDIATE")
        for definition in definitions:
            connection.rows(definition)
        connection.rows("COMMIT")
        pragmas.check(case.settings, pragmas.read_back(connection, case.settings))


def create_empty(case: Case, path: Path) -> None:
    """Create one bucket's file with an empty table and the case's settings."""
    create_tables(case, path, (_table(case),))


def _table(case: Case) -> str:
    """Return the definition of the table of keys and values."""
    key, value = SQL_TYPES[case.spec.key_type], "INTEGER" if case.spec.value_size == 8 else "BLOB"
    return f"CREATE TABLE kv (key {key} PRIMARY KEY, value {value}) WITHOUT ROWID"


def _create_counters(connection: Connection) -> None:
    connection.rows("BEGIN IMMEDIATE")
    connection.rows("CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
    connection.run_many("INSERT INTO counter VALUES (?, 0)", ((n,) for n in range(COUNTERS)))
    connection.rows("COMMIT")


def _grow_wal(case: Case, path: Path, connection: Connection) -> None:
    # The first fill of a WAL extends the file and costs several times more than writing over it.
    frames = case.settings.wal_autocheckpoint
    frames = DEFAULT_AUTOCHECKPOINT if frames is None else frames
    page_size = int(connection.rows("PRAGMA page_size")[0][0])
    target = min(frames * (page_size + _FRAME_HEADER), _WAL_BUDGET // case.buckets)
    wal = path.with_name(path.name + "-wal")
    version = 0
    while wal.stat().st_size < target:
        for _ in range(16):
            version += 1
            connection.rows(f"PRAGMA user_version={version}")
    if version:
        connection.rows("PRAGMA user_version=0")


def first_write(case: Case, path: Path) -> dict[str, str]:
    """Open one file as a worker does, commit once, and return the settings read back after it."""
    with opened(case, path) as connection:
        pragmas.apply(connection, case.settings)
        connection.rows("PRAGMA user_version=1")
        answers = pragmas.read_back(connection, case.settings)
        pragmas.check(case.settings, answers)
        return answers


def watched(connection: Connection, sql: str, pulse: Pulse) -> list[Row]:
    """Return the rows of a statement that may take long; it is interrupted when `pulse` raises."""
    return run_watched(connection, lambda: connection.rows(sql), pulse)


def run_watched(connection: Connection, task: Callable[[], T], pulse: Pulse) -> T:
    """Return what a task returns that may take long in SQLite; it is interrupted when `pulse` raises.

    It runs in a thread of its own: a signal is heard by the main thread only, and not inside SQLite.
    """
    with ThreadPoolExecutor(1) as executor:
        try:
            answer = executor.submit(task)
        except RuntimeError as error:
            raise EnvironmentFailure(f"{error}: close other programs.") from error
        try:
            while wait([answer], _TICK_S).not_done:
                pulse()
        except BaseException:
            while wait([answer], _TICK_S).not_done:
                connection.interrupt()
            raise
        return answer.result()
