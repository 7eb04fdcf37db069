"""Copies of a case's prepared files for later trials: copying is much faster than filling.

A copy has the databases in memory. The WALs stay on the disk under a second name (`files.spare_wals`). All
trials start with equal files, and overwriting a WAL is faster than extending it.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlstress.system.files import remove
from sqlstress.targets.place import Seal
from sqlstress.targets.sqlite.files import SPARE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse

MOST = 64 << 20
"""Maximum size of all copies in memory together, in bytes."""
_WAL_HEADER = 32
_SYNCS = 8
"""Number of files that are synced at the same time."""


class Copy:
    """A copy of the prepared files of a case, one database per bucket."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.databases = [path.read_bytes() for path in paths]
        self.size = sum(map(len, self.databases))
        self.wals = [_size_or_zero(_with_suffix(path, "-wal")) for path in paths]
        """Size of each WAL, in bytes; 0 if the database has no WAL."""
        self.seal = Seal(paths)
        """Identities of the files, to notice if another program has replaced one."""

    def restore(self, paths: Sequence[Path], pulse: Pulse) -> list[Path]:
        """Restore all files; return the paths of databases whose WAL from the last trial is not usable.

        Call it while no process is connected.
        """
        without_wal = []
        if self.seal.broken():
            for path in paths:
                remove(path)
        for path, data, wal_bytes in zip(paths, self.databases, self.wals, strict=True):
            for suffix in ("-wal", "-shm", "-journal"):
                remove(_with_suffix(path, suffix))
            _write(path, data)
            pulse()
            if wal_bytes and not _reuse(path, wal_bytes):
                without_wal.append(path)
        _sync_all(paths)
        self.seal = Seal(paths)
        return without_wal


def layout_key(case: Case) -> Case:
    """Return the key of a case's copy: the case without the options that do not affect the files."""
    return replace(case, concurrency=1, arrivals=None, ops=None, duration_s=0.0, warmup_s=0.0, repeat=1)


def add_copy(copies: dict[Any, Any], case: Case, paths: Sequence[Path]) -> Copy | None:
    """Copy a case's files into `copies` and return the copy; None if the files are larger than MOST.

    Remove the oldest copies to make room. Call it after a checkpoint: the copy has only the size of the WAL.
    """
    size = sum(path.stat().st_size for path in paths)
    if size > MOST:
        return None
    while copies and size + sum(copy.size for copy in copies.values()) > MOST:
        copies.pop(next(iter(copies)))  # The first item is the oldest copy.
    copy = copies[layout_key(case)] = Copy(paths)
    return copy


def _write(path: Path, data: bytes) -> None:
    """Overwrite a file in place: a new file would get other blocks on the disk."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644), "wb") as file:
        file.write(data)
        file.truncate()


def _sync_all(paths: Sequence[Path]) -> None:
    """Sync files in parallel: the disk can serve several syncs at once."""
    try:
        with ThreadPoolExecutor(_SYNCS) as pool:
            list(pool.map(_sync, paths))
    except RuntimeError:  # The system allows no more threads.
        for path in paths:
            _sync(path)


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        getattr(os, "fdatasync", os.fsync)(file.fileno())


def _reuse(path: Path, size: int) -> bool:
    """Rename the last trial's WAL from SPARE to -wal, and erase its header, which invalidates all frames.

    Return False if this fails, if the WAL's size is not `size`, or if the WAL has another hard link.
    """
    spare = _with_suffix(path, SPARE)
    try:
        status = spare.lstat()
        if status.st_size != size or status.st_nlink != 1:
            return False
        with spare.open("r+b") as file:
            file.write(bytes(_WAL_HEADER))
        spare.rename(_with_suffix(path, "-wal"))
    except OSError:
        return False
    return True


def _with_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size_or_zero(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
