"""Who a process is: asked once, as soon as it is seen, since it may end soon."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import psutil

from sqlstress.experiments.watch.results import Process

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
