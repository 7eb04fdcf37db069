"""Measurement of the time to write and sync 4 KiB in a folder, with the sync call that SQLite uses."""

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
from sqlstress.system.files import reason, remove, short_path

BLOCK = 4096
MIN_SAMPLES = 8
"""Minimum number of samples of each kind (appending, overwriting), however slow they are."""
MOST = 200
"""Maximum number of samples of each kind (appending, overwriting)."""
BUDGET_NS = 150_000_000
"""Time limit for the samples of one kind after the first MIN_SAMPLES, in ns."""

Sync = Callable[[int], object]


def sync_calls(system: str, fullfsync: bool) -> tuple[str, ...]:
    """Return the names of the sync calls of which SQLite uses the first that works.

    Source: os_unix.c, full_fsync(), with HAVE_FDATASYNC as configure sets it; os_win.c, winSync().
    """
    if system == "Windows":
        return ("FlushFileBuffers",)
    if system == "Darwin":
        return ("F_FULLFSYNC", "fsync") if fullfsync else ("fsync",)
    return ("fdatasync", "fsync")


def call(primitive: str) -> Sync:
    """Return the function that makes the sync call `primitive`. Raises OSError if it is not available."""
    if primitive == "F_FULLFSYNC" and sys.platform == "darwin":
        import fcntl

        return lambda descriptor: fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    if primitive == "fdatasync" and sys.platform != "win32" and sys.platform != "darwin":
        return os.fdatasync
    if primitive in ("fsync", "FlushFileBuffers"):  # On Windows os.fsync is FlushFileBuffers.
        return os.fsync
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


def measure(
    folder: Path,
    names: Sequence[str],
    call_of: Callable[[str], Sync] = call,
    clock: Callable[[], int] = time.perf_counter_ns,
    budget_ns: int = BUDGET_NS,
) -> SyncCost:
    """Measure "write 4096 bytes and sync" in a temporary file, appending and overwriting.

    The first working call of `names` is used. Raises EnvironmentFailure if the file cannot be written.
    """
    # The clean-up of a killed measurement's folder recognises the file by this name.
    path = folder / f"sync-{secrets.token_hex(8)}.tmp"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
        try:
            name, sync = _first_working(descriptor, names, call_of)
            write = _writer(descriptor, sync)
            appended = _samples(write, count(), clock, budget_ns)
            overwritten = _samples(write, cycle(range(len(appended))), clock, budget_ns)
        finally:
            os.close(descriptor)
            with suppress(PermissionError):
                remove(path)
    except OSError as error:
        raise EnvironmentFailure(
            f"cannot write and sync a file in {short_path(folder)}: {reason(error)}. Choose another --dir."
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
    """Return a percentile by nearest rank: the smallest value that `percent` % of `values` do not exceed."""
    return sorted(values)[max(0, ceil(len(values) * percent / 100) - 1)]


def _writer(descriptor: int, sync: Sync) -> Callable[[int], None]:
    # Some file systems write repeated or compressible blocks faster, or not at all.
    padding, serial = secrets.token_bytes(BLOCK - 8), count(1)

    def write(block: int) -> None:
        os.lseek(descriptor, block * BLOCK, os.SEEK_SET)
        left = next(serial).to_bytes(8, "little") + padding
        while left:  # On a full disk, a part of the block is written first, and the next write fails.
            left = left[os.write(descriptor, left) :]
        sync(descriptor)

    return write


def _samples(
    write: Callable[[int], None], blocks: Iterable[int], clock: Callable[[], int], budget_ns: int
) -> list[int]:
    """Return MIN_SAMPLES to MOST durations of "write and sync", in ns.

    Stop when all samples after the first MIN_SAMPLES together have taken `budget_ns`.
    """
    samples: list[int] = []
    spent = 0
    for block in blocks:
        start_ns = clock()
        write(block)
        samples.append(clock() - start_ns)
        spent += samples[-1] if len(samples) > MIN_SAMPLES else 0
        if len(samples) == MOST or spent >= budget_ns:
            break
    return samples


def _first_working(descriptor: int, names: Sequence[str], call_of: Callable[[str], Sync]) -> tuple[str, Sync]:
    *preferred, last = names
    for name in preferred:
        with suppress(OSError):
            sync = call_of(name)
            sync(descriptor)
            return name, sync
    return last, call_of(last)
