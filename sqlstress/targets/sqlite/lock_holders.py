"""Who holds which lock of a database, asked of the system: without SQLite, and without taking a lock.

fcntl(F_GETLK) tells the process whose lock would conflict with one of ours, which is not taken. It tells one
process where several share a lock; Linux lists all in /proc/locks. It does not tell the locks of the process
that asks. A WAL's locks are bytes of the wal-index (-shm), those of a rollback journal bytes of the database
file.

On POSIX a process that opens a database file and closes it again gives up the locks of its own connections
to it: ask from a process that has none, as `sqlstress watch` does. `Database` refuses files that its process
has open already.

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
"""What a database is at a moment: a WAL whose wal-index is there, or not (nobody has it open, or one process
for itself); a rollback journal; a file of no bytes; no file."""
WRITE, EXCLUSIVE, PENDING, READ, CHECKPOINT, RECOVERY = LOCKS = (
    "write",
    "exclusive",
    "pending",
    "read",
    "checkpoint",
    "recovery",
)
"""Write: nobody else can write (of a rollback journal RESERVED); exclusive: nobody else can read either;
pending: a writer waits for readers, and lets no other begin; read: a transaction reads."""

_WRITE_AT, _CHECKPOINT_AT, _RECOVERY_AT, _READ_AT, _READERS = 120, 121, 122, 123, 5
_PENDING_AT, _RESERVED_AT, _SHARED_AT, _SHARED_LENGTH = 0x4000_0000, 0x4000_0001, 0x4000_0002, 510
_MAGIC = b"SQLite format 3\0"
_VERSION_AT, _WAL_VERSION, _CHANGES = 18, 2, Struct(">24xI")
"""Where the header says whether there is a WAL; the counter of changes."""
_HEADER = 28
# start, length, pid, type, whence; in the order in which each system has them.
_FLOCK = Struct("@qqihh" if sys.platform == "darwin" else "@hhqqi4x" if sys.maxsize > 2**32 else "@hhqqi")
_TRIES = 3
_LIST = Path("/proc/locks")
ELSEWHERE = 0
"""The process of a lock that a process of another container holds, which this one can't see."""


class Lock(NamedTuple):
    """A lock at one moment."""

    name: str
    """One of LOCKS."""
    pid: int
    """Who holds it; ELSEWHERE, or below 0 where it is no process of this system."""
    slot: int = 0
    """Of a WAL's read locks, which of the five."""


class Look(NamedTuple):
    """What was found at one moment."""

    state: str
    """WAL, ROLLBACK, CLOSED, EMPTY or MISSING."""
    locks: tuple[Lock, ...] = ()
    """Of a lock that several share, one of them."""
    changes: int | None = None
    """One more with each commit, modulo 2^32; None where it could not be read at this moment."""
    wal: WalIndex | None = None
    """What the wal-index says; None where it could not be read at this moment."""
    file: int = 0
    """One more each time that another file stands in the place of the last one."""


def lacking() -> str | None:
    """Return why nobody can be asked here who holds a lock; None where the system tells."""
    if sys.platform in ("linux", "darwin"):
        return None
    return "this system does not tell who holds a lock (fcntl F_GETLK)"


class _File:
    """A file that is open as long as it stands at its path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = 0
        """How often another file was found there."""
        self.identity = (0, 0)
        self._descriptor = -1

    @property
    def is_open(self) -> bool:
        """Whether it was there when it was last looked for."""
        return self._descriptor >= 0

    def follow(self) -> bool:
        """Open the file that stands there now, unless it is open; return whether there is one."""
        try:
            found = self.path.stat()
            if self._descriptor < 0 or self.identity != (found.st_dev, found.st_ino):
                self.close()
                self._open()
        except FileNotFoundError:
            self.close()
        return self.is_open

    def _open(self) -> None:
        if sys.platform == "win32":
            return
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        found = os.fstat(self._descriptor)
        self.opened += self.identity != (found.st_dev, found.st_ino)
        self.identity = (found.st_dev, found.st_ino)

    def read(self, length: int) -> bytes:
        """Return how the file begins."""
        if sys.platform == "win32":
            return b""
        return os.pread(self._descriptor, length, 0)

    def holder(self, start: int, length: int = 1) -> int | None:
        """Return the process that holds a lock on some bytes, or one of them; None where nobody does."""
        return self._kept_by(fcntl.F_WRLCK, start, length)

    def exclusive_holder(self, start: int, length: int = 1) -> int | None:
        """Return the same of a lock that nobody can share."""
        return self._kept_by(fcntl.F_RDLCK, start, length)

    def _kept_by(self, kind: int, start: int, length: int) -> int | None:
        """Return whose lock would keep us from one of a kind."""
        if sys.platform == "darwin":
            asked = _FLOCK.pack(start, length, 0, kind, os.SEEK_SET)
            _, _, pid, found, _ = _FLOCK.unpack(fcntl.fcntl(self._descriptor, fcntl.F_GETLK, asked))
        else:
            asked = _FLOCK.pack(kind, os.SEEK_SET, start, length, 0)
            found, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(self._descriptor, fcntl.F_GETLK, asked))
        return None if found == fcntl.F_UNLCK else int(pid)

    def close(self) -> None:
        """Close it. The process has no locks of its own to lose."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Database:
    """A database that others have open, looked at from outside: nothing is written, and no lock is taken."""

    def __init__(self, path: Path) -> None:
        """Raise UsageError for what is no database, EnvironmentFailure for what may not be read."""
        if lacks := lacking():
            raise UsageError(f"watch is not available: {lacks}. Run it on Linux or macOS.")
        self.path = path
        # Others find its locks beside the file itself, wherever a link to it is.
        resolved = path.resolve()
        _refuse_own(resolved)
        check_database(path)
        self._file = _File(resolved)
        self._index = _File(resolved.with_name(f"{resolved.name}-shm"))

    def look(self) -> Look:
        """Return who holds which lock now. Raises EnvironmentFailure for what can't be read any more."""
        try:
            return self._look()
        except PermissionError as error:
            raise EnvironmentFailure(_forbidden(Path(error.filename or self.path), error)) from error
        except OSError as error:
            raise EnvironmentFailure(f"cannot read {self.path}: {error.strerror}.") from error

    def _look(self) -> Look:
        if not self._file.follow():
            return Look(MISSING, file=self._file.opened)
        header = self._file.read(_HEADER)
        if len(header) < _HEADER:
            return Look(EMPTY, self._rollback_locks(), file=self._file.opened)
        if header[_VERSION_AT] == _WAL_VERSION:
            return self._look_at_wal()
        (changes,) = _CHANGES.unpack(header)
        return Look(ROLLBACK, self._rollback_locks(), changes, file=self._file.opened)

    def _look_at_wal(self) -> Look:
        # One process may have the file for itself, without a wal-index.
        whole, index = self._file.exclusive_holder(_PENDING_AT, _SHARED_LENGTH + 2), self._index
        locks = [] if whole is None else [Lock(WRITE, whole), Lock(EXCLUSIVE, whole)]
        if not index.follow():
            return Look(CLOSED, tuple(locks), file=self._file.opened)
        if index.holder(_WRITE_AT, _READ_AT + _READERS - _WRITE_AT) is not None:
            alone = {WRITE: _WRITE_AT, CHECKPOINT: _CHECKPOINT_AT, RECOVERY: _RECOVERY_AT}
            found = [Lock(name, pid) for name, at in alone.items() if (pid := index.holder(at)) is not None]
            locks += [lock for lock in found if lock not in locks]
            for slot in range(_READERS):
                if (pid := index.holder(_READ_AT + slot)) is not None:
                    locks.append(Lock(READ, pid, slot))
        wal = next(filter(None, (walindex.parse(index.read(walindex.LENGTH)) for _ in range(_TRIES))), None)
        return Look(WAL, tuple(locks), wal and wal.commits, wal, self._file.opened)

    def _rollback_locks(self) -> tuple[Lock, ...]:
        file = self._file
        if file.holder(_PENDING_AT, _SHARED_LENGTH + 2) is None:
            return ()
        reserved, pending = file.holder(_RESERVED_AT), file.exclusive_holder(_PENDING_AT)
        exclusive = file.exclusive_holder(_SHARED_AT, _SHARED_LENGTH)
        reader = file.holder(_SHARED_AT, _SHARED_LENGTH) if exclusive is None else None
        # Who rolls back what a dead process left goes from SHARED to EXCLUSIVE without RESERVED.
        writer = next((pid for pid in (exclusive, reserved, pending) if pid is not None), None)
        named = {
            WRITE: writer,
            EXCLUSIVE: exclusive,
            PENDING: pending if exclusive is None else None,
            READ: reader if reader != writer else None,
        }
        return tuple(Lock(name, pid) for name, pid in named.items() if pid is not None)

    def readers(self) -> tuple[Lock, ...]:
        """Return everybody who shares a read lock of the WAL now; nothing where the system lists no locks.

        Linux keeps everybody from locking any file while it lists: ask seldom.
        """
        return tuple(listed(self._index.identity)) if self._index.is_open else ()

    def openers(self) -> Openers | None:
        """Return the processes that have the file open; None if the system lists no open files."""
        return open_files.openers(self._file.path)

    def other_names(self) -> tuple[int, bool]:
        """Return the number of hard links of the file, and whether the file itself is a mount point."""
        return open_files.other_names(self._file.path)

    def wal_bytes(self) -> int:
        """Return the size of the WAL."""
        return walindex.wal_bytes(self._file.path)

    def has_journal(self) -> bool:
        """Return whether a rollback journal is there that has something to roll back."""
        return has_hot_journal(self._file.path)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        self._index.close()


def listed(identity: tuple[int, int]) -> Iterable[Lock]:
    """Yield who shares a read lock on a wal-index, by /proc/locks; nothing on a system without it."""
    if sys.platform != "linux":
        return
    file = f"{os.major(identity[0]):02x}:{os.minor(identity[0]):02x}:{identity[1]}"
    for line in _LIST.read_text(encoding="ascii", errors="replace").splitlines():
        words = line.split()
        # 1: POSIX ADVISORY READ 2601 fe:00:1234 123 123
        if len(words) == 8 and words[1:6:2] == ["POSIX", "READ", file] and words[7] != "EOF":
            first, last = int(words[6]) - _READ_AT, int(words[7]) - _READ_AT
            yield from (Lock(READ, int(words[4]), slot) for slot in range(_READERS) if first <= slot <= last)


def has_hot_journal(database: Path) -> bool:
    """Return whether a rollback journal waits: one whose header is overwritten or cut off does not."""
    try:
        with database.with_name(f"{database.name}-journal").open("rb") as journal:
            return journal.read(1) not in (b"", b"\0")
    except OSError:
        return False


# What can be watched at all.


def check_database(path: Path) -> None:
    """Raise UsageError for what is no database, EnvironmentFailure for what may not be read."""
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
    """Raise UsageError where this process has the database open: to look would drop its locks."""
    with suppress(OSError):
        found = path.stat()
        for name in Path("/dev/fd").iterdir():
            with suppress(OSError, ValueError):
                own = os.fstat(int(name.name))
                if (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino):
                    raise UsageError(
                        f"this process has {path} open itself, and closing what is looked at would drop its "
                        "locks. Watch from another process (sqlstress watch)."
                    )


# Samples of a lock: when they are taken, and how long they say that it was held.


class Sample(NamedTuple):
    """What was found between two moments, in seconds from the first turn."""

    asked_s: float
    answered_s: float
    """Later by a look, and by however long this process did not run meanwhile."""
    look: Look


def sampled(rate: int, look: Callable[[], Look]) -> Iterator[Sample]:
    """Sleep until the next sample is due, and yield it; without end.

    At random within its turn, so that no rhythm of the watched programs hides in ours.
    """
    interval_s, random, turn = 1 / rate, Random(), 0
    begun = time.perf_counter()
    while True:
        due_s = (turn + random.random()) * interval_s
        time.sleep(max(0.0, due_s - (time.perf_counter() - begun)))
        at_s = time.perf_counter() - begun
        turn = max(turn + 1, int(at_s / interval_s))
        found = look()
        yield Sample(at_s, time.perf_counter() - begun, found)


@dataclass(slots=True)
class Runs:
    """How one lock was held by one process, or by anybody: one hold after the other."""

    samples: int = 0
    times: int = 0
    longest_s: float = 0.0
    most_s: float = 0.0
    longest_at_s: float = 0.0
    now_s: float = 0.0
    is_held: bool = False
    _begun_s: float = 0.0
    _last_s: float = 0.0
    _free_s: float = 0.0
    _changes: int | None = None

    def seen(self, sample: Sample, before_s: float, changes: int | None = None) -> None:
        """Take a sample in which it was held; `before_s` is when the sample before was asked for.

        Where `changes` differ, a commit lies between: this is another hold.
        """
        known = changes is not None and self._changes is not None
        if self.is_held and known and changes != self._changes:
            self.free(sample)
        if not self.is_held:
            # It may have been taken just before the answer, and given back just after the last question.
            self.is_held, self._begun_s, self._free_s = True, sample.answered_s, before_s
            self.times += 1
        if changes is not None:
            self._changes = changes
        self._last_s = max(sample.asked_s, self._begun_s)
        self.samples += 1
        self.now_s = self._last_s - self._begun_s
        self._longest(sample)

    def free(self, sample: Sample) -> None:
        """Take a sample in which it was not held by this process."""
        if self.is_held:
            self._longest(sample)
            self.is_held, self._changes, self.now_s = False, None, 0.0

    def _longest(self, end: Sample) -> None:
        seen_s, most_s = self._last_s - self._begun_s, end.answered_s - self._free_s
        if (seen_s, most_s) >= (self.longest_s, self.most_s):
            self.longest_s, self.most_s, self.longest_at_s = seen_s, most_s, self._begun_s

    @property
    def figures(self) -> tuple[int, int, float, float, float, float]:
        """What was seen by now, as the fields of the report's Holds."""
        return self.samples, self.times, self.longest_s, self.most_s, self.longest_at_s, self.now_s
