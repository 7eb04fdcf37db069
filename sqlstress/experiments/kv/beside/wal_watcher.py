"""A process that looks at the WALs of a case from outside: it holds no connection."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlstress.engine.tally import Window
from sqlstress.experiments.kv.beside.timing import Timing, largest
from sqlstress.statistics.series import CHECKPOINTED_FRAMES, LARGEST_WAL, WAL_FRAMES, WAL_SIZE, Series
from sqlstress.targets.sqlite import walindex

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.place import SqlitePlace


class WalWatcher:
    """Looks at every file once in each interval. What it tells is summed over the files."""

    def __init__(self, case: Case, place: SqlitePlace, _shared: tuple[Any, ...]) -> None:
        self._case = case
        self._files = place.paths

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Look at all files, again and again, while the window is open."""
        timing = Timing(self._case, window, ended)
        frames, checkpointed, size, of_one = (
            largest(name, unit, timing.interval_ns)
            for name, unit in (
                (WAL_FRAMES, "frames"),
                (CHECKPOINTED_FRAMES, "frames"),
                (WAL_SIZE, "bytes"),
                (LARGEST_WAL, "bytes"),
            )
        )
        for _ in timing.rounds():
            at_ns = timing.within(time.perf_counter_ns())
            if at_ns is None:
                continue
            sizes = [walindex.wal_bytes(path) for path in self._files]
            found = [walindex.read(path) for path in self._files]
            size.add(at_ns, sum(sizes))
            of_one.add(at_ns, max(sizes))
            seen = [one for one in found if one]
            if len(seen) == len(found):  # else a sum would be one of fewer files
                frames.add(at_ns, sum(one.frames for one in seen))
                checkpointed.add(at_ns, sum(one.checkpointed for one in seen))
        return [figure.series() for figure in (frames, checkpointed, size, of_one)]

    def close(self) -> None:
        pass
