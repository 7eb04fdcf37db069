"""A watch, carried out: samples at a rate, each at a random moment of its turn, until the time is up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from sqlstress.engine.study import LookingOn, Observer, ReadWords, Steps
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiments.watch.show import now_line, now_page
from sqlstress.experiments.watch.spec import Process, Shown, Watch, Watching
from sqlstress.experiments.watch.tally import Tally
from sqlstress.machine import host
from sqlstress.machine.warnings import shared_file_system
from sqlstress.options.option import options_of
from sqlstress.plan import all_parsed, built
from sqlstress.report import Environment, Report
from sqlstress.system.interrupt import StopSignals
from sqlstress.targets.sqlite.lock_holders import ROLLBACK, Database, sampled

# Who a process is: asked once, as soon as it is seen, since it may end soon.


MOST = 1000
"""So many processes are told apart; what others hold is counted for all of them together."""
OTHERS = -1
"""The place of those."""
MOST_WORDS, LONGEST = 50, 300
"""Words of a command line that are kept, and characters of each."""


class _Known(NamedTuple):
    place: int
    process: psutil.Process | None


class Names:
    """The processes that were seen, in the order in which they were: a number is used again by the system."""

    def __init__(self) -> None:
        self.found: list[Process] = []
        self.others = 0
        """Sightings of processes beyond MOST."""
        self._by_pid: dict[int, _Known] = {}
        self._gone: set[int] = set()

    def place(self, pid: int) -> int:
        """Return the place of a process; OTHERS for one too many."""
        known = self._by_pid.get(pid)
        if known is None:
            known = self._by_pid[pid] = self._meet(pid)
        return known.place

    def _meet(self, pid: int) -> _Known:
        if len(self.found) >= MOST:
            self.others += 1
            return _Known(OTHERS, None)
        process, found = None, Process(pid)
        if pid > 0:
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                found = described(process)
        self.found.append(found)
        return _Known(len(self.found) - 1, process)

    def refresh(self) -> None:
        """Look which of them have ended."""
        for pid, (place, process) in list(self._by_pid.items()):
            if pid > 0 and (process is None or not process.is_running()):
                self._gone.add(place)
                del self._by_pid[pid]

    def is_gone(self, place: int) -> bool:
        """Return whether a process had ended at the last refresh."""
        return place in self._gone


def described(process: psutil.Process) -> Process:
    """Return what the system tells of a process."""
    words: tuple[str, ...] = ()
    user = started = ""
    with suppress(psutil.Error):
        words = tuple(process.cmdline()) or (process.name(),)
    with suppress(psutil.Error, KeyError):
        user = process.username()
    with suppress(psutil.Error):
        started = datetime.fromtimestamp(process.create_time(), UTC).isoformat(timespec="seconds")
    return Process(process.pid, tuple(word[:LONGEST] for word in words[:MOST_WORDS]), user, started)


USUAL_S = 10.0
"""How long is watched where nobody says."""
STEP_S = 1.0
"""So often what was found is shown, and saved."""
FIRST_STEP_S = 0.2
"""Time of the first step: a change of a WAL that was deleted shows between two steps."""
LIST_S = 10.0
"""So often all who share a read lock are listed at most: Linux lets nobody lock a file meanwhile."""


@dataclass(frozen=True, slots=True)
class WatchBench:
    """What a watch needs around it."""

    report: Report
    signals: StopSignals
    observer: Observer


class WatchOpening:
    """Where a watch is carried out: nothing is written beside the database, and no sync is measured."""

    kept_folder = None
    stayed = ()

    def __init__(self, path: Path, command: tuple[str, ...]) -> None:
        self._path, self._command = path, command

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[WatchBench]:
        """Yield a bench. Signals to stop are caught meanwhile."""
        with StopSignals() as signals:
            mounted = host.file_system_of(self._path.resolve().parent)
            warning = shared_file_system(mounted, "a lock that another host holds may not be seen")
            environment = Environment(host.describe(), mounted, (), None, (warning,) if warning else ())
            created = datetime.now(UTC).isoformat(timespec="seconds")
            yield WatchBench(Report(created, self._command, environment), signals, observer)


class WatchStudy:
    """Watches; a step is a second."""

    def __init__(self, path: Path, asked: Watching) -> None:
        """Raise UsageError and EnvironmentFailure, as `Database` does."""
        self._database, self._asked = Database(path), asked
        self._names = Names()
        self._tally = Tally(self._names.place)
        self._blank = Watch(str(path), asked)
        self.until_s = asked.duration_s or (None if asked.until_held_s else USUAL_S)

    @property
    def watch(self) -> Watch:
        """What was found by now."""
        names = self._names
        found = [replace(one, gone=names.is_gone(place)) for place, one in enumerate(names.found)]
        return self._tally.watch(replace(self._blank, others=names.others), found)

    def report(self, blank: Report) -> Report:
        """Return what was found by now."""
        return replace(blank, results={"watch": self.watch})

    def steps(self, bench: WatchBench) -> Steps:
        """Take samples, and yield about once a second."""
        with closing(self._database):
            try:
                yield from self._sampled(bench)
            except EnvironmentFailure as problem:
                if self._tally.last is None:
                    raise
                self._blank = replace(self._blank, error=str(problem))

    def _sampled(self, bench: WatchBench) -> Steps:
        next_list_s, next_step_s = 0.0, FIRST_STEP_S
        for sample in sampled(self._asked.rate, self._database.look):
            bench.signals.check()
            self._tally.add(sample)
            at_s = sample.asked_s
            if at_s >= next_list_s and self._tally.is_pinned:
                self._tally.add_readers(self._database.readers())
                next_list_s = at_s + LIST_S
            over = self.until_s is not None and at_s >= self.until_s
            if over or self._is_held_too_long() or at_s >= next_step_s:
                self._look_around()
                bench.observer.moment(lambda: now_page(self.watch), lambda: now_line(self.watch))
                yield
                next_step_s = at_s + STEP_S
            if over or self._blank.held_too_long is not None:
                return

    def _is_held_too_long(self) -> bool:
        longest = self._tally.longest_now
        if self._asked.until_held_s and longest and longest[1] > self._asked.until_held_s:
            self._blank = replace(self._blank, held_too_long=longest[0])
        return self._blank.held_too_long is not None

    def _look_around(self) -> None:
        """Look at what need not be looked at often."""
        self._names.refresh()
        look, is_hot = self._database.look(), False
        if look.state == ROLLBACK and not look.locks and self._database.has_journal():
            # A writer makes its journal with the lock, and removes it with the lock.
            is_hot = not self._database.look().locks and self._database.has_journal()
        self._tally.add_files(self._database.wal_bytes(), is_hot)
        self._tally.add_names(*self._database.other_names())
        if openers := self._database.openers():
            self._tally.add_openers(openers)


def study_of(given: Mapping[str, Any], _: ReadWords) -> LookingOn:
    """Return the watch that options ask for, as they were typed. Raises UsageError."""
    options = [one for part in (Shown, Watching) for one in options_of(part).values()]
    values = all_parsed(options, given)
    if values["file"] is None:
        raise UsageError("give the database to watch: sqlstress watch app.db.")
    path = Path(values["file"])
    study = WatchStudy(path, built(Watching, values))
    return LookingOn(study, partial(WatchOpening, path), bool(values["plain"]))
