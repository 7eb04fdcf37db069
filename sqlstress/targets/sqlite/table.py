"""The parent's key-value view of SQLite files: it creates and fills them, and reads them afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from os import SEEK_END
from pathlib import Path
from typing import Any, cast

from sqlstress.system.pulse import Pulse
from sqlstress.targets.sqlite.drivers import Connection, Row, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.files import first_write, opened
from sqlstress.targets.sqlite.keyvalue import PUT
from sqlstress.targets.sqlite.place import SqlitePlace

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


class SqliteTable:
    """The table of keys and values in each file of a place, and beside it that of the counters."""

    def __init__(
        self, place: SqlitePlace, key_type: str, value_size: int, counters: int, rowids: bool = False
    ) -> None:
        """`rowids`: the table of keys and values has them, for who can write no other."""
        self._place, self._value_size, self._counters = place, value_size, counters
        self._case, self._settings = place.case, place.case.settings
        key, value = SQL_TYPES[key_type], "INTEGER" if value_size == 8 else "BLOB"
        without = "" if rowids else " WITHOUT ROWID"
        self._definition = f"CREATE TABLE kv (key {key} PRIMARY KEY, value {value}){without}"
        self._idle: list[Connection] = []

    def create(self, pulse: Pulse) -> None:
        self._place.create_tables((self._definition,), pulse)

    def fill(self, buckets: Iterable[Iterable[Row]], pulse: Pulse) -> None:
        """Fill the files, and leave each WAL at the size that it works at.

        The last connection to close would delete the WAL: one stays until the workers have theirs.
        """
        self.release()  # Windows removes nothing that we have open ourselves
        self._place.discard()
        for path, rows in zip(self._place.paths, buckets, strict=True):
            self._idle.append(self.fill_file(path, rows))
            first_write(self._case, path)
            pulse()

    def release(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def name(self, bucket: int) -> str:
        return self._place.paths[bucket].name

    def rows(self, bucket: int) -> Iterator[tuple[Any, Any]]:
        with self._place.opened(bucket) as connection:
            yield from cast(Iterator[tuple[Any, Any]], connection.iterate("SELECT key, value FROM kv"))

    def counters(self, bucket: int) -> list[tuple[int, Any]]:
        with self._place.opened(bucket) as connection:
            return [(number, n) for number, n in connection.rows("SELECT id, n FROM counter ORDER BY id")]

    def fill_file(self, path: Path, rows: Iterable[Row]) -> Connection:
        """Create a file, and return an idle connection. It is not measured, so only its checkpoints sync."""
        hasty = replace(self._settings, synchronous="off", wal_autocheckpoint=0, fullfsync=None)
        with opened(self._case, path) as connection:
            connection.rows("PRAGMA synchronous=off")  # the change to WAL mode syncs, too
            pragmas.apply(connection, hasty)
            # Keys that come in no order would write the same pages again and again.
            connection.rows(f"PRAGMA cache_size=-{_CACHE_KIB}")
            connection.rows(self._definition)
            if self._counters:
                self._create_counters(connection)
            self._insert(connection, rows)
            # The last page, which nobody writes: if the file is cut off, SQLite does not put it back unseen.
            connection.rows("CREATE TABLE last_page (unused)")
            if self._is_wal:
                self._grow_wal(path, connection)
                _checkpoint(connection)
            return self._open_idle(path)

    @property
    def _is_wal(self) -> bool:
        return self._settings.journal_mode == "wal"

    def _create_counters(self, connection: Connection) -> None:
        connection.rows("BEGIN IMMEDIATE")
        connection.rows("CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        connection.run_many("INSERT INTO counter VALUES (?, 0)", ((n,) for n in range(self._counters)))
        connection.rows("COMMIT")

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
        wal = path.with_name(path.name + "-wal")
        with wal.open("r+b") as file:
            for size in range(file.seek(0, SEEK_END), target, _BLOCK):
                file.write(bytes(min(_BLOCK, target - size)))

    def _open_idle(self, path: Path) -> Connection:
        """Open a connection that has seen the WAL and holds no lock on it."""
        connection = load_driver(self._case.driver).connect(path, self._settings.busy_timeout_ms, None)
        if "locking_mode" not in dict(self._settings.pragmas):  # somebody else may hold it for good
            connection.rows("SELECT count(*) FROM sqlite_schema")
        return connection


def _checkpoint(connection: Connection) -> None:
    """Empty the WAL of what has not been synced yet, and sync that."""
    connection.rows("PRAGMA synchronous=full")
    connection.rows("PRAGMA wal_checkpoint(RESTART)")
    connection.rows("PRAGMA synchronous=off")
