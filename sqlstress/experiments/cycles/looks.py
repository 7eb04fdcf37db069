"""A look at the WAL at the end of each cycle: the worker asks for it, and waits until it was taken.

The worker can't look itself: on POSIX, closing one of the database's files would drop its locks. So a
process beside it looks, and what it sees belongs to that cycle exactly, since nothing is written
meanwhile. Each worker has a line of shared 64-bit words: the cycle for which it asks, the cycle for
which a look was taken, and whether it has done all its cycles.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlstress.system.sharing import shared_array

if TYPE_CHECKING:
    from sqlstress.targets.place import Place

_WORDS = 8
_ASKED, _TAKEN, _FINISHED = range(3)
POLL_S = 100e-6
PATIENCE_S = 2.0
"""A worker that waited so long asks no more: who looks has died, and the trial says so."""


def is_watched(place: Place) -> bool:
    """Return whether there is a WAL to look at."""
    return place.stores and place.case.settings.journal_mode == "wal"


def shared_words(workers: int) -> Any:
    """Return the shared words of so many workers."""
    return shared_array("q", _WORDS * workers)


def lines_of(words: Any) -> list[Any]:
    """Return each worker's own words."""
    view = memoryview(words).cast("B").cast("q")
    return [view[start : start + _WORDS] for start in range(0, len(view), _WORDS)]


class Asking:
    """A worker's side."""

    def __init__(self, words: Any, worker: int) -> None:
        """`worker` counts from 1."""
        self._lines = lines_of(words)
        self._own = self._lines[worker - 1]
        self._answered = True

    def wait(self, cycle: int) -> None:
        """Ask for the look at the end of a cycle (from 1), and wait until it was taken."""
        if not self._answered:
            return
        self._own[_ASKED] = cycle
        until = time.perf_counter() + PATIENCE_S
        while self._own[_TAKEN] < cycle and self._answered:
            time.sleep(POLL_S)
            self._answered = time.perf_counter() < until

    def is_last(self) -> bool:
        """Say that all cycles are done; return whether every worker has said so."""
        self._own[_FINISHED] = 1
        return all(line[_FINISHED] for line in self._lines)


class Taking:
    """The side of the process that looks, for one worker."""

    def __init__(self, line: Any) -> None:
        self._line = line

    def is_requested(self) -> bool:
        """Return whether the worker waits for a look."""
        return bool(self._line[_ASKED] > self._line[_TAKEN])

    def done(self) -> None:
        """Say that the look was taken."""
        self._line[_TAKEN] = self._line[_ASKED]
