"""Samples of a lock: when they are taken, and how long they say that it was held."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random


def sampled(rate: int) -> Iterator[float]:
    """Sleep until the next sample is due, and yield when it is, in seconds from the beginning; without end.

    At random within its turn, so that no rhythm of the watched programs hides in ours.
    """
    interval_s, random, turn = 1 / rate, Random(), 0
    begun = time.perf_counter()
    while True:
        due_s = (turn + random.random()) * interval_s
        time.sleep(max(0.0, due_s - (time.perf_counter() - begun)))
        at_s = time.perf_counter() - begun
        turn = max(turn + 1, int(at_s / interval_s))
        yield at_s


@dataclass(slots=True)
class Runs:
    """How one lock was held by one process, or by anybody: one hold after the other."""

    samples: int = 0
    times: int = 0
    longest_s: float = 0.0
    most_s: float = 0.0
    longest_at_s: float = 0.0
    now_s: float = 0.0
    is_held: bool = False
    _begun_s: float = 0.0
    _last_s: float = 0.0
    _free_s: float = 0.0
    _changes: int | None = None

    def seen(self, at_s: float, before_s: float, changes: int | None = None) -> None:
        """Take a sample in which it was held; `before_s` is when the sample before was taken.

        Where `changes` differ, a commit lies between: this is another hold.
        """
        known = changes is not None and self._changes is not None
        if self.is_held and known and changes != self._changes:
            self.free(at_s)
        if not self.is_held:
            self.is_held, self._begun_s, self._free_s = True, at_s, before_s
            self.times += 1
        if changes is not None:
            self._changes = changes
        self._last_s = at_s
        self.samples += 1
        self.now_s = at_s - self._begun_s
        self._longest(at_s)

    def free(self, at_s: float) -> None:
        """Take a sample in which it was not held by this process."""
        if self.is_held:
            self._longest(at_s)
            self.is_held, self._changes, self.now_s = False, None, 0.0

    def _longest(self, end_s: float) -> None:
        seen_s, most_s = self._last_s - self._begun_s, end_s - self._free_s
        if (seen_s, most_s) >= (self.longest_s, self.most_s):
            self.longest_s, self.most_s, self.longest_at_s = seen_s, most_s, self._begun_s

    @property
    def figures(self) -> tuple[int, int, float, float, float, float]:
        """What was seen by now, as the fields of the report's Holds."""
        return self.samples, self.times, self.longest_s, self.most_s, self.longest_at_s, self.now_s
