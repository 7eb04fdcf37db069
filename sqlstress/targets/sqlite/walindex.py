"""The state of a WAL, read from the wal-index without SQLite.
The wal-index (suffix -shm) has the number of valid frames of a WAL. The size of the WAL does not show this
number, because SQLite overwrites the WAL after a checkpoint.

A process with connections may use only OpenIndex of this module: on POSIX, closing a database's file drops
the locks of the process's connections.

Source: https://www.sqlite.org/walformat.html, "The WAL-Index File Format"
"""

from __future__ import annotations

import mmap
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from struct import Struct
from typing import NamedTuple

_VERSION = 3_007_000
_HEADER = Struct("=I4xIBxHI12x4s4x2I")
"""Header of a wal-index, in native byte order, with SQLite's names of the fields.

The fields are iVersion, iChange, isInit, szPage, mxFrame, aSalt[0] and aCksum. A second copy of the
header follows in the file.
"""
_SUMMED = Struct("=10I")
_BACKFILLED = Struct("=I")
_MARKS = Struct("=5I")
LENGTH = 2 * _HEADER.size + _BACKFILLED.size + _MARKS.size
"""Size of the part of a wal-index that is read, in bytes: two headers, nBackfill and aReadMark."""
_ATTEMPTED_AT = 128
"""Offset of nBackfillAttempted, the number of frames that a checkpoint has begun to copy."""
_TRIES = 20
_PAUSE_S = 0.001


class WalIndex(NamedTuple):
    """State of a WAL at one moment, as `read` returns it, with SQLite's names in parentheses."""

    frames: int
    """Number of valid frames (mxFrame), including frames that a checkpoint has already copied."""
    checkpointed: int
    """Number of frames that checkpoints have already copied into the database file (nBackfill)."""
    salt: int
    """First salt of the WAL (aSalt[0]), a number that changes each time the WAL restarts."""
    page_size: int
    """Size of a database page, in bytes."""
    commits: int = 0
    """Counter of write transactions, modulo 2^32 (iChange)."""
    marks: tuple[int, ...] = ()
    """For each of the 5 read locks, the number of frames that its readers can see (aReadMark)."""


def read(database: Path) -> WalIndex | None:
    """Return the state of the WAL; None if the wal-index is missing, or keeps changing.

    Call it only in a process without a connection to the database: closing -shm drops the POSIX locks.
    """
    try:
        with closing(OpenIndex(database)) as index:
            return index.read()
    except (OSError, ValueError):
        return None  # The file is missing, or too short to be mapped.


class OpenIndex:
    """An open wal-index, for repeated reads by a process with connections to the database."""

    def __init__(self, database: Path) -> None:
        """Open the wal-index. Raises OSError or ValueError if it is missing or incomplete."""
        self._file = database.with_name(f"{database.name}-shm").open("rb", buffering=0)
        self._words = None
        # On Windows only a mapping is sure to show changes that other processes make in their mappings.
        # Elsewhere SIGBUS would end this process if another process truncated a mapped file.
        if sys.platform == "win32":
            self._words = mmap.mmap(self._file.fileno(), LENGTH, access=mmap.ACCESS_READ)

    def read(self) -> WalIndex | None:
        """Return the state of the WAL; None if the wal-index keeps changing or was truncated."""
        return _read_consistent(self._bytes)

    def _bytes(self) -> bytes:
        if self._words is not None:
            return self._words[:LENGTH]
        self._file.seek(0)
        return self._file.read(LENGTH)

    def close(self) -> None:
        """Close the file. Call it after this process's connections were closed (on Windows, before)."""
        if self._words is not None:
            self._words.close()
        self._file.close()


def is_mid_checkpoint(database: Path) -> bool:
    """Return whether the last process that had the wal-index open died during a checkpoint.

    If so, nBackfillAttempted is larger than nBackfill. Call it while no process has the wal-index open. The
    checksums are ignored, because the dead process may have written only a part of the header.
    """
    try:
        with database.with_name(f"{database.name}-shm").open("rb") as file:
            words = file.read(_ATTEMPTED_AT + _BACKFILLED.size)
    except OSError:
        return False
    if len(words) < _ATTEMPTED_AT + _BACKFILLED.size:
        return False
    (done,) = _BACKFILLED.unpack_from(words, 2 * _HEADER.size)
    (attempted,) = _BACKFILLED.unpack_from(words, _ATTEMPTED_AT)
    return bool(attempted > done)


def wal_bytes(database: Path) -> int:
    try:
        return database.with_name(f"{database.name}-wal").stat().st_size
    except OSError:
        return 0


def _read_consistent(read_bytes: Callable[[], bytes]) -> WalIndex | None:
    """Read the state, without a lock, until two reads agree. Return None after _TRIES reads."""
    previous = None
    for _ in range(_TRIES):
        current = parse(read_bytes())
        # Compare two reads, because the checksums do not cover nBackfill: a restart of the WAL sets nBackfill
        # to 0 just after it has written the header.
        if (
            previous
            and current
            and current.salt == previous.salt
            and previous.checkpointed <= previous.frames
        ):
            return previous
        if current is None:
            # Sleep, because the process that is writing the header may need this processor.
            time.sleep(_PAUSE_S)
        previous = current
    return None


def parse(words: bytes) -> WalIndex | None:
    """Return the state in the first LENGTH bytes of a wal-index; None if these bytes are inconsistent."""
    if len(words) < LENGTH:
        return None
    header, copy = words[: _HEADER.size], words[_HEADER.size : 2 * _HEADER.size]
    (checkpointed,) = _BACKFILLED.unpack_from(words, 2 * _HEADER.size)
    version, commits, is_init, page_size, frames, salt, *sums = _HEADER.unpack(header)
    summed = _SUMMED.unpack_from(header)
    first = second = 0
    for even, odd in zip(summed[::2], summed[1::2], strict=True):
        first = (first + even + second) & 0xFFFF_FFFF
        second = (second + odd + first) & 0xFFFF_FFFF
    if header != copy or version != _VERSION or not is_init or sums != [first, second]:
        return None
    return WalIndex(
        frames,
        checkpointed,
        int.from_bytes(salt, "big"),  # The salt is big-endian, as in the WAL.
        page_size if page_size > 1 else 65_536,  # 65,536 is stored as 1.
        commits,
        _MARKS.unpack_from(words, 2 * _HEADER.size + _BACKFILLED.size),
    )
