"""Memory and descriptors of a command and of its worker processes as time goes on, sampled from outside."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

import psutil

from benchmarks.watch import is_worker


@dataclass(frozen=True, slots=True)
class Moment:
    """What was seen at one moment."""

    at_s: float
    """Since the watching began."""
    parent_bytes: int
    """Resident set, pages that are shared included."""
    parent_descriptors: int
    """Open files; on Windows handles."""
    workers: int
    worker_bytes: int
    """The largest worker's resident set."""
    worker_descriptors: int
    """Of the worker that has most."""


@dataclass(slots=True)
class Course:
    """Samples a command every so many seconds."""

    every_s: float
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

    def loaded(self, workers: int) -> list[Moment]:
        """Return the moments at which so many workers were there."""
        return [moment for moment in self.moments if moment.workers >= workers]

    def _sample_until(self, parent: psutil.Process, ended: Event) -> None:
        begun = time.perf_counter()
        known: set[int] = set()
        while not ended.wait(self.every_s):
            try:
                workers = _workers(parent, known)
                self.moments.append(
                    Moment(time.perf_counter() - begun, *_taken(parent), len(workers), *_most(workers))
                )
            except psutil.Error:
                pass  # a process has just ended


def _workers(parent: psutil.Process, known: set[int]) -> list[psutil.Process]:
    """Return the workers; those that are known need not be asked for their command lines again."""
    children = parent.children(recursive=True)
    found = [child for child in children if child.pid in known or is_worker(child, parent)]
    known.update(child.pid for child in found)
    return found


def _taken(process: psutil.Process) -> tuple[int, int]:
    """Return the resident set in bytes and the descriptors of a process."""
    if sys.platform == "win32":
        return process.memory_info().rss, process.num_handles()
    return process.memory_info().rss, process.num_fds()


def _most(workers: list[psutil.Process]) -> tuple[int, int]:
    taken = [_taken(worker) for worker in workers]
    return max((one for one, _ in taken), default=0), max((one for _, one in taken), default=0)
