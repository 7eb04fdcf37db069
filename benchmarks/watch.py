"""Peak resident memory of a command and of its worker processes, sampled from outside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Protocol

import psutil

EVERY_S = 0.1


class Watcher(Protocol):
    """Looks at a command while it runs."""

    def watching(self, pid: int) -> AbstractContextManager[None]:
        """Look at a process and its children meanwhile."""


@dataclass(slots=True)
class PeakMemory:
    """Largest resident sets seen, in bytes. Memory that processes share counts in each that touched it."""

    parent: int = 0
    workers: dict[int, int] = field(default_factory=dict)
    """By process id."""
    shares: dict[int, int] = field(default_factory=dict)
    """The same, where what several processes share counts in each for its part; on macOS and Windows what it
    shares with nobody. Of the looks that met the most workers: whoever is the last to end has to itself what
    all of them shared."""
    _together: int = 0
    """How many workers those looks met."""

    @contextmanager
    def watching(self, pid: int) -> Iterator[None]:
        """Sample a process and its children meanwhile."""
        ended = Event()
        thread = Thread(target=self._sample_until, args=(psutil.Process(pid), ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _sample_until(self, parent: psutil.Process, ended: Event) -> None:
        while not ended.wait(EVERY_S):
            try:
                self.parent = max(self.parent, parent.memory_info().rss)
                children = parent.children(recursive=True)
            except psutil.Error:
                return
            looks = (self._look(child, parent) for child in children)
            self.take(dict(look for look in looks if look))

    def _look(self, child: psutil.Process, parent: psutil.Process) -> tuple[int, int] | None:
        """Return a worker's id and its share; None if it is none, or has ended meanwhile."""
        try:
            if child.pid not in self.workers and not is_worker(child, parent):
                return None
            known = child.memory_full_info()
        except psutil.Error:
            return None
        self.workers[child.pid] = max(self.workers.get(child.pid, 0), known.rss)
        return child.pid, getattr(known, "pss", known.uss)

    def take(self, shares: dict[int, int]) -> None:
        """Note a look at the workers: the share of each, in bytes, by its process id."""
        if len(shares) > self._together:
            self._together = len(shares)
            self.shares.clear()
        if len(shares) == self._together:
            for pid, share in shares.items():
                self.shares[pid] = max(self.shares.get(pid, 0), share)


def is_worker(child: psutil.Process, parent: psutil.Process) -> bool:
    """Return whether a process below a command is its worker: what it spawned, or what that has forked.

    multiprocessing has a helper of its own beside them.
    """
    ours = "spawn_main" in " ".join(child.cmdline())
    return ours and (sys.platform == "win32" or child.ppid() != parent.pid)
