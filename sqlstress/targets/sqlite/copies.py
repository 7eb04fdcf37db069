"""Copies of a case's prepared files for later trials: copying is much faster than filling.
A case is one combination of options, and a trial is one run of a case. All trials start with equal files. A
copy has the databases in memory. The WALs stay on the disk under a second name (`files.spare_wals`), because
overwriting a WAL is faster than extending it.
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
"""Maximum memory of all copies of all cases together, in bytes."""
_WAL_HEADER = 32
_SYNCS = 8
"""Number of files that are synced at the same time. A disk can serve several syncs at once."""


class Copy:
    """Copy of a case's filled files. `add_copy` creates it in one trial, and later trials restore it."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.databases = [path.read_bytes() for path in paths]
        self.size = sum(map(len, self.databases))
        self.wals = [_size_or_zero(_with_suffix(path, "-wal")) for path in paths]
        """Size of each database's WAL, in bytes, such as [4152352]; 0 if the database has no WAL."""
        self.seal = Seal(paths)
        """Identities of the files, to notice if another program has replaced one."""

    def restore(self, paths: Sequence[Path], pulse: Pulse) -> list[Path]:
        """Restore all files. Return the databases whose WAL the caller must extend to its old size.

        For these databases, the last trial left no WAL of the right size. Call it while no process is
        connected.
        """
        without_wal = []
        if self.seal.broken():
            for path in paths:
                remove(path)
        for path, data, wal_bytes in zip(paths, self.databases, self.wals, strict=True):
            for suffix in ("-wal", "-shm", "-journal"):
                remove(_with_suffix(path, suffix))
            _overwrite(path, data)
            pulse()
            if wal_bytes and not _reuse_wal(path, wal_bytes):
                without_wal.append(path)
        _sync_all(paths)
        self.seal = Seal(paths)
        return without_wal


def layout_key(case: Case) -> Case:
    """Return the key of a case's copy: the case without options that do not affect the files."""
    return replace(case, concurrency=1, arrivals=None, ops=None, duration_s=0.0, warmup_s=0.0, repeat=1)


def add_copy(copies: dict[Any, Any], case: Case, paths: Sequence[Path]) -> Copy | None:
    """Add a Copy of a case's files to `copies` and return it; None if the files are larger than MOST.

    `copies` has a Copy for each `layout_key`. The oldest copies are removed to make room. Call this function
    after a checkpoint, because the copy has only the size of the WAL.
    """
    size = sum(path.stat().st_size for path in paths)
    if size > MOST:
        return None
    while copies and size + sum(copy.size for copy in copies.values()) > MOST:
        copies.pop(next(iter(copies)))  # The first item is the oldest copy.
    copy = copies[layout_key(case)] = Copy(paths)
    return copy


def _overwrite(path: Path, data: bytes) -> None:
    # A new file would get other blocks on the disk.
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644), "wb") as file:
        file.write(data)
        file.truncate()


def _sync_all(paths: Sequence[Path]) -> None:
    try:
        with ThreadPoolExecutor(_SYNCS) as pool:
            list(pool.map(_sync, paths))
    except RuntimeError:  # The system allows no more threads.
        for path in paths:
            _sync(path)


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        getattr(os, "fdatasync", os.fsync)(file.fileno())


def _reuse_wal(path: Path, size: int) -> bool:
    """Give the last trial's WAL (suffix SPARE) the suffix -wal again, and return whether this succeeded.

    The WAL must have `size` bytes and no other hard link.
    """
    spare = _with_suffix(path, SPARE)
    try:
        status = spare.lstat()
        if status.st_size != size or status.st_nlink != 1:
            return False
        with spare.open("r+b") as file:
            file.write(bytes(_WAL_HEADER))  # Without a header, SQLite ignores all frames.
        spare.rename(_with_suffix(path, "-wal"))
    except OSError:
        return False
    return True


def _with_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size_or_zero(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
