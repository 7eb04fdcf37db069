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
    shares with nobody."""

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
            for child in children:
                self._sample(child, parent)

    def _sample(self, child: psutil.Process, parent: psutil.Process) -> None:
        try:
            if child.pid in self.workers or is_worker(child, parent):
                known = child.memory_full_info()
                share = getattr(known, "pss", known.uss)
                self.workers[child.pid] = max(self.workers.get(child.pid, 0), known.rss)
                self.shares[child.pid] = max(self.shares.get(child.pid, 0), share)
        except psutil.Error:
            return  # it has ended meanwhile


def is_worker(child: psutil.Process, parent: psutil.Process) -> bool:
    """Return whether a process below a command is its worker: what it spawned, or what that has forked.

    multiprocessing has a helper of its own beside them.
    """
    ours = "spawn_main" in " ".join(child.cmdline())
    return ours and (sys.platform == "win32" or child.ppid() != parent.pid)
