"""Run of the command watch: samples of the locks until a limit of time or WAL size is reached."""

from __future__ import annotations

import sys
from collections import Counter
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
from sqlstress.experiments.watch.spec import DisplayOptions, HoldUsage, MappedSqlite, Process, Watch, Watching
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

# The command line of a process is read when a sample first sees the process, because the process may end
# soon.


MOST = 1000
"""Maximum number of processes that are listed. Locks of further processes are counted together."""
OTHERS = -1
"""Index that all processes beyond the first MOST share, because they are not listed."""
MOST_WORDS, LONGEST = 50, 300
"""Maximum number of words of a command line, and of characters of a word."""


class _Entry(NamedTuple):
    position: int
    process: psutil.Process | None


class Names:
    """Processes that held locks, in the order in which samples first saw them.

    The index of a process identifies it. Its ID does not, because the system may reuse the ID later.
    """

    def __init__(self) -> None:
        self.found: list[Process] = []
        self.others = 0
        """Number of processes beyond the first MOST."""
        self._by_pid: dict[int, _Entry] = {}
        self._gone: set[int] = set()

    def position(self, pid: int) -> int:
        """Return the index of a process in `found`; OTHERS for processes beyond the first MOST."""
        entry = self._by_pid.get(pid)
        if entry is None:
            entry = self._by_pid[pid] = self._add(pid)
        return entry.position

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
        """Record which processes have ended, so that a reused ID counts as a new process."""
        for pid, (position, process) in list(self._by_pid.items()):
            if pid > 0 and (process is None or not process.is_running()):
                self._gone.add(position)
                del self._by_pid[pid]

    def is_gone(self, position: int) -> bool:
        """Return whether the process at index `position` had ended at the last call of `refresh`."""
        return position in self._gone


def described(process: psutil.Process) -> Process:
    """Return command line, user and start time of a process, empty where they cannot be read."""
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
    """Return the SQLite libraries of a running process; empty if they cannot be read."""
    try:
        builds = builds_of_process(pid)
    except UsageError:
        return ()
    return tuple(
        MappedSqlite(build.version, build.file, has_wal_reset_bug(build.version)) for build in builds
    )


# Processor time and written data of processes show whether a process works during a long hold of the write
# lock, or waits for something else.


USAGE_EVERY_S = 0.05
"""Minimum seconds between two readings of a process's usage. A reading takes about 0.1 ms."""


class Usage(NamedTuple):
    """Processor time and written data of a process since its start, and its present state."""

    cpu_s: float
    written_bytes: int | None
    """Bytes written to disks; None if unknown."""
    status: str
    """Present state as in psutil, such as "sleeping", "running" or "disk-sleep"."""


def usage_of(pid: int) -> Usage | None:
    """Return the usage of a running process; None if the system does not allow to read it."""
    written = None
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        with process.oneshot():
            times, status = process.cpu_times(), process.status()
        if sys.platform != "darwin":  # macOS has no such counters.
            with suppress(psutil.Error):
                written = process.io_counters().write_bytes
        return Usage(times.user + times.system, written, status)
    return None


class HoldUsages:
    """Processor time and written data of each process during its longest hold of the write lock."""

    def __init__(self) -> None:
        self.longest: dict[int, HoldUsage] = {}
        """Usage during the longest hold, by index of the process."""
        self._hold: tuple[int, int] | None = None
        """Present hold, as in `add`."""
        self._first: tuple[float, Usage] | None = None
        """(Time, usage) at the start of the present hold; None if unknown."""
        self._read_s = 0.0
        self._states = Counter[str]()
        """Number of readings during the present hold, by state of the process (see `Usage.status`)."""

    def add(self, at_s: float, hold: tuple[int, int] | None, pid: int) -> None:
        """Read the usage of process `pid`, which holds the write lock, if USAGE_EVERY_S have passed.

        `hold` is (index of the process, number of its holds so far), which identifies the hold; None if the
        lock is free. `at_s` is the time of the sample.
        """
        is_new = hold != self._hold
        self._hold = hold
        if hold is None or (not is_new and at_s - self._read_s < USAGE_EVERY_S):
            return
        self._read_s = at_s
        usage = usage_of(pid)
        if is_new or usage is None or self._first is None:
            self._first = (at_s, usage) if is_new and usage else None
            self._states.clear()
            return
        self._states[usage.status] += 1
        self._keep(hold[0], at_s, usage)

    def _keep(self, position: int, at_s: float, usage: Usage) -> None:
        assert self._first is not None
        first_s, first = self._first
        seconds = at_s - first_s
        if position in self.longest and seconds < self.longest[position].seconds:
            return
        is_known = usage.written_bytes is not None and first.written_bytes is not None
        written = (usage.written_bytes or 0) - (first.written_bytes or 0) if is_known else None
        self.longest[position] = HoldUsage(
            seconds,
            usage.cpu_s - first.cpu_s,
            written,
            disk_share=self._states[psutil.STATUS_DISK_SLEEP] / self._states.total(),
            running_share=self._states[psutil.STATUS_RUNNING] / self._states.total(),
        )


MOST_EXAMINED = 12
"""Maximum number of processes whose SQLite libraries are read, which takes some ms each."""
USUAL_S = 10.0
"""Default duration of a watch, in seconds."""
STEP_S = 1.0
"""Time between updates of the displayed and saved result, in seconds."""
FIRST_STEP_S = 0.2
"""Time until the first update, in seconds.

A write to a deleted WAL is noticed only as a change of the deleted file between two updates. So the first
update comes early, for short watches.
"""
CAUSE_S = 2.0
"""Minimum length of a watch, in seconds, before --until-wal may end it.

The cause of the WAL's size can only be found with enough samples.
"""
LIST_S = 10.0
"""Minimum seconds between listings of all read locks. On Linux, a listing blocks changes of file locks."""


@dataclass(frozen=True, slots=True)
class WatchBench:
    """Objects that `WatchStudy.steps` uses: empty report, stop signals and display."""

    report: Report
    """Report without results, which describes the command and the computer."""
    signals: StopSignals
    """Signals, such as Ctrl+C, that end the watch."""
    observer: Observer
    """Display of the results so far."""


class WatchOpening:
    """Factory of the `WatchBench` of a watch. No files are left behind, because a watch creates none."""

    kept_folder = None
    stayed = ()

    def __init__(self, path: Path, command: tuple[str, ...]) -> None:
        self._path, self._command = path, command

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[WatchBench]:
        """Yield the objects for the watch. Signals that end it are caught during the with block."""
        with StopSignals() as signals:
            mounted = host.file_system_of(self._path.resolve().parent)
            warning = shared_file_system(mounted, "a lock that another host holds may not be seen")
            environment = Environment(host.describe_host(), mounted, (), None, (warning,) if warning else ())
            created = datetime.now(UTC).isoformat(timespec="seconds")
            yield WatchBench(Report(created, self._command, environment), signals, observer)


class WatchStudy:
    """Run of a watch: takes samples, and updates the result about once a second."""

    def __init__(self, path: Path, asked: Watching) -> None:
        """Open the database file without SQLite. Raises UsageError or EnvironmentFailure."""
        self._database, self._options = LockedFile(path), asked
        self._names = Names()
        self._tally = WatchTally(self._names.position)
        self._blank = Watch(str(path), asked)
        self._sqlite: dict[int, tuple[MappedSqlite, ...]] = {}
        """SQLite libraries by process ID."""
        self._usages = HoldUsages()
        self.until_s = asked.duration_s or (None if asked.until_held_s or asked.until_wal_bytes else USUAL_S)

    @property
    def watch(self) -> Watch:
        """Result of the watch so far."""
        names = self._names
        processes = [
            replace(
                process,
                gone=names.is_gone(position),
                sqlite=self._sqlite.get(process.pid, ()),
                usage=self._usages.longest.get(position),
            )
            for position, process in enumerate(names.found)
        ]
        return self._tally.watch(replace(self._blank, others=names.others), processes)

    def report(self, blank: Report) -> Report:
        """Return the report so far."""
        return replace(blank, results={"watch": self.watch})

    def steps(self, bench: WatchBench) -> Steps:
        """Take samples until the end of the watch; yield about once a second."""
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
        """Find the SQLite libraries of the main writers. This is slow, so call it after sampling."""
        for process in self.watch.processes[:MOST_EXAMINED]:
            if process.pid > 0 and not process.gone:
                self._sqlite[process.pid] = mapped_sqlite(process.pid)

    def _take_samples(self, bench: WatchBench) -> Steps:
        next_list_s, next_step_s = 0.0, FIRST_STEP_S
        for sample in sample_locks(self._options.rate, self._database.look):
            bench.signals.check()
            self._tally.add(sample)
            at_s = sample.asked_s
            self._usages.add(at_s, *self._holder())
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

    def _holder(self) -> tuple[tuple[int, int] | None, int]:
        """Return the present hold of the write lock (see `HoldUsages.add`), and its process ID.

        Return (None, 0) if the lock is free, or its process is not listed (OTHERS) or in another container.
        """
        hold = self._tally.hold
        pid = self._names.found[hold[0]].pid if hold and hold[0] != OTHERS else 0
        return (hold, pid) if pid > 0 else (None, 0)

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
        """Record what changes seldom: ended processes, file sizes and names, a dead writer's journal."""
        self._names.refresh()
        look, is_hot = self._database.look(), False
        if look.state == ROLLBACK and not look.locks and self._database.has_journal():
            # A writer creates and removes its journal while it holds the lock. So a journal without a lock
            # was left by a writer that died. Check lock, journal, lock and journal in this order, because a
            # writer may start or end between two checks.
            is_hot = not self._database.look().locks and self._database.has_journal()
        self._tally.add_files(self._database.wal_bytes(), is_hot)
        self._tally.add_names(*self._database.other_names())
        if openers := self._database.openers():
            self._tally.add_openers(openers)


def study_of(given: Mapping[str, Any], _: ReadWords) -> ObservationRequest:
    """Return the watch for the unparsed options `given`. Raises UsageError if invalid.

    The second parameter, which other studies need, is not used.
    """
    options = [option for group in (DisplayOptions, Watching) for option in options_of(group).values()]
    values = parse_options(options, given)
    if values["file"] is None:
        raise UsageError("give the database to watch: sqlstress watch app.db.")
    path = Path(values["file"])
    study = WatchStudy(path, built(Watching, values))
    return ObservationRequest(study, partial(WatchOpening, path), bool(values["plain"]))
