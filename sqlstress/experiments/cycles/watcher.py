"""The process that looks at the WAL whenever a worker has ended a cycle. It holds no connection."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlstress.engine.loop import Window
from sqlstress.experiments.cycles.looks import POLL_S, Taking, lines_of
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS, Series
from sqlstress.targets.sqlite import walindex

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.place import SqlitePlace


class Watched:
    """What was seen of the WAL at the end of one worker's cycles."""

    def __init__(self, line: Any) -> None:
        self.looks = Taking(line)
        self._frames: list[int] = []
        self._checkpointed: list[int] = []
        self._restarts: list[int] = []
        self._salt: int | None = None
        self._anew = 0

    def note(self, seen: walindex.WalIndex) -> None:
        """Note a look. Another salt says that the WAL has begun anew since the one before."""
        if seen.frames:  # the salt of a WAL without frames is not yet that of its first ones
            self._anew += self._salt not in (None, seen.salt)
            self._salt = seen.salt
        self._restarts.append(self._anew)
        self._frames.append(seen.frames)
        self._checkpointed.append(seen.checkpointed)

    def series(self, worker: int) -> list[Series]:
        """Return one value a cycle of each figure."""
        figures = (
            (WAL_FRAMES, "frames", self._frames),
            (CHECKPOINTED_FRAMES, "frames", self._checkpointed),
            (WAL_RESTARTS, "restarts", self._restarts),
        )
        return [Series(name, unit, tuple(values), worker=worker) for name, unit, values in figures if values]


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
                # One that can't be read at this moment is looked at again: the worker goes on waiting.
                if watched.looks.is_requested() and (seen := walindex.read(self._database)):
                    watched.note(seen)
                    watched.looks.done()
            time.sleep(POLL_S)
        return [series for worker, one in enumerate(self._watched, 1) for series in one.series(worker)]

    def close(self) -> None:
        pass
