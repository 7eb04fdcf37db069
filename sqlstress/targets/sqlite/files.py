"""The parent's operations on the database files of a case: create, fill, open, read, remove.
The parent is the process that starts the workers. A case is one combination of options, and a trial is one
run of a case. The data is divided into buckets, with one file per bucket, such as kv_0.db.
"""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from itertools import chain, islice
from os import SEEK_END, fsync
from typing import TYPE_CHECKING, Any, cast

from sqlstress import sqlite_codes as codes
from sqlstress.errors import EnvironmentFailure
from sqlstress.targets import run_watched
from sqlstress.targets.place import DURING_MEASUREMENT, Disturbance, Seal
from sqlstress.targets.sqlite.connections import PUT
from sqlstress.targets.sqlite.drivers import Connection, Row, explain, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas

if TYPE_CHECKING:  # A worker imports this module, too, and needs none of these names.
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.sqlite.copies import Copy

OPEN_SUFFIXES = ("", "-wal", "-shm")
"""Suffixes of the files that a connection keeps open. A rollback journal is not kept open."""
SPARE = "-spare"
"""Suffix of a WAL's second name, a hard link.

When SQLite deletes the name with -wal, the file remains under this name, and the next trial uses it again.
"""
SUFFIXES = (*OPEN_SUFFIXES, "-journal", SPARE)


def paths(case: Case, folder: Path) -> list[Path]:
    names = ["kv.db"] if case.buckets == 1 else [f"kv_{bucket}.db" for bucket in range(case.buckets)]
    return [folder / name for name in names]


def remove(paths: Iterable[Path]) -> None:
    from sqlstress.system import files

    for path in paths:
        for suffix in SUFFIXES:
            files.remove(path.with_name(path.name + suffix))


@contextmanager
def opened(case: Case, path: Path) -> Iterator[Connection]:
    """Open a database file with the case's driver and busy timeout, but without its other settings.

    Raises EnvironmentFailure for a lack of resources, such as disk space, and for another program's lock.
    Other errors of SQLite are raised unchanged.
    """
    driver = load_driver(case.driver)
    try:
        with closing(driver.connect(path, case.settings.busy_timeout_ms)) as connection:
            yield connection
    except Exception as error:
        code = driver.result_code(error)
        if codes.is_busy(code):
            raise EnvironmentFailure(f"{_locked(path)}.") from error
        if codes.is_lack(code):
            raise EnvironmentFailure(f"cannot use {path.name}: {explain(case.driver, error)}.") from error
        raise


def _locked(path: Path) -> str:
    return f"{path.name} is locked by another program: end it and measure again"


def create_tables(case: Case, path: Path, definitions: Iterable[str]) -> None:
    """Create a file with the CREATE statements `definitions`. Raises an error if a setting has no effect."""
    with opened(case, path) as connection:
        pragmas.apply(connection, case.settings)
        for statement in ("BEGIN IMMEDIATE", *definitions, "COMMIT"):
            connection.rows(statement)
        pragmas.check(case.settings, pragmas.read_back(connection, case.settings))


def first_write(case: Case, path: Path) -> dict[str, str]:
    """Commit once with the case's settings, and check that all of them are in effect.

    Return the values in effect, such as {"page_size": "4096"}. Raises UsageError or EnvironmentFailure.
    """
    with opened(case, path) as connection:
        pragmas.apply(connection, case.settings)
        connection.rows("PRAGMA user_version=1")
        answers = pragmas.read_back(connection, case.settings)
        pragmas.check(case.settings, answers)
        return answers


def watched(connection: Connection, sql: str, pulse: Pulse) -> list[Row]:
    """Return the rows of a slow statement. Interrupt the statement if `pulse` raises."""
    return run_watched(connection, lambda: connection.rows(sql), pulse)


# The parent's view of the key-value data


DEFAULT_AUTOCHECKPOINT = 1000
_FRAME_HEADER = 24
_WAL_BUDGET = 128 << 20
"""Maximum total size of a case's WALs, which are extended with zeros before a trial, in bytes."""
_TRANSACTION_BYTES = 8 << 20
"""Approximate size of the rows that each transaction inserts when a file is filled, in bytes."""
_BLOCK = 1 << 20
_KEY_BYTES = 24
_CACHE_KIB = 32 << 10

SQL_TYPES = {"int": "INTEGER", "text": "TEXT", "blob": "BLOB"}


def spare_wals(paths: Sequence[Path]) -> None:
    """Give each WAL a second name (SPARE), because the last connection deletes the WAL when it closes."""
    from os import link

    from sqlstress.system.files import remove

    for path in paths:
        wal, spare = (path.with_name(path.name + suffix) for suffix in ("-wal", SPARE))
        with suppress(OSError):  # Some file systems have no hard links.
            remove(spare)
            link(wal, spare)


class SqliteTable:
    """The parent's access to the key-value data. Each file has the tables kv and, if needed, counter."""

    def __init__(
        self,
        case: Case,
        paths: Sequence[Path],
        copies: dict[Any, Any] | None,
        key_type: str,
        value_size: int,
        counters: int,
    ) -> None:
        """`copies` keeps copies of filled files for later trials (see `Place.copies`), or is None.

        `value_size` is the size of a value in bytes. `counters` is the number of counters per file, or 0.
        """
        self._case, self._settings, self._paths, self._copies = case, case.settings, paths, copies
        self._value_size, self._counters = value_size, counters
        self.stays = False
        """Whether the files remain on the disk for the next trial."""
        key, value = SQL_TYPES[key_type], "INTEGER" if value_size == 8 else "BLOB"
        self._definition = f"CREATE TABLE kv (key {key} PRIMARY KEY, value {value}) WITHOUT ROWID"
        self._is_wal = self._settings.journal_mode == "wal"
        self._idle: list[Connection] = []

    def create(self, pulse: Pulse) -> None:
        self._discard()
        for path in self._paths:
            pulse()
            create_tables(self._case, path, (self._definition,))

    def _discard(self) -> None:
        if not self.stays:
            remove(self._paths)

    def fill(self, buckets: Iterable[Iterable[Row]], pulse: Pulse) -> None:
        """Create and fill the files, or restore an earlier trial's copy. `buckets` has each file's rows.

        An idle connection per file stays open until `release`, so that SQLite does not delete the WAL.
        """
        from sqlstress.targets.sqlite import copies

        self.release()  # Windows cannot remove a file that this process has open.
        by_layout, paths = self._copies, self._paths
        if by_layout is not None and (copy := by_layout.pop(copies.layout_key(self._case), None)):
            # After an OSError, fill the files below. If its cause persists, SQLite then reports an error.
            with suppress(OSError):
                self._restore(copy, pulse)
                self.stays = True
                by_layout[copies.layout_key(self._case)] = copy
                return
            self.release()
        self._discard()
        for path, rows in zip(paths, buckets, strict=True):
            self._idle.append(self.fill_file(path, rows))
            first_write(self._case, path)
            if self._is_wal:
                _checkpoint(self._idle[-1])
            pulse()
        if by_layout is not None and (new_copy := copies.add_copy(by_layout, self._case, paths)):
            self.stays = True
            self.release()
            # The files are restored so that the first trial starts in the same way as later trials.
            self._restore(new_copy, pulse)

    def _restore(self, copy: Copy, pulse: Pulse) -> None:
        without_wal = copy.restore(self._paths, pulse)
        for path in self._paths:
            self._idle.append(self._open_idle(path))
            if path in without_wal:
                self._grow_wal(path, self._idle[-1])

    def settle(self) -> None:
        """Copy the WALs into the databases before the checks. No fsync is made (synchronous is off)."""
        # The idle connections stay open, so that the checks do not create and delete a WAL.
        for idle in self._idle:
            with suppress(Exception):  # Ignore any error: the checks report its cause.
                idle.rows("PRAGMA wal_checkpoint(PASSIVE)")

    def release(self) -> None:
        """Close the idle connections of `fill`. Call it after all other connections were closed.

        SQLite then makes no fsync, because the idle connections have synchronous=off.
        """
        if self._idle and self.stays:
            spare_wals(self._paths)
        while self._idle:
            self._idle.pop().close()

    def name(self, bucket: int) -> str:
        return self._paths[bucket].name

    def rows(self, bucket: int) -> Iterator[tuple[Any, Any]]:
        with opened(self._case, self._paths[bucket]) as connection:
            yield from cast("Iterator[tuple[Any, Any]]", connection.iterate("SELECT key, value FROM kv"))

    def counters(self, bucket: int) -> list[tuple[int, Any]]:
        with opened(self._case, self._paths[bucket]) as connection:
            return [(number, n) for number, n in connection.rows("SELECT id, n FROM counter ORDER BY id")]

    def fill_file(self, path: Path, rows: Iterable[Row]) -> Connection:
        """Create a file with `rows`. Return an idle connection, which keeps the WAL open without a lock."""
        from dataclasses import replace

        fill_settings = replace(self._settings, synchronous="off", wal_autocheckpoint=0, fullfsync=None)
        with opened(self._case, path) as connection:
            # Set this first: with any other value, the change to WAL mode would sync the file.
            connection.rows("PRAGMA synchronous=off")
            pragmas.apply(connection, fill_settings)
            # With SQLite's smaller default cache, keys in random order would write pages repeatedly.
            connection.rows(f"PRAGMA cache_size=-{_CACHE_KIB}")
            connection.rows(self._definition)
            if self._counters:
                connection.rows("BEGIN IMMEDIATE")
                connection.rows("CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
                numbers = ((number,) for number in range(self._counters))
                connection.run_many("INSERT INTO counter VALUES (?, 0)", numbers)
                connection.rows("COMMIT")
            self._insert(connection, rows)
            # This empty table has the last page of the file. If another program truncates the file, SQLite
            # notices that the page is missing, because no worker writes the page again.
            connection.rows("CREATE TABLE last_page (unused)")
            if self._is_wal:
                self._grow_wal(path, connection)
                _checkpoint(connection)
            return self._open_idle(path)

    def _open_idle(self, path: Path) -> Connection:
        idle = load_driver(self._case.driver).connect(path, self._settings.busy_timeout_ms)
        try:
            # With locking_mode=exclusive, the connection that filled the file may still hold a lock.
            if "locking_mode" not in dict(self._settings.pragmas):
                idle.rows("PRAGMA synchronous=off")
                idle.rows("SELECT count(*) FROM sqlite_schema")
        except BaseException:
            idle.close()
            raise
        return idle

    def _insert(self, connection: Connection, rows: Iterable[Row]) -> None:
        rows_per_transaction = max(1, _TRANSACTION_BYTES // (_KEY_BYTES + self._value_size))
        rows = iter(rows)
        for number, first in enumerate(rows):
            if number and self._is_wal:
                _checkpoint(connection)  # Keep the WAL small.
            connection.rows("BEGIN IMMEDIATE")
            connection.run_many(PUT, chain((first,), islice(rows, rows_per_transaction - 1)))
            connection.rows("COMMIT")

    def _grow_wal(self, path: Path, connection: Connection) -> None:
        """Extend the WAL with zeros, because workers overwrite a WAL several times faster than extend it."""
        frames = self._settings.wal_autocheckpoint
        frames = DEFAULT_AUTOCHECKPOINT if frames is None else frames
        page_size = int(connection.rows("PRAGMA page_size")[0][0])
        # When the WAL has this size, SQLite checkpoints it and writes from its start again.
        target = min(frames * (page_size + _FRAME_HEADER), _WAL_BUDGET // self._case.buckets)
        with path.with_name(path.name + "-wal").open("r+b") as file:
            for size in range(file.seek(0, SEEK_END), target, _BLOCK):
                # SQLite ignores all bytes after the last valid frame.
                file.write(bytes(min(_BLOCK, target - size)))
            file.flush()
            fsync(file.fileno())


def _checkpoint(connection: Connection) -> None:
    """Copy the WAL into the database, sync the database, and turn syncs off again for further writes."""
    connection.rows("PRAGMA synchronous=full")
    connection.rows("PRAGMA wal_checkpoint(RESTART)")
    connection.rows("PRAGMA synchronous=off")


# Changes by other programs that the check of the rows cannot see, such as a changed journal mode


WATCHED_PRAGMAS = ("journal_mode", "schema_version", "user_version", "application_id")
"""Pragmas that show changes by other programs, because no worker changes their values.

For example, SQLite increments schema_version at each change of the schema.
"""
LOCK_TIMEOUT_MS = 1000
"""Maximum wait for a lock, in ms, to read WATCHED_PRAGMAS while no worker is connected."""


class SqliteSnapshot:
    """Record of the files' identities and WATCHED_PRAGMAS before a trial, to detect later changes."""

    def __init__(self, case: Case, paths: Sequence[Path], pulse: Pulse) -> None:
        self._driver = case.driver
        self._paths = paths
        self.seal()
        self._marks: list[tuple[Path, dict[str, str]]] = []
        for path in paths:
            pulse()
            try:
                self._marks.append((path, self._read_marks(path)))
            except Exception as error:
                reason = explain(self._driver, error)
                raise EnvironmentFailure(f"cannot read {path.name}: {reason}.") from error

    def seal(self) -> None:
        self._seal = Seal(self._paths)

    def exchanged(self) -> str | None:
        return self._seal.exchanged()

    def changed(self, pulse: Pulse) -> Disturbance | None:
        for path, marks in self._marks:
            pulse()
            if disturbance := self._disturbance(path, marks):
                return disturbance
        return None

    def _disturbance(self, path: Path, recorded: dict[str, str]) -> Disturbance | None:
        try:
            current = self._read_marks(path)
        except Exception as error:
            code = load_driver(self._driver).result_code(error)
            if codes.is_busy(code):
                return Disturbance(_locked(path), "unknown")
            if codes.is_damage(code):
                return Disturbance(f"cannot read {path.name}: {explain(self._driver, error)}")
            raise  # A lack of memory, for example, is no change by another program.
        for name, mark in current.items():
            if mark != recorded[name]:
                change = f"its {name} was {recorded[name]} and is {mark}"
                return Disturbance(f"another program changed {path.name} {DURING_MEASUREMENT}: {change}")
        return None

    def _read_marks(self, path: Path) -> dict[str, str]:
        with closing(load_driver(self._driver).connect(path, LOCK_TIMEOUT_MS)) as connection:
            connection.rows("BEGIN IMMEDIATE")
            marks = {name: str(connection.rows(f"PRAGMA {name}")[0][0]) for name in WATCHED_PRAGMAS}
            connection.rows("ROLLBACK")
            return marks
