"""What one sync of a 4 KiB write costs in a folder, with the call that SQLite would use."""

from __future__ import annotations

import errno
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count, cycle
from math import ceil
from pathlib import Path

from sqlstress.errors import EnvironmentFailure
from sqlstress.report import SyncCost
from sqlstress.system.files import for_message, reason, remove

BLOCK = 4096
LEAST = 8
"""Samples of each kind that are taken however slow they are."""
MOST = 200
"""Samples of each kind that are enough."""
BUDGET_NS = 150_000_000
"""What the samples of one kind after the first LEAST may take together."""

Sync = Callable[[int], None]


def primitives(system: str, fullfsync: bool) -> tuple[str, ...]:
    """Return the calls with which SQLite syncs a file on a system: the first one that works there.

    Source: SQLite's os_unix.c, full_fsync(), with HAVE_FDATASYNC as configure sets it; os_win.c, winSync().
    """
    if system == "Windows":
        return ("FlushFileBuffers",)
    if system == "Darwin":
        return ("F_FULLFSYNC", "fsync") if fullfsync else ("fsync",)
    return ("fdatasync", "fsync")


def call(primitive: str) -> Sync:
    """Return the function that makes a call on a descriptor; one that is not there raises OSError."""

    def full_fsync(descriptor: int) -> None:
        if sys.platform != "darwin":
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)

    def fdatasync(descriptor: int) -> None:
        if sys.platform == "win32" or sys.platform == "darwin":
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        os.fdatasync(descriptor)

    # On Windows os.fsync is FlushFileBuffers.
    return {"F_FULLFSYNC": full_fsync, "fdatasync": fdatasync}.get(primitive, os.fsync)


def measure(
    folder: Path,
    names: Sequence[str],
    call_of: Callable[[str], Sync] = call,
    clock: Callable[[], int] = time.perf_counter_ns,
    budget_ns: int = BUDGET_NS,
) -> SyncCost:
    """Time "write 4096 bytes and sync" in a fresh file, appending and overwriting; the file is removed.

    Uses the first of the calls `names` that the file system takes. Raises EnvironmentFailure.
    """
    # Under this name the clean-up of a killed run's folder knows the file as ours.
    path = folder / f"sync-{secrets.token_hex(8)}.tmp"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
        try:
            name, sync = _working(descriptor, names, call_of)
            write = _writer(descriptor, sync)
            appended = _samples(write, count(), clock, budget_ns)
            overwritten = _samples(write, cycle(range(len(appended))), clock, budget_ns)
        finally:
            os.close(descriptor)
            with suppress(PermissionError):
                remove(path)
    except OSError as error:
        raise EnvironmentFailure(
            f"cannot write and sync a file in {for_message(folder)}: {reason(error)}. Choose another --dir."
        ) from error
    return SyncCost(
        name,
        nearest_rank(appended, 50),
        nearest_rank(appended, 99),
        nearest_rank(overwritten, 50),
        nearest_rank(overwritten, 99),
        min(len(appended), len(overwritten)),
    )


def nearest_rank(values: Sequence[int], percent: int) -> int:
    """Return a percentile: the smallest value that at least this percentage of all are not above."""
    return sorted(values)[max(0, ceil(len(values) * percent / 100) - 1)]


def _writer(descriptor: int, sync: Sync) -> Callable[[int], None]:
    """Return what writes a block of the file by its number, and syncs it."""
    # Neither compressible nor ever the same: some file systems write such a block faster, or not at all.
    padding, serial = secrets.token_bytes(BLOCK - 8), count(1)

    def write(block: int) -> None:
        os.lseek(descriptor, block * BLOCK, os.SEEK_SET)
        left = next(serial).to_bytes(8, "little") + padding
        while left:  # of a full disk only the write after the last that fits says so
            left = left[os.write(descriptor, left) :]
        sync(descriptor)

    return write


def _samples(
    write: Callable[[int], None], blocks: Iterable[int], clock: Callable[[], int], budget_ns: int
) -> list[int]:
    """Return the lengths of "write and sync", in nanoseconds: LEAST to MOST of them, within the budget."""
    taken: list[int] = []
    spent = 0
    for block in blocks:
        begun = clock()
        write(block)
        taken.append(clock() - begun)
        spent += taken[-1] if len(taken) > LEAST else 0
        if len(taken) == MOST or spent >= budget_ns:
            break
    return taken


def _working(descriptor: int, names: Sequence[str], call_of: Callable[[str], Sync]) -> tuple[str, Sync]:
    """Return the first call that the file takes; SQLite falls back in the same way."""
    *preferred, last = names
    for name in preferred:
        sync = call_of(name)
        with suppress(OSError):
            sync(descriptor)
            return name, sync
    return last, call_of(last)
