"""Whether files are still those that they were: looked at from outside, without opening them.

A process that works on a file does not see that its name has gone to another one: SQLite goes on with
a deleted database as if nothing had happened, as fast as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sqlstress.targets.sqlite.partition import file_names

HELD_OPEN = ("", "-wal", "-shm")
"""Suffixes of the files that a connection to a database keeps open; a rollback journal comes and goes."""


def held_open(folder: Path, buckets: int) -> Iterator[Path]:
    """Yield what a process holds open that is connected to this many databases, as far as it is there."""
    return (folder / f"{name}{suffix}" for name in file_names(buckets) for suffix in HELD_OPEN)


class Seal:
    """Files as they were when it was made. One that was not there then is none of its business."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._files = [(path, found) for path in paths if (found := _identity(path))]

    def broken(self) -> str | None:
        """Say which file is another one now, or gone; None when none is."""
        for path, before in self._files:
            now = _identity(path)
            if now != before:
                return f"{path.name} was {'replaced by another file' if now else 'deleted'}"
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and the number of a file; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
