"""A figure over a time of unknown length, in a bounded number of values."""

from __future__ import annotations

from collections.abc import Callable
from operator import add

from sqlstress.statistics.series import Series

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
