"""Study of the command watch: samples of the locks until the time is over or a limit is reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from sqlstress.engine.study import ObservationRequest, Observer, ReadWords, Steps
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiments.watch.show import now_line, now_page
from sqlstress.experiments.watch.spec import DisplayOptions, MappedSqlite, Process, Watch, Watching
from sqlstress.experiments.watch.tally import WatchTally
from sqlstress.machine import host
from sqlstress.machine.sqlite_builds import builds_of_process
from sqlstress.machine.warnings import shared_file_system
from sqlstress.options.option import options_of
from sqlstress.plan import built, parse_options
from sqlstress.report import Environment, Report
from sqlstress.sqlite_codes import has_wal_reset_bug
from sqlstress.system.interrupt import StopSignals
from sqlstress.targets.sqlite.lock_holders import ROLLBACK, LockedFile, sample_locks

# Command lines of processes. They are read when a process is first seen, because the process may end soon.


MOST = 1000
"""Maximum number of distinguished processes. The locks of further processes are counted together."""
OTHERS = -1
"""Common index of all processes beyond MOST."""
MOST_WORDS, LONGEST = 50, 300
"""Maximum number of words of a command line, and of characters of a word."""


class _Entry(NamedTuple):
    place: int
    process: psutil.Process | None


class Names:
    """Processes in the order in which they were first seen.

    The system may reuse the ID of an ended process, so `refresh` forgets the IDs of ended processes.
    """

    def __init__(self) -> None:
        self.found: list[Process] = []
        self.others = 0
        """Number of processes beyond MOST."""
        self._by_pid: dict[int, _Entry] = {}
        self._gone: set[int] = set()

    def place(self, pid: int) -> int:
        """Return the index of the process with this ID; OTHERS for each process beyond MOST."""
        entry = self._by_pid.get(pid)
        if entry is None:
            entry = self._by_pid[pid] = self._add(pid)
        return entry.place

    def _add(self, pid: int) -> _Entry:
        if len(self.found) >= MOST:
            self.others += 1
            return _Entry(OTHERS, None)
        process, description = None, Process(pid)
        if pid > 0:
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                description = described(process)
        self.found.append(description)
        return _Entry(len(self.found) - 1, process)

    def refresh(self) -> None:
        """Record the processes that have ended since the last call."""
        for pid, (place, process) in list(self._by_pid.items()):
            if pid > 0 and (process is None or not process.is_running()):
                self._gone.add(place)
                del self._by_pid[pid]

    def is_gone(self, place: int) -> bool:
        """Return whether the process with this index had ended at the last call of `refresh`."""
        return place in self._gone


def described(process: psutil.Process) -> Process:
    """Return the command line, user and start time of a process, as far as they can be read."""
    words: tuple[str, ...] = ()
    user = started = ""
    with suppress(psutil.Error):
        words = tuple(process.cmdline()) or (process.name(),)
    with suppress(psutil.Error, KeyError):
        user = process.username()
    with suppress(psutil.Error):
        started = datetime.fromtimestamp(process.create_time(), UTC).isoformat(timespec="seconds")
    return Process(process.pid, tuple(word[:LONGEST] for word in words[:MOST_WORDS]), user, started)


def mapped_sqlite(pid: int) -> tuple[MappedSqlite, ...]:
    """Return the SQLite libraries of a running process; empty if it cannot be examined."""
    try:
        builds = builds_of_process(pid)
    except UsageError:
        return ()
    return tuple(
        MappedSqlite(build.version, build.file, has_wal_reset_bug(build.version)) for build in builds
    )


MOST_EXAMINED = 12
"""Maximum number of processes whose SQLite libraries are read: each process takes some ms."""
USUAL_S = 10.0
"""Default duration of a watch, in seconds."""
STEP_S = 1.0
"""Length of a step in seconds. After each step the result is shown and saved."""
FIRST_STEP_S = 0.2
"""Length of the first step, in seconds.

It is short, because a write to a deleted WAL is noticed only by comparing the states after two steps.
"""
CAUSE_S = 2.0
"""Minimum duration of a watch that --until-wal ends, in seconds: the cause of the size needs samples."""
LIST_S = 10.0
"""Minimum seconds between listings of all read locks: on Linux a listing blocks all changes of file locks."""


@dataclass(frozen=True, slots=True)
class WatchBench:
    """Environment of a running watch: its empty report, the signals to stop, and the observer of the run."""

    report: Report
    signals: StopSignals
    observer: Observer


class WatchOpening:
    """Preparation of a watch. Unlike a measurement, a watch writes no files and measures no sync."""

    kept_folder = None
    stayed = ()

    def __init__(self, path: Path, command: tuple[str, ...]) -> None:
        self._path, self._command = path, command

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[WatchBench]:
        """Yield the environment of the watch. Signals to stop are caught during the with block."""
        with StopSignals() as signals:
            mounted = host.file_system_of(self._path.resolve().parent)
            warning = shared_file_system(mounted, "a lock that another host holds may not be seen")
            environment = Environment(host.describe_host(), mounted, (), None, (warning,) if warning else ())
            created = datetime.now(UTC).isoformat(timespec="seconds")
            yield WatchBench(Report(created, self._command, environment), signals, observer)


class WatchStudy:
    """Study of a watch: it takes samples, in steps of about a second."""

    def __init__(self, path: Path, asked: Watching) -> None:
        """Open the database file without SQLite. Raises UsageError and EnvironmentFailure, see LockedFile."""
        self._database, self._options = LockedFile(path), asked
        self._names = Names()
        self._tally = WatchTally(self._names.place)
        self._blank = Watch(str(path), asked)
        self._sqlite: dict[int, tuple[MappedSqlite, ...]] = {}
        """SQLite libraries by process ID."""
        self.until_s = asked.duration_s or (None if asked.until_held_s or asked.until_wal_bytes else USUAL_S)

    @property
    def watch(self) -> Watch:
        """Result of the watch so far."""
        names = self._names
        processes = [
            replace(process, gone=names.is_gone(place), sqlite=self._sqlite.get(process.pid, ()))
            for place, process in enumerate(names.found)
        ]
        return self._tally.watch(replace(self._blank, others=names.others), processes)

    def report(self, blank: Report) -> Report:
        """Return the report so far."""
        return replace(blank, results={"watch": self.watch})

    def steps(self, bench: WatchBench) -> Steps:
        """Take samples until the end of the watch, and yield after each step of about a second."""
        with closing(self._database):
            try:
                yield from self._take_samples(bench)
            except EnvironmentFailure as problem:
                if self._tally.last is None:
                    raise
                self._blank = replace(self._blank, error=str(problem))
            finally:
                self._examine_builds()

    def _examine_builds(self) -> None:
        """Find the SQLite libraries of the processes with most locks. It is slow: call it after sampling."""
        for process in self.watch.processes[:MOST_EXAMINED]:
            if process.pid > 0 and not process.gone:
                self._sqlite[process.pid] = mapped_sqlite(process.pid)

    def _take_samples(self, bench: WatchBench) -> Steps:
        next_list_s, next_step_s = 0.0, FIRST_STEP_S
        for sample in sample_locks(self._options.rate, self._database.look):
            bench.signals.check()
            self._tally.add(sample)
            at_s = sample.asked_s
            if at_s >= next_list_s and self._tally.is_pinned:
                self._tally.add_readers(self._database.readers())
                next_list_s = at_s + LIST_S
            over = self.until_s is not None and at_s >= self.until_s
            if over or self._is_held_too_long() or at_s >= next_step_s:
                self._examine_rest()
                self._check_wal()
                bench.observer.moment(lambda: now_page(self.watch), lambda: now_line(self.watch))
                yield
                next_step_s = at_s + STEP_S
            if over or self._blank.wal_full or self._blank.held_too_long is not None:
                return

    def _check_wal(self) -> None:
        limit = self._options.until_wal_bytes
        is_full = limit is not None and self._tally.wal_bytes >= limit
        self._blank = replace(self._blank, wal_full=is_full and self._tally.seconds >= CAUSE_S)

    def _is_held_too_long(self) -> bool:
        longest = self._tally.longest_now
        if self._options.until_held_s and longest and longest[1] > self._options.until_held_s:
            self._blank = replace(self._blank, held_too_long=longest[0], held_s=longest[1])
        return self._blank.held_too_long is not None

    def _examine_rest(self) -> None:
        """Record what changes seldom, once per step: ended processes, sizes, file names, hot journal."""
        self._names.refresh()
        look, is_hot = self._database.look(), False
        if look.state == ROLLBACK and not look.locks and self._database.has_journal():
            # A writer creates and removes its journal while it holds the lock. So a journal without a lock
            # was left by a writer that died. Look twice, because a writer may start or end between the two
            # calls.
            is_hot = not self._database.look().locks and self._database.has_journal()
        self._tally.add_files(self._database.wal_bytes(), is_hot)
        self._tally.add_names(*self._database.other_names())
        if openers := self._database.openers():
            self._tally.add_openers(openers)


def study_of(given: Mapping[str, Any], _: ReadWords) -> ObservationRequest:
    """Return the watch that the unparsed options `given` request. Raises UsageError if they are wrong."""
    options = [option for group in (DisplayOptions, Watching) for option in options_of(group).values()]
    values = parse_options(options, given)
    if values["file"] is None:
        raise UsageError("give the database to watch: sqlstress watch app.db.")
    path = Path(values["file"])
    study = WatchStudy(path, built(Watching, values))
    return ObservationRequest(study, partial(WatchOpening, path), bool(values["plain"]))
