"""How far a sweep has come: which case of which pass, the TPS of the moment, and the time that is left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate

from sqlstress.engine.observer import Observer, Progress
from sqlstress.experiment import face_of
from sqlstress.report.case import Case
from sqlstress.studies.passes import Turn

TRIAL_S = 0.7
WORKER_S = 0.05
"""What a trial takes around its work, and more for each worker."""
RECENT = 10
"""Ticks over which the TPS of the moment is taken: about a second."""
NOTE_WIDTH = len("1,234,567 TPS")


def expected_s(case: Case) -> float:
    """Return a guess of how long a trial takes, in seconds; a Pace corrects it as trials end."""
    return TRIAL_S + WORKER_S * case.concurrency + face_of(case).guess_s(case)


def _labels(cases: Sequence[Case], order: Sequence[Turn]) -> list[str]:
    """Return what each trial is called: by its case, and where there are several by its pass."""
    passes = max(turn.number for turn in order) + 1
    if passes == 1:
        return [f"[{turn.case + 1}/{len(cases)}] {cases[turn.case].label}" for turn in order]
    return [f"[pass {turn.number + 1}/{passes}] {cases[turn.case].label}" for turn in order]


class Pace:
    """An Observer of trials: hands on what it hears, and adds how far the sweep has come.

    That is measured in the seconds that the trials are expected to take, corrected as they end.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        order: Sequence[Turn],
        observer: Observer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer, self._clock = observer, clock
        self._labels = _labels(cases, order)
        self._width = max(map(len, self._labels))
        self._operations_each = [face_of(cases[turn.case]).operations_each for turn in order]
        self._until = [0.0, *accumulate(expected_s(cases[turn.case]) for turn in order)]
        """Expected seconds of the trials before each, and of all."""
        self._index, self._done, self._note = 0, 0.0, ""
        self._started = self._begun = clock()
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT)

    def begin(self, index: int) -> None:
        """Go on to the trial of this number."""
        self._index, self._begun, self._note = index, self._clock(), ""

    def phase(self, name: str) -> None:
        self._note = name
        self._recent.clear()
        self._tell()
        self._observer.phase(name)

    def waiting(self) -> None:
        self._tell()
        self._observer.waiting()

    def tick(self, operations: int) -> None:
        now = self._clock()
        self._recent.append((now, operations))
        then, before = self._recent[0]
        if operations > before and now > then:
            rate = (operations - before) / (now - then) / self._operations_each[self._index]
            self._note = f"{rate:,.0f} TPS"
        self._tell()
        self._observer.tick(operations)

    def progress(self, progress: Progress) -> None:
        self._observer.progress(progress)

    def left_s(self) -> float:
        """Return the seconds that are left, as far as the finished trials teach it."""
        before, after = self._until[self._index], self._until[self._index + 1]
        pace = (self._begun - self._started) / before if before else 1.0
        current = pace * (after - before) - (self._clock() - self._begun)
        return max(current, 0.0) + pace * (self._until[-1] - after)

    def _tell(self) -> None:
        left, elapsed = self.left_s(), self._clock() - self._started
        # What has once been said to be done stays so when a trial takes longer than expected.
        self._done = max(self._done, elapsed / ((elapsed + left) or 1.0))
        label = self._labels[self._index]
        self.progress(Progress(label, self._done, 1.0, self._note, left, self._width, NOTE_WIDTH))
