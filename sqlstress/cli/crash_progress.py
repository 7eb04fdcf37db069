"""The progress of a crash test, on stderr: which round, what was found, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from sqlstress.cli.progress import LAYOUT, REDRAW_S, clock_text
from sqlstress.report import Kills

Watch = Callable[[Kills], None]


class CrashBar:
    """Draws a tqdm bar over the rounds."""

    def __init__(self, bar: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar, self._clock = bar, clock
        self._started = self._drawn = clock()

    def __call__(self, kills: Kills) -> None:
        """Draw what has been found by now; called after every round."""
        now = self._clock()
        if now - self._drawn < REDRAW_S and kills.rounds < kills.planned:
            return
        self._drawn = now
        left = (now - self._started) / kills.rounds * (kills.planned - kills.rounds)
        self._bar.total, self._bar.n = kills.planned, kills.rounds
        self._bar.set_description_str(f"round {kills.rounds} of {kills.planned}", refresh=False)
        self._bar.unit = (
            f"{kills.kills:,} kills, {kills.lost:,} lost, {kills.torn:,} torn  {clock_text(left):>5} left"
        )
        try:
            self._bar.refresh()
        except OSError:
            pass  # the terminal is gone; the test need not be


@contextmanager
def watcher(visible: bool) -> Iterator[Watch]:
    """Yield what is told after every round: a bar that is removed at the end, or nobody."""
    if not visible:
        yield lambda kills: None
        return
    from tqdm import tqdm

    tqdm.set_lock(RLock())
    with tqdm(
        desc="examining this machine", total=1.0, unit="", leave=False, bar_format=LAYOUT, dynamic_ncols=True
    ) as bar:
        yield CrashBar(bar)
