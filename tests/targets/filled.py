"""Stores filled with rows."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.experiments.kv.keys import bucket_of
from sqlstress.report.case import Case
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.connections import SqliteStore
from sqlstress.targets.sqlite.drivers import Connection
from sqlstress.targets.sqlite.files import SqliteTable
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.pulses import nothing


def table_of(case: Case, folder: Path) -> SqliteTable:
    """Return the parent's key-value view of a case's files."""
    counters = COUNTERS if case.spec.update_ratio else 0
    return SqlitePlace(case, folder).table(case.spec.key_type, case.spec.value_size, counters)


def open_store(case: Case, folder: Path, worker: int = 1) -> SqliteStore:
    """Open a worker's key-value view of a case's files."""
    return SqlitePlace(case, folder).keyvalue(worker, case.spec.begin, None)


def create(case: Case, folder: Path, rows: Mapping[Any, Any]) -> None:
    """Create the files of a case and put each row into its bucket."""
    buckets: list[list[tuple[Any, Any]]] = [[] for _ in range(case.buckets)]
    for key, value in rows.items():
        buckets[bucket_of(key, case.buckets)].append((key, value))
    table = table_of(case, folder)
    table.fill(buckets, nothing)
    table.release()


def create_file(case: Case, path: Path, rows: Iterable[tuple[Any, Any]]) -> Connection:
    """Create a file with these rows; return the connection that keeps its WAL open."""
    return table_of(case, path.parent).fill_file(path, rows)


def contents(case: Case, folder: Path, sql: str = "SELECT key, value FROM kv") -> list[dict[Any, Any]]:
    """Return the rows of each file, read without the store."""
    rows_by_file: list[dict[Any, Any]] = []
    for path in files.paths(case, folder):
        with files.opened(case, path) as connection:
            rows_by_file.append(dict(connection.rows(sql)))
    return rows_by_file


def exchange(path: Path) -> None:
    """Replace a file by a copy with the same bytes."""
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


@contextmanager
def locked(case: Case, path: Path) -> Iterator[None]:
    """Hold the write lock of a file.

    Use the case's own driver: two SQLite libraries in one process don't see each other's POSIX locks,
    and closing a file in one of them drops those of the other.
    """
    with files.opened(case, path) as connection:
        connection.rows("BEGIN IMMEDIATE")
        yield
        connection.rollback()
