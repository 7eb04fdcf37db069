"""The state of a WAL, read from the wal-index by a process that has no connection to the database.

The size of a WAL does not show its content, because the file is reused after a checkpoint. Its index, the
file with the suffix -shm, does. On POSIX a process that opens and closes a database's files drops the locks
of its own connections, so a worker must use OpenIndex, and nothing else of this module.

Source: https://www.sqlite.org/walformat.html, "The WAL-Index File Format"
"""

from __future__ import annotations

import mmap
import time
from pathlib import Path
from struct import Struct
from typing import NamedTuple

_VERSION = 3_007_000
_HEADER = Struct("=I4xIBxHI12x4s4x2I")
"""Native byte order: iVersion, iChange, isInit, szPage, mxFrame, aSalt[0], aCksum[2]; there is a copy."""
_SUMMED = Struct("=10I")
_BACKFILLED = Struct("=I")
_MARKS = Struct("=5I")
LENGTH = 2 * _HEADER.size + _BACKFILLED.size + _MARKS.size
"""Size of the two headers, nBackfill and aReadMark, in bytes. The bytes that SQLite locks come after them."""
_ATTEMPTED_AT = 128
"""Offset of nBackfillAttempted, the number of frames that a checkpoint has begun to copy."""
_TRIES = 20
_PAUSE_S = 0.001


class WalIndex(NamedTuple):
    """The state of a WAL at one moment."""

    frames: int
    """Number of valid frames (mxFrame), with those that a checkpoint has already copied."""
    checkpointed: int
    """Number of these frames that are already in the database file (nBackfill)."""
    salt: int
    """First salt, which grows by 1 modulo 2^32 each time the WAL restarts. It identifies its frames."""
    page_size: int
    """Size of the page in a frame, in bytes."""
    commits: int = 0
    """Counter of commits that wrote, modulo 2^32 (iChange)."""
    marks: tuple[int, ...] = ()
    """Number of frames that a reader can see, for each of the five read locks (aReadMark)."""


def read(database: Path) -> WalIndex | None:
    """Return the state of the WAL; None if the wal-index is missing, or not readable at this moment."""
    try:
        with (
            database.with_name(f"{database.name}-shm").open("rb", buffering=0) as file,
            # Other processes map the file. Only a mapping is sure to show their changes.
            mmap.mmap(file.fileno(), LENGTH, access=mmap.ACCESS_READ) as words,
        ):
            return _read_consistent(words)
    except (OSError, ValueError):
        return None  # missing, or too short to be mapped


class OpenIndex:
    """The wal-index of a database for a process that has a connection to it."""

    def __init__(self, database: Path) -> None:
        """Raise OSError or ValueError if there is no complete index."""
        self._file = database.with_name(f"{database.name}-shm").open("rb", buffering=0)
        self._words = mmap.mmap(self._file.fileno(), LENGTH, access=mmap.ACCESS_READ)

    def read(self) -> WalIndex | None:
        """Return the content of the index; None if it keeps changing."""
        return _read_consistent(self._words)

    def close(self) -> None:
        """Close the file: on POSIX after the process's last connection, on Windows before it."""
        self._words.close()
        self._file.close()


def is_mid_checkpoint(database: Path) -> bool:
    """Return whether the last process that had the wal-index open died during a checkpoint.

    Call it while no process has the wal-index open: it reads without locks, and without checking the
    checksums, because the header may be half written.
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


def _read_consistent(words: mmap.mmap) -> WalIndex | None:
    """Return a consistent state, read twice without a lock; None after _TRIES failures."""
    previous = None
    for _ in range(_TRIES):
        current = parse(words[:LENGTH])
        # The checksums do not cover nBackfill. It belongs to the header if the WAL did not restart between
        # the two reads; a restart sets it to 0 just after it writes the header.
        if (
            previous
            and current
            and current.salt == previous.salt
            and previous.checkpointed <= previous.frames
        ):
            return previous
        if current is None:
            time.sleep(_PAUSE_S)  # the process that is writing the header may need this processor
        previous = current
    return None


def parse(words: bytes) -> WalIndex | None:
    """Parse the first LENGTH bytes; return None if the two headers differ or their checksums are wrong."""
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
        int.from_bytes(salt, "big"),  # big-endian, as in the WAL
        page_size if page_size > 1 else 65_536,  # 65,536 is stored as 1
        commits,
        _MARKS.unpack_from(words, 2 * _HEADER.size + _BACKFILLED.size),
    )
