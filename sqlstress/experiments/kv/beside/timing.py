"""When a process beside the workers does something, and which of it lies within the window."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sqlstress.statistics.units import NS_PER_S

if TYPE_CHECKING:
    from sqlstress.engine.tally import Window
    from sqlstress.report.case import Case

_TICK_S = 0.02
"""How soon it is noticed that the trial is over."""


class Timing:
    """The interval of a case, and its window; times are in perf_counter_ns."""

    def __init__(self, case: Case, window: Window, ended: Callable[[], bool]) -> None:
        self.interval_ns = round(case.spec.checkpointing.interval_s * NS_PER_S)
        self._opens_ns, self._ended = window.opens_ns, ended
        self._closes_ns = window.closes_ns

    def rounds(self) -> Iterator[None]:
        """Yield again and again, with a pause of the interval in between, until it is over.

        It is over when the window closes: an operation that is then still waiting for a lock is the last.
        """
        while not self.over():
            yield
            self._wait_until(time.perf_counter_ns() + self.interval_ns)

    def over(self) -> bool:
        """Say whether there is nothing more to do."""
        return self._ended() or time.perf_counter_ns() >= self._closes_ns

    def _wait_until(self, then_ns: int) -> None:
        while not self.over() and (left_ns := then_ns - time.perf_counter_ns()) > 0:
            time.sleep(min(left_ns / NS_PER_S, _TICK_S))

    def within(self, at_ns: int) -> int | None:
        """Return how long after the opening a time lies; None when it lies outside of the window."""
        return at_ns - self._opens_ns if self._opens_ns <= at_ns < self._closes_ns else None
