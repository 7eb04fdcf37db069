"""Parent process's part of the experiment `exec`."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psutil

from sqlstress.analysis.causes import code_in
from sqlstress.analysis.wording import size
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.exec import (
    ANSWER,
    DELETED_LOCK,
    ENDED,
    ESCAPED,
    MOMENTS,
    ORIGINAL,
    STDERR,
    TIMEOUTS,
    TOUCHED,
    UNUSED,
)
from sqlstress.experiments.exec.command_text import CommandText
from sqlstress.experiments.exec.refusal import CURE, lockless_place
from sqlstress.experiments.exec.sampling import FIRST_PID, REACHED, SHARED, STRAYED, deleted_traits
from sqlstress.experiments.exec.worker import TRIAL
from sqlstress.machine.sqlite_builds import builds_of_files
from sqlstress.recording import (
    DAMAGE_CODES,
    DELETED,
    LIBRARIES,
    LOADED,
    LOCKLESS,
    LOST_LOCKS,
    MOVED,
    NO_LOCKS,
)
from sqlstress.report import Check
from sqlstress.report.results import Sighting
from sqlstress.sqlite_codes import BUSY, LOCKED
from sqlstress.statistics.units import NS_PER_S, plural
from sqlstress.system.processes import GRACE_S
from sqlstress.system.sharing import shared_array
from sqlstress.targets.sqlite import open_files
from sqlstress.user_work.parent import UserWork

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.engine.protocols import Outcome
    from sqlstress.report import Trial, Verdict
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Place
    from sqlstress.targets.sqlite.place import SqlitePlace


_STOPPED = "the original was used"
"""Key in `carry`, a dictionary that all trials share, for the error text if commands used the original.

With this text, all later trials fail, too.
"""
LONG_NS = 86_400 * NS_PER_S
"""One day, in ns. To detect reads of a file, its access time is set a day before its modification time.

With the mount option relatime, a read updates only such an access time: before the modification time, or
older than a day.
"""
SEARCH_S = 0.5
"""Minimum seconds between searches for deleted WALs. A search lists all open files of the system."""
FILES = "files of the database"
LOOKS_ENOUGH = 50
"""Number of samples of open files that prove that commands do not use the copy, if none shows it open."""


class ExecWork(UserWork):
    """Parent process's part of a trial of exec: database, use of the original, deleted WALs.

    At the end of the trial, it kills all processes that the commands left running.
    """

    redefines = True

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self._trial = secrets.token_hex(16)
        self._flags = shared_array("q", FIRST_PID + case.concurrency)
        self.shared = (*self.shared, self._flags, self._trial)
        self._escaped = 0
        self._is_wrong = False
        """Whether a check of the data failed."""
        self._deleted: dict[int, int] = {}
        """Modification time of a deleted WAL when first seen, in ns, by process ID."""
        self._lost: set[int] = set()
        """IDs of processes that wrote into a deleted WAL."""
        self._next_search_s = 0.0
        self._copy_is_untouched = self._copy_is_unread = False
        self._identity: open_files.Identity | None = None
        """Identity of the database file before the load; None if there is no file."""
        self._original: Original | None = None
        """Monitor of the original --database; None without a copy, or for the empty command."""

    def create(self, pulse: Pulse) -> None:
        if _STOPPED in self._carry:
            raise EnvironmentFailure(self._carry[_STOPPED])
        super().create(pulse)

    def begins(self, pulse: Pulse) -> None:
        super().begins(pulse)
        if self.place.stores and not self.case.server:
            self._identity = open_files.identity(self._database)
        if self.data.database and self.case.spec.command and self.place.stores:
            self._original = Original(self.data.database, self._database, (TRIAL, self._trial))

    @property
    def _database(self) -> Path:
        """Database file of the commands; invalid for a server or a target that stores nothing."""
        return Path(cast("SqlitePlace", self.place).paths[0])

    def meanwhile(self, window: Window, pulse: Pulse) -> None:
        super().meanwhile(window, pulse)
        self._check_original()
        self._find_deleted_wals()

    def ended(self, pulse: Pulse) -> None:
        super().ended(pulse)
        self._check_original()

    def _find_deleted_wals(self) -> None:
        """Record the processes that use a deleted WAL (Linux only), at most once per SEARCH_S."""
        now_s = time.monotonic()
        is_due = now_s >= self._next_search_s and not self.case.server
        if not (is_due and self.place.stores and self.case.spec.command):
            return
        self._next_search_s = now_s + SEARCH_S
        for path in cast("SqlitePlace", self.place).paths:
            openers = open_files.openers(Path(os.path.realpath(path)))
            for opener in openers.seen if openers else ():
                if opener.deleted_wal and opener.written_ns > self._deleted.setdefault(
                    opener.pid, opener.written_ns
                ):
                    self._lost.add(opener.pid)

    def _check_original(self) -> None:
        """Raise EnvironmentFailure if commands use the original database; later trials will fail, too."""
        if self._original:
            strayed, reached = bool(self._flags[STRAYED]), bool(self._flags[REACHED])
            try:
                self._original.check(opened_by_command=strayed, copy_was_opened=reached)
            except EnvironmentFailure as failure:
                self._carry[_STOPPED] = str(failure)
                raise

    def proofs(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        found = [outcome.findings for outcome in outcomes if outcome.findings]
        sightings = [Sighting(*seen) for findings in found for seen in findings.sightings]
        if count := max(len(self._lost), writers_in(sightings)):
            example = f"{plural(count, 'process')} wrote into a deleted WAL"
            yield Check(FILES, "failed", count, count, (example,))

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        self._end_all()
        # The checks that follow may change the files of the copy.
        self._copy_is_untouched = self._original is not None and self._original.copy_is_untouched
        self._copy_is_unread = self._original is not None and self._original.copy_is_unread
        verdict = super().verify(outcomes, pulse)
        self._is_wrong = verdict.status == "failed"
        return verdict

    def explain(self, trial: Trial) -> Trial:
        return replace(trial, sightings=tuple(self._with_text(trial.sightings)))

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        trial = replace(trial, sightings=tuple(with_libraries(trial.sightings)))
        if self._escaped:
            trial = replace(trial, sightings=(*trial.sightings, Sighting(ENDED, ESCAPED, self._escaped)))
        trial = replace(trial, sightings=tuple(self._with_lockless(trial)))
        trial = self.explain(trial)
        deleted = self._deleted_wals(trial.sightings)
        trial = replace(trial, sightings=(*trial.sightings, *deleted))
        if self._original:
            trial = replace(trial, sightings=(*trial.sightings, *self._uses(trial, self._original)))
        return super().complete(trial, pulse)

    def _deleted_wals(self, sightings: Sequence[Sighting]) -> Iterator[Sighting]:
        """Yield an observation of processes with a deleted WAL, other than those in `sightings`.

        `sightings` has the observations of the workers, which do not see processes that have left the process
        group of their command.
        """
        seen = sum(sighting.count for sighting in sightings if sighting.what == DELETED)
        if (unseen := len(self._deleted) - seen) > 0:
            is_written = len(self._lost) > writers_in(sightings)
            traits = deleted_traits(has_lock=False, is_written=is_written)
            yield Sighting(LOST_LOCKS, DELETED, unseen, traits=traits)

    def _with_lockless(self, trial: Trial) -> Iterator[Sighting]:
        """Yield the observations of a trial. If a script disables SQLite's locks, add its line.

        The line is added only if there are other signs of missing locks, because it may concern another
        database.
        """
        place = lockless_place(self.case.spec.command) if self.case.spec.command else ""
        unlocked = [sighting for sighting in trial.sightings if sighting.what == NO_LOCKS]
        codes = {code & 0xFF for code in map(code_in, printed_in(trial.sightings)) if code}
        is_wrong = self._is_wrong or not codes.isdisjoint(DAMAGE_CODES)
        yield from (sighting for sighting in trial.sightings if not place or sighting.what != NO_LOCKS)
        if place and (unlocked or is_wrong):
            count = sum(sighting.count for sighting in unlocked) or 1
            traits = {"file": "the database", "at": place}
            yield Sighting(LOST_LOCKS, NO_LOCKS, count, traits=traits)

    def _with_text(self, sightings: Sequence[Sighting]) -> Iterator[Sighting]:
        """Yield the observations of a trial, and facts in the command's text that explain them.

        These are programs that copy or move the database and, after lock errors, the busy timeouts.
        """
        if not self.case.spec.command or self.case.server or not self.place.stores:
            yield from sightings
            return
        name = self._database.name
        is_replaced = open_files.identity(self._database) != self._identity
        is_moved = is_replaced or any(is_deleted(seen, name) for seen in sightings)
        programs = [sighting for sighting in sightings if sighting.topic == TOUCHED]
        yield from (seen for seen in sightings if seen.topic != TOUCHED and not is_deleted(seen, name))
        text = CommandText(self.case.spec.command, self.case.spec.stdin)
        yield from touches(programs, text, name, is_shared=bool(self._flags[SHARED]), is_moved=is_moved)
        codes = {code & 0xFF for code in map(code_in, printed_in(sightings)) if code}
        if not codes.isdisjoint((BUSY, LOCKED)):
            yield Sighting(TIMEOUTS, "", 1, traits=text.timeouts()._asdict())

    def _uses(self, trial: Trial, original: Original) -> Iterator[Sighting]:
        """Yield observations of an unused copy of the database, and of changes to the original."""
        if original.unexplained:
            yield Sighting(ORIGINAL, original.unexplained, 1)
        if original.users:
            changed, pid = original.users
            yield Sighting(ORIGINAL, changed, 1, traits={"pid": str(pid)})
        samples = sum(sighting.count for sighting in trial.sightings if sighting.topic == MOMENTS)
        is_known = self._copy_is_unread or samples >= LOOKS_ENOUGH
        if is_known and trial.transactions and not self._flags[REACHED] and self._copy_is_untouched:
            yield Sighting(UNUSED, "copy", max(1, samples))

    def discard(self) -> None:
        self._end_all()
        super().discard()

    def _end_all(self) -> None:
        """Kill processes that left their process group, and the commands of killed workers."""
        if self.place.stores:
            self._escaped += end_marked(TRIAL, self._trial)


def printed_in(sightings: Iterable[Sighting]) -> list[str]:
    """Return the error messages printed by commands."""
    return [sighting.example for sighting in sightings if sighting.topic in (STDERR, ANSWER)]


def is_deleted(sighting: Sighting, name: str) -> bool:
    """Return whether an observation is a lock that a process held on the deleted file `name`."""
    return sighting.topic == DELETED_LOCK and sighting.what == name


def touches(
    seen: Sequence[Sighting], text: CommandText, file: str, *, is_shared: bool, is_moved: bool
) -> Iterator[Sighting]:
    """Yield observations of programs that copied or moved the database `file` while it was in use.

    `seen` has the programs that samples showed with the file open, `text` the commands that copy or move it.
    A program that is only in the text may run while the file is not in use. So such a copy counts only if two
    commands had the file open at once (`is_shared`), and a move only if the file was moved or deleted
    (`is_moved`).
    """
    named = text.touches()
    programs = {(sighting.what, sighting.traits["program"]) for sighting in seen}
    for touch in named:
        is_certain = (touch.kind, touch.program) in programs
        is_probable = is_moved if touch.kind == MOVED else is_shared and not text.has_own_lock
        if is_certain or is_probable:
            yield Sighting(TOUCHED, touch.kind, 1, traits={**touch._asdict(), "file": file})
    known = {(touch.kind, touch.program) for touch in named}
    for sighting in seen:
        if (sighting.what, sighting.traits["program"]) not in known:
            yield replace(sighting, traits={**sighting.traits, "file": file})
    if is_moved and MOVED not in {kind for kind, _ in known | programs}:
        yield Sighting(TOUCHED, MOVED, 1, traits={"file": file, "program": "", "at": ""})


def writers_in(sightings: Iterable[Sighting]) -> int:
    """Return the number of processes that wrote into a deleted WAL."""
    return sum(
        sighting.count
        for sighting in sightings
        if sighting.what == DELETED and sighting.traits["written"] == "yes"
    )


def end_marked(name: str, value: str) -> int:
    """Kill all other processes whose environment variable `name` has this value; return their number."""
    killed = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # The process has ended, or belongs to another user.
            if process.pid != os.getpid() and process.environ().get(name) == value:
                killed.append(process)
                process.kill()
    psutil.wait_procs(killed, GRACE_S)
    return len(killed)


def with_libraries(sightings: Sequence[Sighting]) -> Iterator[Sighting]:
    """Yield the observations, in which lists of a process's program files are cut to SQLite libraries.

    Omit processes that opened the database twice, but with one library. Omit processes without a lock if
    another process with two libraries explains the lost locks.
    """
    kinds = {sighting.what for sighting in sightings if sighting.topic == LOST_LOCKS}
    for sighting in sightings:
        if sighting.what == LOCKLESS and LIBRARIES in kinds:
            continue
        if sighting.topic != LOST_LOCKS or sighting.what not in (LIBRARIES, LOADED):
            yield sighting
            continue
        libraries = sqlite_files(sighting.traits["at"])
        if sighting.what == LIBRARIES or len(libraries) > 1:
            yield replace(sighting, traits={**sighting.traits, "at": " and ".join(libraries)})


@cache
def sqlite_files(paths: str) -> list[str]:
    """Return the files that contain SQLite, sorted. `paths` has a path per line."""
    return [build.file for build in builds_of_files(paths.splitlines())]


# The parent process compares the state of the original with its state before the load, about ten times a
# second. It does not open the original: the user's program that calls `sqlstress.measure` may have a
# connection to the original in this process. On POSIX, closing the file would drop the locks of that
# connection.


State = dict[str, tuple[int, int]]
"""Size in bytes and modification time in ns of the database, its WAL and its journal, by name."""


def state_of(database: Path) -> State:
    """Return size and modification time of a database, its WAL and its journal, if they exist."""
    state: State = {}
    for suffix in ("", "-wal", "-journal"):
        path = database.with_name(f"{database.name}{suffix}")
        with suppress(OSError):
            status = path.stat()
            state[path.name] = status.st_size, status.st_mtime_ns
    return state


def changes(before: State, now: State) -> str:
    """Return text on the changes of files, such as "app.db was written"; empty without changes."""
    texts = []
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if old is None or new is None:
            texts.append(f"{name} {'appeared' if new else 'disappeared'}")
        elif old[0] != new[0]:
            texts.append(f"{name} changed from {size(old[0])} to {size(new[0])}")
        else:
            texts.append(f"{name} was written")
    return ", ".join(texts)


def marked_unread(file: Path) -> int | None:
    """Set a file's access time far back, so that any read changes it; return this time in ns.

    Return None on failure, or if the file system does not update access times (noatime).
    """
    probe = file.with_name(f"{file.name}-probe")
    try:
        long_ago_ns = file.stat().st_mtime_ns - LONG_NS
        probe.write_bytes(b"0")
        os.utime(probe, ns=(long_ago_ns, probe.stat().st_mtime_ns))
        probe.read_bytes()
        if probe.stat().st_atime_ns == long_ago_ns:
            return None
        os.utime(file, ns=(long_ago_ns, file.stat().st_mtime_ns))
        return file.stat().st_atime_ns
    except OSError:
        return None
    finally:
        probe.unlink(missing_ok=True)


class Original:
    """Monitor that detects commands that use the original --database instead of the trial's copy.

    It observes the files of the original and of the copy while the workers of one trial run.
    """

    def __init__(self, database: str, copy: Path, marker: tuple[str, str]) -> None:
        """`database` is the path of the original, `copy` the path of the trial's copy.

        `marker` is an environment variable (name, value) of all commands of the trial, to recognize them.
        """
        self._path, self._copy, self._marker = Path(os.path.realpath(database)), copy, marker
        self._before, self._copy_before = state_of(self._path), state_of(copy)
        self._read_ns = marked_unread(copy)
        self.unexplained = ""
        """Changes of the original by an unknown program, as text; empty if there were none."""
        self.users: tuple[str, int] | None = None
        """(Changes as text, process ID) if the original changed while another program had it open."""

    @property
    def copy_is_untouched(self) -> bool:
        """Whether no file of the copy has changed since the load began."""
        return state_of(self._copy) == self._copy_before

    @property
    def copy_is_unread(self) -> bool:
        """Whether no program has opened, and so read, the copy; False if unknown."""
        with suppress(OSError):
            return self._read_ns == self._copy.stat().st_atime_ns
        return False

    def check(self, *, opened_by_command: bool, copy_was_opened: bool) -> None:
        """Raise EnvironmentFailure if a command used the original; record changes by other programs.

        The workers sample the open files of commands: `opened_by_command` is whether a sample showed the
        original open, `copy_was_opened` whether a sample showed the copy open.
        """
        if opened_by_command:
            raise self._failure("uses", "a command has it open")
        now = state_of(self._path)
        if not (changed := changes(self._before, now)):
            return
        users = open_files.openers(self._path)
        if users and any(self._is_command(user.pid) for user in users.seen):
            raise self._failure("uses", changed)
        if users and users.seen:
            self.users = changed, users.seen[0].pid
        elif self.copy_is_untouched and not copy_was_opened:
            raise self._failure("probably uses", f"{changed}, and no command has used the copy")
        elif users and not users.hidden:
            raise self._failure("probably uses", f"{changed}, and no other program has it open")
        else:
            self.unexplained = changed
        self._before = now

    def _is_command(self, pid: int) -> bool:
        name, value = self._marker
        with suppress(psutil.Error, OSError):
            return psutil.Process(pid).environ().get(name) == value
        return False

    def _failure(self, verb: str, evidence: str) -> EnvironmentFailure:
        return EnvironmentFailure(
            f"the command {verb} the original {str(self._path)!r:.200}, not its copy: {evidence}. The load "
            f"was stopped. {CURE}"
        )
