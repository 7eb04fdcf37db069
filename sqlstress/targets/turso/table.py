"""The parent's key-value view of Turso's files: SQLite's own, on tables that Turso can write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sqlstress.system.interrupt import Pulse
from sqlstress.targets.sqlite.files import SqliteTable
from sqlstress.targets.sqlite.place import SqlitePlace
from sqlstress.targets.turso.asked import check_pragmas
from sqlstress.targets.turso.place import TursoPlace


class TursoTable:
    """Makes, fills and reads the files with SQLite; nothing of it is open when a worker comes.

    Whoever has a file open in WAL mode holds a lock on it, with which Turso would not open it.
    """

    def __init__(self, place: TursoPlace, key_type: str, value_size: int, counters: int) -> None:
        self._case = place.case
        sqlite: SqlitePlace = place.sqlite
        self._table = SqliteTable(sqlite, key_type, value_size, counters, rowids=True)

    def create(self, pulse: Pulse) -> None:
        check_pragmas(self._case)
        self._table.create(pulse)

    def fill(self, buckets: Iterable[Iterable[tuple[Any, Any]]], pulse: Pulse) -> None:
        check_pragmas(self._case)
        try:
            self._table.fill(buckets, pulse)
        finally:
            self._table.release()

    def release(self) -> None:
        pass

    def name(self, bucket: int) -> str:
        return self._table.name(bucket)

    def rows(self, bucket: int) -> Iterator[tuple[Any, Any]]:
        return self._table.rows(bucket)

    def counters(self, bucket: int) -> list[tuple[int, Any]]:
        return self._table.counters(bucket)
