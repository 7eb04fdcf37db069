"""The process that looks at the WAL whenever a worker has ended a cycle. It holds no connection."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlstress.engine.loop import Window
from sqlstress.experiments.classics.cycles_worker import ASKED, POLL_S, TAKEN, lines_of
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS, Series
from sqlstress.targets.sqlite import walindex

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.place import SqlitePlace


FIGURES = ((WAL_FRAMES, "frames"), (CHECKPOINTED_FRAMES, "frames"), (WAL_RESTARTS, "restarts"))
"""What is noted at each look: its name, and its unit."""


class Watched:
    """What was seen of the WAL at the end of one worker's cycles."""

    def __init__(self, line: Any) -> None:
        self._line = line
        self._looks: list[tuple[int, int, int]] = []
        self._salt: int | None = None
        self._anew = 0

    def is_waiting(self) -> bool:
        """Return whether the worker waits for a look."""
        return bool(self._line[ASKED] > self._line[TAKEN])

    def note(self, seen: walindex.WalIndex) -> None:
        """Note a look, and let the worker go on. Another salt says that the WAL has begun anew."""
        if seen.frames:  # the salt of a WAL without frames is not yet that of its first ones
            self._anew += self._salt not in (None, seen.salt)
            self._salt = seen.salt
        self._looks.append((seen.frames, seen.checkpointed, self._anew))
        self._line[TAKEN] = self._line[ASKED]

    def series(self, worker: int) -> list[Series]:
        """Return one value a cycle of each figure; nothing without a look."""
        figures = zip(FIGURES, zip(*self._looks, strict=True), strict=False)
        return [Series(name, unit, values, worker=worker) for (name, unit), values in figures]


class CycleWatcher:
    """Answers the workers; a companion of theirs."""

    def __init__(self, case: Case, place: SqlitePlace, shared: tuple[Any, ...]) -> None:
        _, words = shared
        self._database = place.paths[0]
        self._watched = [Watched(line) for line in lines_of(words)]

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Look whenever a worker asks for it, until all have ended."""
        while not ended():
            for watched in self._watched:
                # A WAL that can't be read at this moment is looked at again: the worker goes on waiting.
                if watched.is_waiting() and (seen := walindex.read(self._database)):
                    watched.note(seen)
            time.sleep(POLL_S)
        return [
            series for worker, watched in enumerate(self._watched, 1) for series in watched.series(worker)
        ]

    def close(self) -> None:
        pass
