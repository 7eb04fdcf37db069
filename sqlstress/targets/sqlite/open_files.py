"""Processes that have a database file open, and the WAL that each of them uses.
Locks do not show a connection without a transaction, or a connection whose WAL was deleted. Linux lists the
open files of each process, also deleted files, in /proc/PID/fd.

This module opens no file: on POSIX, closing a file drops the process's locks on it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sqlstress.system.files import parse_mountinfo

_PROCESSES = Path("/proc")
_MOUNTS = Path("/proc/self/mountinfo")
_DELETED = " (deleted)"
SAME, DELETED, OTHER = "same", "deleted", "other"
"""Kinds of WALs that a process with the database file may have open (`Opener.wal`).

SAME: the WAL next to the watched path, or no WAL. DELETED: a deleted WAL, or a WAL with a deleted wal-index.
OTHER: a WAL next to another name of the database, such as a hard link.
"""

Identity = tuple[int, int]
"""Device and inode number of a file."""


class Opener(NamedTuple):
    """A process that has the watched database file open."""

    pid: int
    name: str
    """Path under which the process opened the database file."""
    wal: str = SAME
    """Kind of WAL that the process has open: SAME, DELETED or OTHER."""
    wal_bytes: int = 0
    """Size of the WAL that the process has open, in bytes, if `wal` is DELETED or OTHER; else 0."""
    written_ns: int = 0
    """Time of this WAL's last change, in ns since the epoch, if `wal` is DELETED or OTHER; else 0."""
    deleted_wal: bool = False
    """Whether the WAL is deleted. If only the wal-index is deleted, this is False.

    SQLite deletes the wal-index before the WAL when the last connection closes.
    """


class Openers(NamedTuple):
    """Processes that had a database file open at one moment, as the function `openers` found them."""

    seen: tuple[Opener, ...]
    hidden: int
    """Number of processes whose open files sqlstress may not read."""


class OpenFile(NamedTuple):
    """A regular file that a process has open, from a link in /proc/PID/fd."""

    number: str
    """Number of the file descriptor, as text."""
    name: str
    is_deleted: bool
    status: os.stat_result

    @property
    def identity(self) -> Identity:
        return self.status.st_dev, self.status.st_ino

    @property
    def is_written_when_deleted(self) -> bool:
        """Whether the file is deleted and was written during or after its deletion."""
        # A deletion sets only the ctime. A write also sets the mtime.
        return self.is_deleted and self.status.st_mtime_ns >= self.status.st_ctime_ns


def openers(database: Path, processes: Path = _PROCESSES) -> Openers | None:
    """Return the processes, except this process, that have a database open; None if not on Linux.

    `database` is the path of the file, without symbolic links.
    """
    if sys.platform != "linux":
        return None
    file, wal = identity(database), identity(Path(f"{database}-wal"))
    seen: list[Opener] = []
    hidden = 0
    for folder in processes.iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        try:
            opener = _opener(int(folder.name), list(files_in(folder / "fd")), str(database), file, wal)
        except PermissionError:
            hidden += 1
        except OSError:
            continue  # The process has ended.
        else:
            seen += [opener] if opener else []
    return Openers(tuple(seen), hidden)


def identity(path: Path) -> Identity | None:
    """Return the device and inode number of a file; None if the file is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def files_in(folder: Path) -> Iterator[OpenFile]:
    """Yield the regular files in a folder such as /proc/PID/fd. Raises OSError."""
    for link in folder.iterdir():
        with suppress(FileNotFoundError):
            name = os.fsdecode(link.readlink())
            if name.startswith("/"):
                status = link.stat()
                if stat.S_ISREG(status.st_mode):
                    yield OpenFile(link.name, name.removesuffix(_DELETED), status.st_nlink == 0, status)


def _opener(
    pid: int, files: list[OpenFile], path: str, file: Identity | None, wal: Identity | None
) -> Opener | None:
    """Return the process `pid`, which has `files` open, if the database is one of them; else None.

    `file` and `wal` are the identities of the database and the WAL at the watched `path`.
    """
    names = [item.name for item in files if item.identity == file or (item.is_deleted and item.name == path)]
    if not names:
        return None
    # A process in a container may use another path. The WAL is next to the path that the process opened.
    wals = {f"{name}-wal" for name in names}
    indices = {f"{name}-shm" for name in names}
    foreign = [
        item
        for item in files
        if (item.name in wals and (item.is_deleted or item.identity != wal))
        or (item.name in indices and item.is_deleted)
    ]
    if not foreign:
        return Opener(pid, names[0])
    deleted_wals = [item for item in foreign if item.is_deleted and item.name in wals]
    newest = max(deleted_wals or foreign, key=lambda item: item.status.st_mtime_ns)
    kind = DELETED if newest.is_deleted else OTHER
    name = newest.name.removesuffix("-wal").removesuffix("-shm")
    return Opener(pid, name, kind, newest.status.st_size, newest.status.st_mtime_ns, bool(deleted_wals))


def other_names(database: Path, mounts: Path = _MOUNTS) -> tuple[int, bool]:
    """Return the number of a file's hard links (0 if missing), and whether it is a mount point.

    A file with several links or mounts has several names, each with its own WAL, so that processes do not
    see each other's commits.
    """
    try:
        links = database.stat().st_nlink
    except OSError:
        return 0, False
    try:
        text = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return links, False
    # Example of a line: 36 35 98:0 /data/app.db /app.db rw,noatime shared:1 - ext4 /dev/sda1 rw
    points = {fields[4] for fields in parse_mountinfo(text) if len(fields) > 4}
    return links, str(database) in points
