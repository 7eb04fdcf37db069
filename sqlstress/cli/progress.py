"""The progress bar, on stderr: which case, the TPS of the moment, and the time that is left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

from sqlstress.engine.observer import Nobody, Observer
from sqlstress.experiment import face_of
from sqlstress.report.case import Case

if TYPE_CHECKING:
    from sqlstress.report import Run

TRIAL_S = 0.7
WORKER_S = 0.05
RECENT = 10
"""Ticks over which the TPS of the moment is taken: about a second."""
REDRAW_S = 0.1
LAYOUT = "{desc} |{bar}| {unit}"
NOTE_WIDTH = len("1,234,567 TPS")


def expected_s(case: Case) -> float:
    """Return a guess of how long a case takes, in seconds; the bar corrects it as cases end."""
    around = TRIAL_S + WORKER_S * case.concurrency
    return case.repeat * (around + face_of(case).guess_s(case))


def clock_text(seconds: float) -> str:
    """Write a time that is left as a clock does: 0:09, 1:30, 2:05:00."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Bar:
    """An Observer that draws a tqdm bar over the expected seconds."""

    def __init__(
        self, bar: Any, cases: tuple[Case, ...], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bar = bar
        self._clock = clock
        self._expected = [expected_s(case) for case in cases]
        names = [f"[{number}/{len(cases)}] {case.label}" for number, case in enumerate(cases, 1)]
        # All as wide as the widest, so that the bar stands still.
        self._names = [name.ljust(max(map(len, names))) for name in names]
        self._operations_each = [face_of(case).operations_each for case in cases]
        self._index = 0
        self._started = self._begun = self._drawn = clock()
        self._note = ""
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT)

    def case_begins(self, index: int, total: int, case: Case) -> None:
        self._index, self._begun = index, self._clock()

    def phase(self, name: str) -> None:
        self._note = name
        self._recent.clear()
        self._draw()

    def waiting(self) -> None:
        if self._clock() - self._drawn >= REDRAW_S:
            self._draw()

    def tick(self, operations: int) -> None:
        now = self._clock()
        self._recent.append((now, operations))
        then, before = self._recent[0]
        if operations > before and now > then:
            rate = (operations - before) / (now - then) / self._operations_each[self._index]
            self._note = f"{rate:,.0f} TPS"
        self._draw()

    def case_ends(self, run: Run) -> None:
        self._note = ""

    def left_s(self) -> float:
        """Return the seconds that are left, as far as the finished cases teach it."""
        now, finished = self._clock(), sum(self._expected[: self._index])
        pace = (self._begun - self._started) / finished if finished else 1.0
        current = pace * self._expected[self._index] - (now - self._begun)
        return max(current, 0.0) + pace * sum(self._expected[self._index + 1 :])

    def _draw(self) -> None:
        self._drawn = self._clock()
        left, elapsed = self.left_s(), self._drawn - self._started
        # A bar that has once come somewhere does not go back.
        self._bar.n = max(self._bar.n, self._bar.total * elapsed / ((elapsed + left) or 1.0))
        self._bar.set_description_str(self._names[self._index], refresh=False)
        self._bar.unit = f"{self._note:>{NOTE_WIDTH}}  {clock_text(left):>5} left"
        try:
            self._bar.refresh()
        except OSError:
            pass  # the terminal is gone; the measurement need not be


@contextmanager
def watcher(cases: tuple[Case, ...], visible: bool) -> Iterator[Observer]:
    """Yield an Observer: a bar that is removed at the end, or nobody."""
    if not visible:
        yield Nobody()
        return
    from tqdm import tqdm

    # Its own lock would be one of multiprocessing's, which a killed run leaves to be complained of.
    tqdm.set_lock(RLock())
    with tqdm(
        desc="examining this machine", total=1.0, unit="", leave=False, bar_format=LAYOUT, dynamic_ncols=True
    ) as bar:
        yield Bar(bar, cases)
