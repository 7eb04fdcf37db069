"""The progress of a crash test, on stderr: which round or image, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from sqlstress.cli.progress import LAYOUT, REDRAW_S, clock_text
from sqlstress.experiments.crash.result import Kills
from sqlstress.experiments.power_loss.result import PowerLoss
from sqlstress.experiments.power_loss.shown.findings import name

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


class PowerBar:
    """Draws a tqdm bar over the images."""

    def __init__(self, bar: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar, self._clock, self._drawn = bar, clock, clock()

    def __call__(self, loss: PowerLoss) -> None:
        """Draw what has been found by now; called after every so many images."""
        now, total = self._clock(), loss.images * loss.planned
        if not loss.checked or (now - self._drawn < REDRAW_S and loss.checked < total):
            return
        self._drawn = now
        left = loss.seconds / loss.checked * (total - loss.checked)
        self._bar.total, self._bar.n = total, loss.checked
        self._bar.set_description_str(f"image {loss.checked:,} of {total:,}", refresh=False)
        self._bar.unit = f"{name(loss.configurations[-1])}  {clock_text(left):>5} left"
        try:
            self._bar.refresh()
        except OSError:
            pass  # the terminal is gone; the test need not be


@contextmanager
def watcher(visible: bool) -> Iterator[Watch]:
    """Yield what is told after every round: a bar that is removed at the end, or nobody."""
    with _bar(visible) as bar:
        yield CrashBar(bar) if visible else lambda kills: None


@contextmanager
def power_watcher(visible: bool) -> Iterator[Callable[[PowerLoss], None]]:
    """Yield what is told after every so many images: a bar that is removed at the end, or nobody."""
    with _bar(visible) as bar:
        yield PowerBar(bar) if visible else lambda loss: None


@contextmanager
def _bar(visible: bool) -> Iterator[Any]:
    if not visible:
        yield None
        return
    from tqdm import tqdm

    tqdm.set_lock(RLock())
    with tqdm(
        desc="examining this machine", total=1.0, unit="", leave=False, bar_format=LAYOUT, dynamic_ncols=True
    ) as bar:
        yield bar
