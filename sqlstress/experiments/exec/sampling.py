"""Samples of the files that running commands have open, from /proc on Linux.

The samples show how long commands have the database open, whether they use the original --database instead of
the trial's copy, and whether they have lost their locks. The sampler itself never opens the database files.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from sqlstress.experiments.exec import CLOSED, DELETED_LOCK, MOMENTS, OPEN, SLEEPING, TOUCHED
from sqlstress.recording import (
    COPIED,
    DELETED,
    LIBRARIES,
    LOADED,
    LOCKLESS,
    LOST_LOCKS,
    MOVED,
    NO_LOCKS,
    PlainObservation,
)
from sqlstress.recording.lost_locks import COPIERS
from sqlstress.targets.sqlite import open_files
from sqlstress.targets.sqlite.open_files import OpenFile

if sys.platform != "win32":
    import fcntl
else:
    fcntl: Any = None

EVERY_S = 0.02
"""Interval between samples, in seconds. A sample takes about 0.1 ms."""
WORKED, STRAYED, REACHED, SHARED, FIRST_PID = range(5)
"""Indices into an array of numbers that the workers of a trial share. The first four numbers are flags.

WORKED: an operation succeeded. STRAYED: a command had the original --database open. REACHED: a command had
the trial's database open. SHARED: commands of two workers had the trial's database open at once. FIRST_PID:
index of the first of the process IDs, one per worker: the ID of the worker's command if the command had the
database open in the last sample, else 0.
"""


class OpenFileSampler:
    """Sampler of the files that a worker's commands have open. A thread takes a sample every EVERY_S."""

    _signs: LockSigns
    _wals: DeletedWals
    _copiers: Copiers
    """Collector of programs that copy or move the database.

    Like `_signs` and `_wals`, this attribute is not set if there is no database file or no /proc.
    """

    def __init__(
        self, database: str, original: str, pid: Callable[[], int | None], flags: Any, worker: int
    ) -> None:
        """`pid` returns the ID of the running command. `worker` is the number of the worker, from 1.

        `original` is the path of the original --database; empty if commands do not use a copy of a database.
        `flags` is the array that the workers share, with the indices WORKED to FIRST_PID.
        """
        self._database, self._pid, self._flags = os.path.realpath(database), pid, flags
        self._own_pid = FIRST_PID + worker - 1
        self._original = Path(original) if original else None
        self._states = Counter[str]()
        """Number of samples by state of the command.

        OPEN: a process of the command has the database open. SLEEPING: no process has the database open, and
        all sleep. CLOSED: no process has the database open, and some run.
        """
        self._lock_files: set[tuple[int, str]] = set()
        """Pairs (process, name of a deleted file on which the process held a lock)."""
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        if sys.platform == "linux" and Path(database).is_file():  # A server's address is no file.
            self._signs, self._wals = LockSigns(self._database), DeletedWals(self._database)
            self._copiers = Copiers(self._database)
            self._thread.start()

    def sightings(self) -> list[PlainObservation]:
        """Stop sampling; return the observations: numbers of samples, and signs of faults."""
        self._ends.set()
        if not self._thread.is_alive():
            return []
        self._thread.join()
        lock_files = Counter(name for _, name in self._lock_files)
        counts = [
            *((MOMENTS, state, count) for state, count in self._states.items()),
            *((DELETED_LOCK, name, count) for name, count in lock_files.items()),
        ]
        samples: list[PlainObservation] = [(*count, "", {}) for count in counts]
        signs = (self._signs, self._wals, self._copiers)
        return [*samples, *chain.from_iterable(sign.observations() for sign in signs)]

    def _sample(self) -> None:
        while not self._ends.wait(EVERY_S):
            pid = self._pid()
            if pid is None:
                continue
            is_open, is_asleep = False, True
            original = open_files.identity(self._original) if self._original else None
            for process, parent in family(pid).items():
                is_asleep = is_asleep and sleeps(process)
                files = open_files_of(process)
                self._lock_files.update((process, name) for name in deleted_lock_files(process, files))
                if any(file.name == self._database for file in files):
                    is_open = True
                    self._signs.add(process, parent, files)
                    self._wals.add(process, files)
                    self._copiers.add(process, files)
                if original and any(file.identity == original for file in files):
                    self._flags[STRAYED] = 1
            self._flags[self._own_pid] = pid if is_open else 0
            if is_open:
                self._flags[REACHED] = 1
                self._compare_with_others(pid)
            if pid == self._pid():  # Otherwise the command ended during the sample.
                self._states[OPEN if is_open else SLEEPING if is_asleep else CLOSED] += 1

    def _compare_with_others(self, pid: int) -> None:
        """Set the flag SHARED if command `pid` and a command of another worker have the database open."""
        others = {other for other in self._flags[FIRST_PID:] if other} - {pid}
        if self._flags[SHARED]:
            return
        if any(map(self._is_open_in_family, others)) and self._is_open_in_family(pid):
            self._flags[SHARED] = 1

    def _is_open_in_family(self, pid: int) -> bool:
        files = (file for process in family(pid) for file in open_files_of(process))
        return any(file.name == self._database for file in files)


def family(pid: int) -> dict[int, int]:
    """Return {process ID: parent's ID} for a process (with parent 0) and all descendants."""
    parents, unread = {pid: 0}, [pid]
    for process in unread:  # The list grows during the loop.
        with suppress(OSError):
            children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
            for child in map(int, children.split()):
                parents[child] = process
                unread.append(child)
    return parents


def open_files_of(pid: int) -> list[OpenFile]:
    """Return a process's open regular files; empty if the process has ended."""
    with suppress(OSError):
        return list(open_files.files_in(Path(f"/proc/{pid}/fd")))
    return []


def sleeps(pid: int) -> bool:
    """Return whether a process sleeps; False if it waits for the disk, or has ended."""
    with suppress(OSError, IndexError):
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return status.rpartition(")")[2].split()[0] == "S"  # The name before ")" may contain any character.
    return False


def deleted_lock_files(pid: int, files: Iterable[OpenFile]) -> Iterator[str]:
    """Yield the names of deleted files on which a process has a lock.

    Omit -wal and -shm, which SQLite itself deletes while it holds locks, at the last close of a database.
    """
    for file in files:
        if file.name.endswith(("-wal", "-shm")):
            continue
        if file.is_deleted and shows_lock(Path(f"/proc/{pid}/fdinfo/{file.number}")):
            yield Path(file.name).name


# Signs of lost locks. In WAL mode SQLite holds a shared lock on the database file as long as it has the -shm
# file open. So a process with -shm open and without a lock has lost its locks. An SQLite library maps -shm
# only once in a process, for all connections. So a process that maps the beginning of -shm twice has two
# SQLite libraries.
#
# A process with an open rollback journal writes, for which SQLite needs a lock. Without a lock, the program
# has told SQLite to take none: nolock=1, or vfs=unix-none.
#
# Source: https://www.sqlite.org/howtocorrupt.html, sections 2.2 and 2.3


SAMPLES_ENOUGH = 3
"""Number of consecutive samples without a lock that prove that a process has lost its locks.

Fewer samples prove nothing. A sample reads several files of /proc, and a program that often reopens the
database may release its lock between two of these reads.
"""


class LockSigns:
    """Collector of signs that processes have the database open without SQLite's locks.

    This collector and the next two get the samples of all processes that have the database open (`add`).
    Their `database` is a path without symbolic links.
    """

    def __init__(self, database: str) -> None:
        self._database, self._index, self._journal = database, f"{database}-shm", f"{database}-journal"
        self._lists_locks = lists_locks(Path(database).parent)
        self._users: set[int] = set()
        """Processes that had the -shm file open."""
        self._unlocked = Counter[int]()
        """Number of consecutive samples without a lock, by process."""
        self._lockless: set[int] = set()
        self._openers: set[int] = set()
        """Processes that had the database open, in any journal mode."""
        self._writers: dict[int, bool] = {}
        """By process that had a rollback journal open: whether the process also had a lock."""
        self._opened = Counter[int]()
        """Largest number of descriptors of the database that were open, by process."""
        self._programs: dict[int, tuple[str, set[str]]] = {}
        """By process that may use two SQLite libraries: kind of the sign, and mapped program files.

        The kind is LIBRARIES if the process maps -shm twice. It is LOADED if the process has the database
        open twice, but does not map -shm.
        """

    def add(self, pid: int, parent: int, files: Sequence[OpenFile]) -> None:
        """Add a sample of process `pid`, a child of `parent`, which has the database open."""
        descriptors = [file.number for file in files if file.name == self._database]
        index = [file.number for file in files if file.name == self._index]
        self._openers.add(pid)
        if parent not in self._openers:
            self._add_writer(pid, descriptors, files)
        if not index:
            if len(descriptors) > max(1, self._opened[pid]):
                self._opened[pid] = len(descriptors)
                self._examine_mappings(pid)
            self._unlocked.pop(pid, None)
            return
        if len(index) > 1 and self._programs.get(pid, (LOADED,))[0] == LOADED:
            self._examine_mappings(pid)
        self._users.add(pid)
        # A forked process has the descriptors of its parent, but not the parent's locks. So a process is not
        # examined if its parent had -shm open.
        may_lack_locks = self._lists_locks and parent not in self._users
        if not may_lack_locks or self._has_lock(pid, descriptors, index[0], self._index):
            self._unlocked.pop(pid, None)
            return
        self._unlocked[pid] += 1
        if self._unlocked[pid] == SAMPLES_ENOUGH:
            self._lockless.add(pid)

    def _add_writer(self, pid: int, descriptors: Sequence[str], files: Sequence[OpenFile]) -> None:
        """Record whether a process with an open rollback journal holds a lock, as a writer must.

        `descriptors` are those of the database file; `files` are all open files of the process. If the folder
        DATABASE.lock exists, record nothing: the VFS unix-dotfile made it, and uses no locks of the system.
        """
        journals = [file.number for file in files if file.name == self._journal]
        if journals and self._lists_locks and not Path(f"{self._database}.lock").exists():
            has_lock = self._has_lock(pid, descriptors, journals[0], self._journal)
            self._writers[pid] = self._writers.get(pid, False) or has_lock

    def _has_lock(self, pid: int, descriptors: Iterable[str], number: str, path: str) -> bool:
        """Return whether a process has a lock on the database, or has just closed the file `path`.

        The process needs the lock only while it has `path` (the -shm file or the journal) open. `number` is
        the descriptor of `path`; `descriptors` are those of the database file.
        """
        folder = Path(f"/proc/{pid}")
        for _ in range(2):
            if any(map(shows_lock, (folder / "fdinfo" / number for number in descriptors))):
                return True
            with suppress(OSError):
                if str((folder / "fd" / number).readlink()).startswith(path):
                    continue
            return True
        return False

    def _examine_mappings(self, pid: int) -> None:
        """Record the executables and libraries that process `pid` maps, if it may use two SQLite libraries.

        Call it only if the process has the database open twice. Two SQLite libraries are possible if the
        process maps the beginning of -shm twice, or does not map -shm.
        """
        try:
            lines = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines()
        except OSError:
            return
        # A line such as 7f2c-7f3d r-xp 00000000 fe:00 1234 /usr/lib/libsqlite3.so.0
        mapped = [fields for line in lines if len(fields := line.split(maxsplit=5)) == 6]
        programs = {fields[5] for fields in mapped if "x" in fields[1]}
        beginnings = [
            fields for fields in mapped if fields[5].startswith(self._index) and not int(fields[2], 16)
        ]
        if len(beginnings) != 1:
            self._programs[pid] = LIBRARIES if beginnings else LOADED, programs

    def observations(self) -> list[PlainObservation]:
        """Return the signs as observations, each with the number of processes.

        For two SQLite libraries in a process, the trait `at` has all executables and libraries of the
        process, one per line. The parent of the workers finds the SQLite libraries among them.
        """
        kinds = Counter((kind, "\n".join(sorted(programs))) for kind, programs in self._programs.values())
        users = {pid for pid, (kind, _) in self._programs.items() if kind == LIBRARIES}
        if lockless := self._lockless - users:
            kinds[LOCKLESS, ""] = len(lockless)
        unlocked = [pid for pid, has_lock in self._writers.items() if not has_lock]
        if len(unlocked) > len(self._writers) / 2:
            kinds[NO_LOCKS, ""] = len(unlocked)
        file = Path(self._database).name
        return [
            (LOST_LOCKS, kind, count, "", {"file": file, "at": at}) for (kind, at), count in kinds.items()
        ]


class DeletedWals:
    """Collector of processes that use a deleted WAL.

    SQLite deletes a WAL only when no process has a lock on the database. If a process with a deleted WAL
    still has its lock, another program has deleted the WAL.
    """

    def __init__(self, database: str) -> None:
        self._database, self._wal = database, f"{database}-wal"
        self._users: set[int] = set()
        self._holders: set[int] = set()
        """Processes that had a lock on the database and a deleted WAL open."""
        self._writers: set[int] = set()
        """Processes that had a deleted WAL open after some process wrote into the deleted WAL."""

    def add(self, pid: int, files: Sequence[OpenFile]) -> None:
        wals = [file for file in files if file.is_deleted and file.name == self._wal]
        if not wals:
            return
        self._users.add(pid)
        descriptors = (file.number for file in files if file.name == self._database)
        if any(shows_lock(Path(f"/proc/{pid}/fdinfo/{number}")) for number in descriptors):
            self._holders.add(pid)
        if any(wal.is_written_when_deleted for wal in wals):
            self._writers.add(pid)

    def observations(self) -> list[PlainObservation]:
        """Return the numbers of processes that had a deleted WAL open, as observations.

        There is an observation for each combination of two facts: whether the processes had a lock on the
        database, and whether their WAL was written after its deletion.
        """
        kinds = Counter((pid in self._holders, pid in self._writers) for pid in self._users)
        return [
            (LOST_LOCKS, DELETED, count, "", deleted_traits(has_lock=has_lock, is_written=is_written))
            for (has_lock, is_written), count in kinds.items()
        ]


class Copiers:
    """Collector of programs such as cp that have a database open while its WAL or journal is in use.

    A program counts if its name is in COPIERS, and if it has neither the WAL nor -shm open.
    """

    def __init__(self, database: str) -> None:
        self._database = database
        self._seen: set[tuple[int, str, str]] = set()
        """Triples (process, COPIED or MOVED, name of the program)."""

    def add(self, pid: int, files: Sequence[OpenFile]) -> None:
        names = {file.name for file in files}
        if not names.isdisjoint((f"{self._database}-wal", f"{self._database}-shm")) or not self._is_in_use():
            return
        with suppress(OSError):
            folder = Path(f"/proc/{pid}")
            program = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
            if program not in COPIERS:
                return
            for file in files:
                if file.name == self._database:
                    is_writing = writes(folder / "fdinfo" / file.number)
                    self._seen.add((pid, MOVED if is_writing else COPIED, program))

    def _is_in_use(self) -> bool:
        with suppress(OSError):
            return Path(f"{self._database}-wal").stat().st_size > 0
        return Path(f"{self._database}-journal").exists()

    def observations(self) -> list[PlainObservation]:
        """Return an observation per kind (COPIED, MOVED) and program, with the number of its processes."""
        kinds = Counter((kind, program) for _, kind, program in self._seen)
        return [
            (TOUCHED, kind, count, "", {"program": program, "at": ""})
            for (kind, program), count in kinds.items()
        ]


def writes(information: Path) -> bool:
    """Return whether the file descriptor of /proc/PID/fdinfo/N is open for writing."""
    for line in information.read_text(encoding="ascii").splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & (os.O_WRONLY | os.O_RDWR) != 0
    return False


def deleted_traits(*, has_lock: bool, is_written: bool) -> dict[str, str]:
    """Return the traits (facts by name) of an observation of processes with a deleted WAL."""
    return {
        "file": "the WAL",
        "at": "",
        "lock": "held" if has_lock else "",
        "written": "yes" if is_written else "no",
    }


def lists_locks(folder: Path) -> bool:
    """Return whether the system lists locks in /proc. A test locks a temporary file in `folder`."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            return shows_lock(Path(f"/proc/self/fdinfo/{file.fileno()}"))
    except OSError:
        return False


def shows_lock(information: Path) -> bool:
    """Return whether /proc/PID/fdinfo/N lists a lock; False if the descriptor is closed."""
    with suppress(OSError):
        return "\nlock:" in information.read_text(encoding="ascii")
    return False
