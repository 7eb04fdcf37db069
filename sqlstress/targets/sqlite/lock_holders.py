"""The holders of a database's locks, read from the system without SQLite and without a lock.
SQLite locks byte ranges: of the wal-index (-shm) in WAL mode, else of the database file. For a byte range,
fcntl(F_GETLK) returns one process that holds a lock, but never the calling process. On Linux, /proc/locks
lists all processes that share a lock.

Use this module in a process without connections, such as `sqlstress watch`: on POSIX, closing a database file
drops the locks of the process's own connections.

Source: https://www.sqlite.org/walformat.html, "WAL Locks"; os.h of SQLite, "PENDING_BYTE"
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from struct import Struct
from typing import Any, NamedTuple

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.system.files import reason
from sqlstress.targets.sqlite import open_files, walindex
from sqlstress.targets.sqlite.open_files import Openers
from sqlstress.targets.sqlite.walindex import WalIndex

if sys.platform != "win32":
    import fcntl
else:
    fcntl: Any = None

WAL, ROLLBACK, CLOSED, EMPTY, MISSING = "wal", "rollback", "closed", "empty", "missing"
"""States of a database at one moment.

WAL: WAL mode with a wal-index. CLOSED: WAL mode without a wal-index, so no process has the file open, except
perhaps a process in exclusive mode. ROLLBACK: a mode with rollback journal. EMPTY: 0 bytes. MISSING: no file.
"""
WRITE, EXCLUSIVE, PENDING = "write", "exclusive", "pending"
READ, CHECKPOINT, RECOVERY = "read", "checkpoint", "recovery"
"""Names of the locks, in all journal modes.

WRITE: only the holder can write (with a rollback journal, SQLite's RESERVED). EXCLUSIVE: only the holder can
read or write. PENDING: the holder waits until readers end, and no reader can begin. READ: the holder reads.
"""

_WRITE_AT, _CHECKPOINT_AT, _RECOVERY_AT, _READ_AT, _READERS = 120, 121, 122, 123, 5
_PENDING_AT, _RESERVED_AT, _SHARED_AT, _SHARED_LENGTH = 0x4000_0000, 0x4000_0001, 0x4000_0002, 510
_MAGIC = b"SQLite format 3\0"
_VERSION_AT, _WAL_VERSION, _CHANGES = 18, 2, Struct(">24xI")
"""Fields in the header of a database file.

The write version is at offset 18, and is 2 in WAL mode. The Struct reads the change counter, at offset 24.
"""
_HEADER = 28
# Fields of struct flock in each system's order: start, length, pid, type and whence.
_FLOCK = Struct("@qqihh" if sys.platform == "darwin" else "@hhqqi4x" if sys.maxsize > 2**32 else "@hhqqi")
_TRIES = 3
_LOCK_LIST = Path("/proc/locks")
ELSEWHERE = 0
"""Process ID that the system reports for a lock holder in another container."""


class Lock(NamedTuple):
    """A lock that a process held at the moment of a sample."""

    name: str
    """Name of the lock, such as WRITE."""
    pid: int
    """ID of the process that holds the lock; ELSEWHERE (0) or a negative number if it is not visible."""
    slot: int = 0
    """Index of a READ lock among the WAL's five read locks, 0 to 4; 0 for other locks."""


class LockSample(NamedTuple):
    """State and locks of a database at one moment, as `LockedFile.look` found them."""

    state: str
    """WAL, ROLLBACK, CLOSED, EMPTY or MISSING."""
    locks: tuple[Lock, ...] = ()
    """Locks that processes hold. A shared lock appears once, with one of its holders."""
    changes: int | None = None
    """Counter of commits, modulo 2^32; None if it could not be read at this moment."""
    wal: WalIndex | None = None
    """State of the WAL; None if the wal-index could not be read at this moment."""
    file: int = 0
    """Number of different files seen at the path so far; above 1 if the file was replaced."""


def unavailable_reason() -> str | None:
    """Return the reason why this system does not report lock holders; None if it reports them."""
    if sys.platform in ("linux", "darwin"):
        return None
    return "this system does not tell who holds a lock (fcntl F_GETLK)"


class _File:
    """Reader of the current file at a path, at which other programs may replace the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = 0
        """Number of different files seen at the path so far."""
        self.identity = (0, 0)
        self._descriptor = -1

    @property
    def is_open(self) -> bool:
        """Whether the file existed at the last call of `follow`."""
        return self._descriptor >= 0

    def follow(self) -> bool:
        """Open the file that is now at the path, if it is not open yet. Return whether a file exists."""
        try:
            status = self.path.stat()
            if self._descriptor < 0 or self.identity != (status.st_dev, status.st_ino):
                self.close()
                self._open()
        except FileNotFoundError:
            self.close()
        return self.is_open

    def _open(self) -> None:
        if sys.platform == "win32":
            return
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(self._descriptor)
        self.opened += self.identity != (status.st_dev, status.st_ino)
        self.identity = (status.st_dev, status.st_ino)

    def read(self, length: int) -> bytes:
        if sys.platform == "win32":
            return b""
        return os.pread(self._descriptor, length, 0)

    def holder(self, start: int, length: int = 1) -> int | None:
        """Return a process with a shared or exclusive lock on any of `length` bytes from `start`, or None."""
        return self._conflicting_process(fcntl.F_WRLCK, start, length)

    def exclusive_holder(self, start: int, length: int = 1) -> int | None:
        """Return a process with an exclusive lock on any of `length` bytes from `start`, or None."""
        return self._conflicting_process(fcntl.F_RDLCK, start, length)

    def _conflicting_process(self, kind: int, start: int, length: int) -> int | None:
        if sys.platform == "darwin":
            request = _FLOCK.pack(start, length, 0, kind, os.SEEK_SET)
            _, _, pid, conflict, _ = _FLOCK.unpack(fcntl.fcntl(self._descriptor, fcntl.F_GETLK, request))
        else:
            request = _FLOCK.pack(kind, os.SEEK_SET, start, length, 0)
            conflict, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(self._descriptor, fcntl.F_GETLK, request))
        return None if conflict == fcntl.F_UNLCK else int(pid)

    def close(self) -> None:
        """Close the file, which also drops this process's locks on the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class LockedFile:
    """Observer of the locks of a database that other processes use. The observer takes no lock."""

    def __init__(self, path: Path) -> None:
        """Raise UsageError if the file is no database, EnvironmentFailure if it is unreadable."""
        if lack := unavailable_reason():
            raise UsageError(f"watch is not available: {lack}. Run it on Linux or macOS.")
        self.path = path
        # SQLite puts the wal-index next to the file itself, not next to a symbolic link to the file.
        resolved = path.resolve()
        _refuse_own(resolved)
        check_database(path)
        self._file = _File(resolved)
        self._index = _File(resolved.with_name(f"{resolved.name}-shm"))

    def look(self) -> LockSample:
        """Return the current locks and their holders. Raises EnvironmentFailure."""
        try:
            return self._look()
        except PermissionError as error:
            raise EnvironmentFailure(_forbidden(Path(error.filename or self.path), error)) from error
        except OSError as error:
            raise EnvironmentFailure(f"cannot read {self.path}: {error.strerror}.") from error

    def _look(self) -> LockSample:
        if not self._file.follow():
            return LockSample(MISSING, file=self._file.opened)
        header = self._file.read(_HEADER)
        if len(header) < _HEADER:
            return LockSample(EMPTY, self._rollback_locks(), file=self._file.opened)
        if header[_VERSION_AT] == _WAL_VERSION:
            return self._look_at_wal()
        (changes,) = _CHANGES.unpack(header)
        return LockSample(ROLLBACK, self._rollback_locks(), changes, file=self._file.opened)

    def _look_at_wal(self) -> LockSample:
        # In exclusive locking mode a process locks the database file instead, and needs no wal-index.
        owner, index = self._file.exclusive_holder(_PENDING_AT, _SHARED_LENGTH + 2), self._index
        locks = [] if owner is None else [Lock(WRITE, owner), Lock(EXCLUSIVE, owner)]
        if not index.follow():
            return LockSample(CLOSED, tuple(locks), file=self._file.opened)
        if index.holder(_WRITE_AT, _READ_AT + _READERS - _WRITE_AT) is not None:
            exclusive = {WRITE: _WRITE_AT, CHECKPOINT: _CHECKPOINT_AT, RECOVERY: _RECOVERY_AT}
            held = [
                Lock(name, pid) for name, at in exclusive.items() if (pid := index.holder(at)) is not None
            ]
            locks += [lock for lock in held if lock not in locks]
            for slot in range(_READERS):
                if (pid := index.holder(_READ_AT + slot)) is not None:
                    locks.append(Lock(READ, pid, slot))
        wal = next(filter(None, (walindex.parse(index.read(walindex.LENGTH)) for _ in range(_TRIES))), None)
        return LockSample(WAL, tuple(locks), wal and wal.commits, wal, self._file.opened)

    def _rollback_locks(self) -> tuple[Lock, ...]:
        file = self._file
        if file.holder(_PENDING_AT, _SHARED_LENGTH + 2) is None:
            return ()
        reserved, pending = file.holder(_RESERVED_AT), file.exclusive_holder(_PENDING_AT)
        exclusive = file.exclusive_holder(_SHARED_AT, _SHARED_LENGTH)
        reader = file.holder(_SHARED_AT, _SHARED_LENGTH) if exclusive is None else None
        # A process that rolls back a hot journal is a writer with an EXCLUSIVE lock but no RESERVED lock.
        writer = next((pid for pid in (exclusive, reserved, pending) if pid is not None), None)
        pids = {
            WRITE: writer,
            EXCLUSIVE: exclusive,
            PENDING: pending if exclusive is None else None,
            READ: reader if reader != writer else None,
        }
        return tuple(Lock(name, pid) for name, pid in pids.items() if pid is not None)

    def readers(self) -> tuple[Lock, ...]:
        """Return all holders of the WAL's read locks; empty if the system does not list locks.

        Call it rarely: while Linux makes the list, no process can lock any file.
        """
        return tuple(shared_read_locks(self._index.identity)) if self._index.is_open else ()

    def openers(self) -> Openers | None:
        """Return the processes that have the file open; None if the system does not list them."""
        return open_files.openers(self._file.path)

    def other_names(self) -> tuple[int, bool]:
        return open_files.other_names(self._file.path)

    def wal_bytes(self) -> int:
        return walindex.wal_bytes(self._file.path)

    def has_journal(self) -> bool:
        return has_hot_journal(self._file.path)

    def close(self) -> None:
        self._file.close()
        self._index.close()


def shared_read_locks(identity: tuple[int, int]) -> Iterable[Lock]:
    """Yield the read locks on a wal-index, with all holders; nothing on systems other than Linux.

    `identity` is the device and inode number of the wal-index.
    """
    if sys.platform != "linux":
        return
    file = f"{os.major(identity[0]):02x}:{os.minor(identity[0]):02x}:{identity[1]}"
    for line in _LOCK_LIST.read_text(encoding="ascii", errors="replace").splitlines():
        fields = line.split()
        # Example of a line: 1: POSIX ADVISORY READ 2601 fe:00:1234 123 123
        if len(fields) == 8 and fields[1:6:2] == ["POSIX", "READ", file] and fields[7] != "EOF":
            first, last = int(fields[6]) - _READ_AT, int(fields[7]) - _READ_AT
            yield from (Lock(READ, int(fields[4]), slot) for slot in range(_READERS) if first <= slot <= last)


def has_hot_journal(database: Path) -> bool:
    """Return whether there is a rollback journal with a header that is neither zeroed nor truncated.

    If no process holds the RESERVED lock, the writer of this journal died, and SQLite rolls it back.
    """
    try:
        with database.with_name(f"{database.name}-journal").open("rb") as journal:
            return journal.read(1) not in (b"", b"\0")
    except OSError:
        return False


def check_database(path: Path) -> None:
    """Raise UsageError if the file is no database, EnvironmentFailure if it is unreadable."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path} is not a file. Give a database file.")
        with path.open("rb") as file:
            header = file.read(len(_MAGIC))
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}.") from None
    except PermissionError as error:
        raise EnvironmentFailure(_forbidden(path, error)) from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {reason(error)}.") from error
    if header and header != _MAGIC:
        raise UsageError(f"{path} is not an SQLite database, or it is encrypted.")


def _forbidden(path: Path, error: OSError) -> str:
    return f"cannot read {path}: {error.strerror}. Run sqlstress watch as the owner of the file, or as root."


def _refuse_own(path: Path) -> None:
    """Raise UsageError if this process has the database open: watching would drop its locks."""
    with suppress(OSError):
        database = path.stat()
        for name in Path("/dev/fd").iterdir():
            with suppress(OSError, ValueError):
                status = os.fstat(int(name.name))
                if (status.st_dev, status.st_ino) == (database.st_dev, database.st_ino):
                    raise UsageError(
                        f"this process has {path} open itself, and closing what is looked at would drop its "
                        "locks. Watch from another process (sqlstress watch)."
                    )


# Estimates of how long a lock was held, from samples


class TimedSample(NamedTuple):
    """A sample of a database's locks, from `sample_locks`. Times are in s from the start of sampling."""

    asked_s: float
    """Time just before the locks were read."""
    answered_s: float
    """Time just after the locks were read; much later than `asked_s` if this process was suspended."""
    look: LockSample


def sample_locks(rate: int, look: Callable[[], LockSample]) -> Iterator[TimedSample]:
    """Yield `rate` samples per second, without end. `look` reads the locks."""
    # Each sample is at a random time in its interval. Otherwise the samples could always miss the locks of a
    # program that works at regular times.
    interval_s, random, turn = 1 / rate, Random(), 0
    started_s = time.perf_counter()
    while True:
        due_s = (turn + random.random()) * interval_s
        time.sleep(max(0.0, due_s - (time.perf_counter() - started_s)))
        asked_s = time.perf_counter() - started_s
        turn = max(turn + 1, int(asked_s / interval_s))
        current = look()
        yield TimedSample(asked_s, time.perf_counter() - started_s, current)


@dataclass(slots=True)
class HoldTracker:
    """Estimator of a lock's held periods from samples: held at 1.0 s and 1.2 s means at least 0.2 s."""

    samples: int = 0
    times: int = 0
    longest_s: float = 0.0
    most_s: float = 0.0
    longest_at_s: float = 0.0
    now_s: float = 0.0
    is_held: bool = False
    _start_s: float = 0.0
    _last_s: float = 0.0
    _last_free_s: float = 0.0
    _changes: int | None = None

    def add_held(self, sample: TimedSample, before_s: float, changes: int | None = None) -> None:
        """Add a sample in which the lock was held. `before_s` is the time at which the previous sample began.

        `changes` is the database's counter of commits; None if unknown. If the counter has changed since the
        previous sample, the lock was released between the two samples.
        """
        is_comparable = changes is not None and self._changes is not None
        if self.is_held and is_comparable and changes != self._changes:
            self.free(sample)
        if not self.is_held:
            # The hold began after the previous sample began, and before this sample ended.
            self.is_held, self._start_s, self._last_free_s = True, sample.answered_s, before_s
            self.times += 1
        if changes is not None:
            self._changes = changes
        self._last_s = max(sample.asked_s, self._start_s)
        self.samples += 1
        self.now_s = self._last_s - self._start_s
        self._update_longest(sample)

    def free(self, sample: TimedSample) -> None:
        """Add a sample in which the lock was not held."""
        if self.is_held:
            self._update_longest(sample)
            self.is_held, self._changes, self.now_s = False, None, 0.0

    def _update_longest(self, end: TimedSample) -> None:
        at_least_s, at_most_s = self._last_s - self._start_s, end.answered_s - self._last_free_s
        if (at_least_s, at_most_s) >= (self.longest_s, self.most_s):
            self.longest_s, self.most_s, self.longest_at_s = at_least_s, at_most_s, self._start_s

    @property
    def figures(self) -> tuple[int, int, float, float, float, float]:
        """Arguments of the report's class `Holds`, in order."""
        return self.samples, self.times, self.longest_s, self.most_s, self.longest_at_s, self.now_s
