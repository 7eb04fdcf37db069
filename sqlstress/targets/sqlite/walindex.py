"""What the wal-index of a database says, read by a process that holds no connection to it.

A WAL's size tells nothing of what the WAL holds, since the file is used again after a checkpoint. Its
index, the file with the suffix -shm, tells. On POSIX a process that opens a database's files and closes
them drops the locks of its own connections: a worker must never call what is here.

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
"""The two headers, nBackfill and aReadMark; the bytes that SQLite locks lie behind."""
_ATTEMPTED_AT = 128
"""Where nBackfillAttempted stands: frames that a checkpoint has begun to copy."""
_TRIES = 20
_PAUSE_S = 0.001


class WalIndex(NamedTuple):
    """What a WAL holds at one moment."""

    frames: int
    """Frames in use: a checkpoint that nobody hinders has so many to copy, or has copied them (mxFrame)."""
    checkpointed: int
    """How many of them are in the database file already (nBackfill)."""
    salt: int
    """One more, modulo 2^32, each time that the WAL begins anew: frames of another salt are others."""
    page_size: int
    """Size of the page in a frame, in bytes."""
    commits: int = 0
    """One more, modulo 2^32, with each commit that wrote (iChange)."""
    marks: tuple[int, ...] = ()
    """Frames that a reader of each of the five read locks can see (aReadMark)."""


def read(database: Path) -> WalIndex | None:
    """Return what the wal-index says; None when it is not there, or not to be read at this moment."""
    try:
        with (
            database.with_name(f"{database.name}-shm").open("rb", buffering=0) as file,
            # Only what is mapped is sure to be what the others have mapped.
            mmap.mmap(file.fileno(), LENGTH, access=mmap.ACCESS_READ) as words,
        ):
            return _settled(words)
    except (OSError, ValueError):
        return None  # missing, or too short to be mapped


def is_mid_checkpoint(database: Path) -> bool:
    """Return whether a checkpoint was under way when the last process died that had the wal-index open.

    Nobody else may have it open: without locks, and without the sums of a header that may be half written.
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


def _settled(words: mmap.mmap) -> WalIndex | None:
    """Return what the words say when nobody is changing them."""
    before = None
    for _ in range(_TRIES):
        found = parse(words[:LENGTH])
        # nBackfill lies outside the sums: it belongs to a header if the WAL did not begin anew meanwhile,
        # and it goes back to 0 just after the header has.
        if before and found and found.salt == before.salt and before.checkpointed <= before.frames:
            return before
        if found is None:
            time.sleep(_PAUSE_S)  # whoever is changing it may need this processor
        before = found
    return None


def parse(words: bytes) -> WalIndex | None:
    """Return what the first LENGTH bytes say; None when the two headers differ or their sums are wrong."""
    if len(words) < LENGTH:
        return None
    header, copy = words[: _HEADER.size], words[_HEADER.size : 2 * _HEADER.size]
    (checkpointed,) = _BACKFILLED.unpack_from(words, 2 * _HEADER.size)
    version, commits, is_init, page_size, frames, salt, *sums = _HEADER.unpack(header)
    summed = _SUMMED.unpack_from(header)
    first = second = 0
    for one, other in zip(summed[::2], summed[1::2], strict=True):
        first = (first + one + second) & 0xFFFF_FFFF
        second = (second + other + first) & 0xFFFF_FFFF
    if header != copy or version != _VERSION or not is_init or sums != [first, second]:
        return None
    return WalIndex(
        frames,
        checkpointed,
        int.from_bytes(salt, "big"),  # it stands there as in the WAL, with its highest byte first
        page_size if page_size > 1 else 65_536,  # which stands there as 1
        commits,
        _MARKS.unpack_from(words, 2 * _HEADER.size + _BACKFILLED.size),
    )
