"""Memory and descriptors of a command and of its worker processes as time goes on, sampled from outside."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import NamedTuple

import psutil


class Taken(NamedTuple):
    """What a process has at one moment."""

    memory: int
    """Resident set in bytes, pages that are shared included."""
    share: int
    """The same, where what several processes share counts in each for its part; on macOS and Windows what it
    shares with nobody. 0 where nobody asked."""
    descriptors: int
    """Open files; on Windows handles."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What was seen at one moment."""

    at_s: float
    """Since the watching began."""
    parent: Taken
    workers: dict[int, Taken]
    """By process id."""


@dataclass(slots=True)
class Watch:
    """Samples a command every so many seconds."""

    every_s: float
    shares: bool = False
    """Whether to look at what a process has to itself, which takes longer."""
    moments: list[Moment] = field(default_factory=list)

    @contextmanager
    def watching(self, pid: int) -> Iterator[None]:
        """Sample a process and its workers meanwhile."""
        ended = Event()
        thread = Thread(target=self._sample_until, args=(psutil.Process(pid), ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _sample_until(self, parent: psutil.Process, ended: Event) -> None:
        begun = time.perf_counter()
        known: set[int] = set()  # these need not be asked for their command lines again
        while not ended.wait(self.every_s):
            with suppress(psutil.Error):  # it has just ended
                moment = Moment(time.perf_counter() - begun, taken(parent), {})
                for child in parent.children(recursive=True):
                    with suppress(psutil.Error):
                        if child.pid in known or is_worker(child, parent):
                            known.add(child.pid)
                            moment.workers[child.pid] = taken(child, self.shares)
                self.moments.append(moment)


def taken(process: psutil.Process, shares: bool = False) -> Taken:
    """Return what a process has now."""
    if sys.platform == "win32":
        descriptors = process.num_handles()
    else:
        descriptors = process.num_fds()
    if not shares:
        return Taken(process.memory_info().rss, 0, descriptors)
    memory = process.memory_full_info()
    return Taken(memory.rss, getattr(memory, "pss", memory.uss), descriptors)


def is_worker(child: psutil.Process, parent: psutil.Process) -> bool:
    """Return whether a process below a command is its worker: what it spawned, or what that has forked.

    multiprocessing has a helper of its own beside them.
    """
    ours = "spawn_main" in " ".join(child.cmdline())
    return ours and (sys.platform == "win32" or child.ppid() != parent.pid)


def largest_shares(moments: Sequence[Moment]) -> list[int]:
    """Return each worker's largest share, in bytes, at the moments at which most workers were there.

    Whoever is the last to end has to itself what all of them shared.
    """
    most = max((len(moment.workers) for moment in moments), default=0)
    found: dict[int, int] = {}
    for moment in moments:
        if len(moment.workers) == most:
            for pid, its in moment.workers.items():
                found[pid] = max(found.get(pid, 0), its.share)
    return [*found.values()]
