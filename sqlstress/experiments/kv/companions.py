"""The processes beside the workers: a checkpointer, a reader that pins the WAL, one that watches it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.loop import Window
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINT_TIME,
    CHECKPOINTED_FRAMES,
    CHECKPOINTS,
    LARGEST_WAL,
    LONGEST_CHECKPOINT,
    STUCK_CHECKPOINTS,
    WAL_FRAMES,
    WAL_SIZE,
    Series,
)
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.sqlite import walindex

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.place import SqlitePlace


# When a process beside the workers does something, and what its figures are over the window.


_SLEEP_S = 0.02
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
            time.sleep(min(left_ns / NS_PER_S, _SLEEP_S))

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


PATIENCE_MS = 1000
"""How long a checkpoint waits for a lock: while RESTART and TRUNCATE wait for a reader, nobody can write."""


class Checkpointer:
    """Runs PRAGMA wal_checkpoint on each file, in turn."""

    def __init__(self, case: Case, place: SqlitePlace, _shared: tuple[Any, ...]) -> None:
        self._case = case
        self._sql = f"PRAGMA wal_checkpoint({case.spec.checkpointing.mode.upper()})"
        self._client = place.client(0)
        self._files = self._client.connect_all()
        patience_ms = min(case.settings.busy_timeout_ms, PATIENCE_MS)
        for connection in self._files:
            connection.rows(f"PRAGMA busy_timeout={patience_ms}")  # in the place of any handler of ours

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Checkpoint from the common start on; the checkpoints that end within the window are told."""
        timing = Timing(self._case, window, ended)
        answers = Answers(timing.interval_ns, len(self._files))
        for _ in timing.rounds():
            for number, connection in enumerate(self._files):
                if timing.over():
                    break
                begun = time.perf_counter_ns()
                (answer,) = connection.rows(self._sql)
                now = time.perf_counter_ns()
                answers.take(number, Answer(*answer), now - begun, timing.within(now))
        return answers.series()

    def close(self) -> None:
        self._client.close()


class Answer(NamedTuple):
    """What PRAGMA wal_checkpoint answers: busy says nothing about whether frames were left in the WAL."""

    busy: int
    frames: int
    """-1, as the next one, when it could not even look."""
    checkpointed: int


class Answers:
    """What became of the checkpoints within the window."""

    def __init__(self, width_ns: int, files: int) -> None:
        self._count = summed(CHECKPOINTS, "checkpoints", width_ns)
        self._busy = summed(BUSY_CHECKPOINTS, "checkpoints", width_ns)
        self._stuck = largest(STUCK_CHECKPOINTS, "checkpoints", width_ns)
        self._time = summed(CHECKPOINT_TIME, "ns", width_ns)
        self._longest = largest(LONGEST_CHECKPOINT, "ns", width_ns)
        self._in_a_row = [0] * files
        self._reached = [-1] * files

    def take(self, file: int, answer: Answer, took_ns: int, at_ns: int | None) -> None:
        """Take an answer, and when it came: in ns after the opening of the window, None outside of it."""
        in_a_row = self._count_stuck(file, answer)
        if at_ns is None:
            return
        self._count.add(at_ns, 1)
        self._busy.add(at_ns, answer.busy)
        self._stuck.add(at_ns, in_a_row)
        self._time.add(at_ns, took_ns)
        self._longest.add(at_ns, took_ns)

    def _count_stuck(self, file: int, answer: Answer) -> int:
        """Return how many checkpoints in a row, this one included, have left frames and got no further.

        Any short read makes a checkpoint leave some, but the next one gets further.
        """
        if answer.frames >= 0:
            further = answer.checkpointed != self._reached[file]
            self._reached[file] = answer.checkpointed
            left = answer.frames > answer.checkpointed
            self._in_a_row[file] = left * (1 if further else self._in_a_row[file] + 1)
        return self._in_a_row[file]

    def series(self) -> list[Series]:
        """Return the counts and times, stretch by stretch."""
        figures = (self._count, self._busy, self._stuck, self._time, self._longest)
        return [figure.series() for figure in figures]


_TICK_S = 0.02


class PinnedReader:
    """Holds a snapshot of every file from before the load until it is dismissed."""

    def __init__(self, case: Case, place: SqlitePlace, _shared: tuple[Any, ...]) -> None:
        self._client = place.client(0)
        for connection in self._client.connect_all():
            connection.rows("BEGIN")
            # A transaction has no snapshot until it reads.
            connection.rows("SELECT count(*) FROM sqlite_schema")

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Do nothing until the trial is over."""
        while not ended():
            time.sleep(_TICK_S)
        return []

    def close(self) -> None:
        self._client.close()


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
