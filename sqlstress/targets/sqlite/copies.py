"""The files of a case as they were prepared, kept for the next trials: filling takes far longer than copying.

A database is kept in memory. Its WAL, which is larger and holds nothing yet, stays on the disk and is used
again: the last connection deletes it, so it gets a second name before (`files.spare_wals`). Each trial finds
the same bytes in the database, a WAL of the same size without a valid frame, and nothing else.
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
"""Bytes of databases that are kept in memory at most, of all layouts together."""
_WAL_HEADER = 32
_SYNCS = 8
"""Files that are synced at once."""


class Copy:
    """The files of a layout, by bucket."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.databases = [path.read_bytes() for path in paths]
        self.size = sum(map(len, self.databases))
        self.wals = [_size(_beside(path, "-wal")) for path in paths]
        """Bytes of each WAL; 0: there is none."""
        self.seal = Seal(paths)
        """Which files are ours, so that nobody else's are written over."""

    def restore(self, paths: Sequence[Path], pulse: Pulse) -> list[Path]:
        """Make all files as they were when they were taken; return those whose WAL is to be made anew.

        No process may be connected.
        """
        lacking = []
        if self.seal.broken():
            for path in paths:
                remove(path)
        for path, data, wal_bytes in zip(paths, self.databases, self.wals, strict=True):
            for suffix in ("-wal", "-shm", "-journal"):
                remove(_beside(path, suffix))
            _write(path, data)
            pulse()
            if wal_bytes and not _reuse(path, wal_bytes):
                lacking.append(path)
        _sync_all(paths)
        self.seal = Seal(paths)
        return lacking


def layout_of(case: Case) -> Case:
    """Return what cases have in common whose files are alike, whoever works on them and for how long."""
    return replace(case, concurrency=1, arrivals=None, ops=None, duration_s=0.0, warmup_s=0.0, repeat=1)


def take(copies: dict[Any, Any], case: Case, paths: Sequence[Path]) -> Copy | None:
    """Keep the files of a case, whose WALs hold nothing, and return them; None where there is no room."""
    size = sum(path.stat().st_size for path in paths)
    if size > MOST:
        return None
    while copies and size + sum(copy.size for copy in copies.values()) > MOST:
        copies.pop(next(iter(copies)))  # the oldest
    copy = copies[layout_of(case)] = Copy(paths)
    return copy


def _write(path: Path, data: bytes) -> None:
    """Write over what is there, so that the blocks stay where they are."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644), "wb") as file:
        file.write(data)
        file.truncate()


def _sync_all(paths: Sequence[Path]) -> None:
    """Sync files side by side: the disk serves several at once."""
    try:
        with ThreadPoolExecutor(_SYNCS) as pool:
            list(pool.map(_sync, paths))
    except RuntimeError:  # no further thread is allowed
        for path in paths:
            _sync(path)


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        getattr(os, "fdatasync", os.fsync)(file.fileno())


def _reuse(path: Path, size: int) -> bool:
    """Let the spare be the WAL, with void frames, if there is one of this size that nobody else has."""
    spare = _beside(path, SPARE)
    try:
        status = spare.lstat()
        if status.st_size != size or status.st_nlink != 1:
            return False
        with spare.open("r+b") as file:
            file.write(bytes(_WAL_HEADER))
        spare.rename(_beside(path, "-wal"))
    except OSError:
        return False
    return True


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
