"""Stores with something in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlstress.report.case import Case
from sqlstress.targets.sqlite import files
from sqlstress.experiments.kv.partition import bucket_of


def create(case: Case, folder: Path, rows: Mapping[Any, Any]) -> None:
    """Create the files of a case and put each row where it belongs."""
    for bucket, path in enumerate(files.paths(case, folder)):
        inside = ((key, value) for key, value in rows.items() if bucket_of(key, case.buckets) == bucket)
        files.create(case, path, inside).close()


def contents(case: Case, folder: Path, sql: str = "SELECT key, value FROM kv") -> list[dict[Any, Any]]:
    """Return what lies in each file, read without the store."""
    found: list[dict[Any, Any]] = []
    for path in files.paths(case, folder):
        with files.opened(case, path) as connection:
            found.append(dict(connection.rows(sql)))
    return found


@contextmanager
def locked(case: Case, path: Path) -> Iterator[None]:
    """Hold the write lock of a file.

    With the case's own driver: two SQLite libraries in one process don't see each other's POSIX locks,
    and closing a file in one of them drops those of the other.
    """
    with files.opened(case, path) as connection:
        connection.rows("BEGIN IMMEDIATE")
        yield
        connection.rollback()
