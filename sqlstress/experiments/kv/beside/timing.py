"""When a process beside the workers does something, and what its figures are over the window."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from operator import add
from typing import TYPE_CHECKING

from sqlstress.statistics.series import Series
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


MOST = 600


class Stretches:
    """One value for each stretch of time in which something was seen, at most MOST of them.

    Where there are too many stretches, two neighbours become one. So the sum of the values (or the
    largest of them, whichever the figure is) stays exact, however long it goes on.
    """

    def __init__(self, name: str, unit: str, width_ns: int, fold: Callable[[int, int], int]) -> None:
        """`fold` makes one value of two: `add`, or `max`."""
        self._name, self._unit, self._width_ns, self._fold = name, unit, width_ns, fold
        self._values: dict[int, int] = {}

    def add(self, at_ns: int, value: int) -> None:
        """Take a value of a time, in ns after the window opened."""
        while at_ns // self._width_ns >= MOST:
            self._widen()
        self._put(at_ns // self._width_ns, value)

    def _widen(self) -> None:
        self._width_ns *= 2
        values, self._values = self._values, {}
        for place, value in values.items():
            self._put(place // 2, value)

    def _put(self, place: int, value: int) -> None:
        self._values[place] = self._fold(self._values[place], value) if place in self._values else value

    def series(self) -> Series:
        """Return the values in the order of time, each with the beginning of its stretch."""
        places = sorted(self._values)
        return Series(
            self._name,
            self._unit,
            tuple(self._values[place] for place in places),
            tuple(place * self._width_ns for place in places),
        )


def summed(name: str, unit: str, width_ns: int) -> Stretches:
    """Return a figure of which a stretch has the sum."""
    return Stretches(name, unit, width_ns, add)


def largest(name: str, unit: str, width_ns: int) -> Stretches:
    """Return a figure of which a stretch has the largest."""
    return Stretches(name, unit, width_ns, max)
