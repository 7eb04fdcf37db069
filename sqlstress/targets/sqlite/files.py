"""The files of a place, as the parent handles them: create, open, fill, read, remove."""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from itertools import chain, islice
from os import SEEK_END, fsync
from typing import TYPE_CHECKING, Any, cast

from sqlstress import sqlite_codes as codes
from sqlstress.errors import EnvironmentFailure
from sqlstress.targets import run_watched
from sqlstress.targets.place import MEANWHILE, Disturbance, Seal
from sqlstress.targets.sqlite.connections import PUT
from sqlstress.targets.sqlite.drivers import Connection, Row, explain, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas

if TYPE_CHECKING:  # a place has all of this, and a worker's needs none of it
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.sqlite.copies import Copy

HELD_OPEN = ("", "-wal", "-shm")
"""Suffixes of the files that a connection to a database keeps open; a rollback journal comes and goes."""
SPARE = "-spare"
"""A WAL that waits for the next trial."""
SUFFIXES = (*HELD_OPEN, "-journal", SPARE)


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
    """Open one file with the case's driver, SQLite's own busy handler and its default settings.

    Raises EnvironmentFailure for what SQLite lacks there, such as space, and for a lock that stays: neither
    says anything of the data.
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
    """Create a file with the case's settings and these tables, and see that the settings were taken."""
    with opened(case, path) as connection:
        pragmas.apply(connection, case.settings)
        for statement in ("BEGIN IMMEDIATE", *definitions, "COMMIT"):
            connection.rows(statement)
        pragmas.check(case.settings, pragmas.read_back(connection, case.settings))


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


# The parent's key-value view of the files: it creates and fills them, and reads them afterwards.


DEFAULT_AUTOCHECKPOINT = 1000
_FRAME_HEADER = 24
_WAL_BUDGET = 128 << 20
"""Bytes of WAL that preloading fills at most, over all buckets."""
_PIECE = 8 << 20
"""Bytes of rows that preloading writes in one transaction, about."""
_BLOCK = 1 << 20
_KEY_BYTES = 24
_CACHE_KIB = 32 << 10

SQL_TYPES = {"int": "INTEGER", "text": "TEXT", "blob": "BLOB"}


def spare_wals(paths: Sequence[Path]) -> None:
    """Give each WAL a second name, by which it outlives the last connection, where the file system can."""
    from os import link

    from sqlstress.system.files import remove

    for path in paths:
        wal, spare = (path.with_name(path.name + suffix) for suffix in ("-wal", SPARE))
        with suppress(OSError):
            remove(spare)
            link(wal, spare)


class SqliteTable:
    """Table of keys and values in each file, and a table of counters."""

    def __init__(
        self,
        case: Case,
        paths: Sequence[Path],
        copies: dict[Any, Any] | None,
        key_type: str,
        value_size: int,
        counters: int,
    ) -> None:
        """`copies` keeps filled files for the next trials; None fills them for each."""
        self._case, self._settings, self._paths, self._copies = case, case.settings, paths, copies
        self._value_size, self._counters = value_size, counters
        self.stays = False
        """Whether the files are for the next trial, too."""
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
        """Fill the files, or make them as they were filled before; each WAL has the size that it works at.

        The last connection to close would delete the WAL: one stays until the trial has been verified.
        """
        from sqlstress.targets.sqlite import copies

        self.release()  # Windows removes nothing that we have open ourselves
        kept, paths = self._copies, self._paths
        if kept is not None and (copy := kept.pop(copies.layout_of(self._case), None)):
            with suppress(OSError):  # then they are filled anew, and SQLite says what is wrong
                self._restore(copy, pulse)
                self.stays = True
                kept[copies.layout_of(self._case)] = copy
                return
            self.release()
        self._discard()
        for path, rows in zip(paths, buckets, strict=True):
            self._idle.append(self.fill_file(path, rows))
            first_write(self._case, path)
            if self._is_wal:
                _checkpoint(self._idle[-1])
            pulse()
        if kept is not None and (taken := copies.take(kept, self._case, paths)):
            self.stays = True
            self.release()
            self._restore(taken, pulse)  # so that the first trial begins like those after it

    def _restore(self, copy: Copy, pulse: Pulse) -> None:
        """Make the files as they were filled, and an idle connection for each."""
        without_wal = copy.restore(self._paths, pulse)
        for path in self._paths:
            self._idle.append(self._idle_on(path))
            if path in without_wal:
                self._grow_wal(path, self._idle[-1])

    def settle(self) -> None:
        """Bring what the WALs hold into the files, to be looked at there. It syncs nothing.

        The idle connections stay, or each that looks would make a WAL and remove it.
        """
        for idle in self._idle:
            with suppress(Exception):  # of any library: who looks will see what is wrong
                idle.rows("PRAGMA wal_checkpoint(PASSIVE)")

    def release(self) -> None:
        """Close what was kept open, last of all connections: that syncs nothing, since nobody needs it to."""
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
        """Create a file, and return an idle connection that has seen the WAL and holds no lock on it.

        It is not measured, so only its checkpoints sync.
        """
        from dataclasses import replace

        hasty = replace(self._settings, synchronous="off", wal_autocheckpoint=0, fullfsync=None)
        with opened(self._case, path) as connection:
            connection.rows("PRAGMA synchronous=off")  # the change to WAL mode syncs, too
            pragmas.apply(connection, hasty)
            # Keys that come in no order would write the same pages again and again.
            connection.rows(f"PRAGMA cache_size=-{_CACHE_KIB}")
            connection.rows(self._definition)
            if self._counters:
                connection.rows("BEGIN IMMEDIATE")
                connection.rows("CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
                numbers = ((number,) for number in range(self._counters))
                connection.run_many("INSERT INTO counter VALUES (?, 0)", numbers)
                connection.rows("COMMIT")
            self._insert(connection, rows)
            # The last page, which nobody writes: if the file is cut off, SQLite does not put it back unseen.
            connection.rows("CREATE TABLE last_page (unused)")
            if self._is_wal:
                self._grow_wal(path, connection)
                _checkpoint(connection)
            return self._idle_on(path)

    def _idle_on(self, path: Path) -> Connection:
        idle = load_driver(self._case.driver).connect(path, self._settings.busy_timeout_ms)
        try:
            if "locking_mode" not in dict(self._settings.pragmas):  # somebody else may hold it for good
                idle.rows("PRAGMA synchronous=off")
                idle.rows("SELECT count(*) FROM sqlite_schema")
        except BaseException:
            idle.close()
            raise
        return idle

    def _insert(self, connection: Connection, rows: Iterable[Row]) -> None:
        """Write the rows piece by piece, so that no WAL grows long and no step takes long."""
        at_once = max(1, _PIECE // (_KEY_BYTES + self._value_size))
        rows = iter(rows)
        for piece, first in enumerate(rows):
            if piece and self._is_wal:
                _checkpoint(connection)
            connection.rows("BEGIN IMMEDIATE")
            connection.run_many(PUT, chain((first,), islice(rows, at_once - 1)))
            connection.rows("COMMIT")

    def _grow_wal(self, path: Path, connection: Connection) -> None:
        """Give the WAL the size that it works at.

        The first fill extends the file and costs several times more than writing over it. What follows
        the last valid frame is nothing to SQLite: a WAL that has begun anew ends in frames of before.
        """
        frames = self._settings.wal_autocheckpoint
        frames = DEFAULT_AUTOCHECKPOINT if frames is None else frames
        page_size = int(connection.rows("PRAGMA page_size")[0][0])
        target = min(frames * (page_size + _FRAME_HEADER), _WAL_BUDGET // self._case.buckets)
        with path.with_name(path.name + "-wal").open("r+b") as file:
            for size in range(file.seek(0, SEEK_END), target, _BLOCK):
                file.write(bytes(min(_BLOCK, target - size)))
            file.flush()
            fsync(file.fileno())


def _checkpoint(connection: Connection) -> None:
    """Empty the WAL of what has not been synced yet, and sync that."""
    connection.rows("PRAGMA synchronous=full")
    connection.rows("PRAGMA wal_checkpoint(RESTART)")
    connection.rows("PRAGMA synchronous=off")


# The databases of a trial as they were when they had been prepared, and what was done to them since.
#
# What a stranger writes into a table is for the proof to find. Here is what the proof can't see: a database
# that went on without its file, one that is locked so that nobody could work, another journal mode, an
# index or a trigger more.


MARKS = ("journal_mode", "schema_version", "user_version", "application_id")
"""What a database says of itself, and no worker changes. Every change of a table, an index or a trigger
raises the schema's version, and so does VACUUM."""
PATIENCE_MS = 1000
"""A lock that is still taken then, when no worker is connected any more, is a stranger's."""


class SqliteSnapshot:
    """The files, and what each said of itself."""

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
        for path, before in self._marks:
            pulse()
            if disturbance := self._changed(path, before):
                return disturbance
        return None

    def _changed(self, path: Path, before: dict[str, str]) -> Disturbance | None:
        try:
            now = self._read_marks(path)
        except Exception as error:
            code = load_driver(self._driver).result_code(error)
            if codes.is_busy(code):
                return Disturbance(_locked(path), "unknown")
            if codes.is_damage(code):
                return Disturbance(f"cannot read {path.name}: {explain(self._driver, error)}")
            raise  # what this machine lacks is nobody's hand
        for name, mark in now.items():
            if mark != before[name]:
                was = f"its {name} was {before[name]} and is {mark}"
                return Disturbance(f"changed {path.name} {MEANWHILE}: {was}", by_outsider=True)
        return None

    def _read_marks(self, path: Path) -> dict[str, str]:
        """Return the marks of a database in which nobody is writing."""
        with closing(load_driver(self._driver).connect(path, PATIENCE_MS)) as connection:
            connection.rows("BEGIN IMMEDIATE")
            marks = {name: str(connection.rows(f"PRAGMA {name}")[0][0]) for name in MARKS}
            connection.rows("ROLLBACK")
            return marks
