"""The processes beside the workers: a checkpointer, a reader that pins the WAL, one that watches it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from operator import add
from typing import TYPE_CHECKING, Any

from sqlstress.engine.loop import Window
from sqlstress.statistics import series
from sqlstress.statistics.series import Series
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.sqlite import walindex

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.place import SqlitePlace


_SLEEP_S = 0.02
"""How soon it is noticed that the trial is over."""
MOST = 600
"""Stretches of a figure."""
PATIENCE_MS = 1000
"""How long a checkpoint waits for a lock: while RESTART and TRUNCATE wait for a reader, nobody can write."""


class Timing:
    """When a process beside the workers does something; times are in perf_counter_ns."""

    def __init__(self, case: Case, window: Window, ended: Callable[[], bool]) -> None:
        self.interval_ns = round(case.spec.checkpointing.interval_s * NS_PER_S)
        self._window, self._ended = window, ended

    def rounds(self) -> Iterator[None]:
        """Yield again and again, with a pause of the interval in between, until it is over.

        It is over when the window closes: an operation that is then still waiting for a lock is the last.
        """
        while not self.over():
            yield
            then_ns = time.perf_counter_ns() + self.interval_ns
            while not self.over() and (left_ns := then_ns - time.perf_counter_ns()) > 0:
                time.sleep(min(left_ns / NS_PER_S, _SLEEP_S))

    def over(self) -> bool:
        """Say whether there is nothing more to do."""
        return self._ended() or time.perf_counter_ns() >= self._window.closes_ns

    def within(self, at_ns: int) -> int | None:
        """Return how long after the opening a time lies; None when it lies outside of the window."""
        opens_ns = self._window.opens_ns
        return at_ns - opens_ns if opens_ns <= at_ns < self._window.closes_ns else None


class Stretches:
    """One value for each stretch of time in which something was seen, at most MOST of them.

    Where there are too many stretches, two neighbours become one. So the sum of the values (or the
    largest of them, whichever the figure is) stays exact, however long it goes on.
    """

    def __init__(self, width_ns: int, name: str, unit: str, fold: Callable[[int, int], int]) -> None:
        """`fold` makes one value of two: `add`, or `max`."""
        self._name, self._unit, self._width_ns, self._fold = name, unit, width_ns, fold
        self._values: dict[int, int] = {}

    def add(self, at_ns: int, value: int) -> None:
        """Take a value of a time, in ns after the window opened."""
        while at_ns // self._width_ns >= MOST:
            self._width_ns *= 2
            values, self._values = self._values, {}
            for place, earlier in values.items():
                self._put(place // 2, earlier)
        self._put(at_ns // self._width_ns, value)

    def _put(self, place: int, value: int) -> None:
        self._values[place] = self._fold(self._values[place], value) if place in self._values else value

    def series(self) -> Series:
        """Return the values in the order of time, each with the beginning of its stretch."""
        places = sorted(self._values)
        values = tuple(self._values[place] for place in places)
        return Series(self._name, self._unit, values, tuple(place * self._width_ns for place in places))


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
                answers.take(number, answer, now - begun, timing.within(now))
        return answers.series()

    def close(self) -> None:
        self._client.close()


class Answers:
    """What became of the checkpoints within the window."""

    def __init__(self, width_ns: int, files: int) -> None:
        self._figures = (
            Stretches(width_ns, series.CHECKPOINTS, "checkpoints", add),
            Stretches(width_ns, series.BUSY_CHECKPOINTS, "checkpoints", add),
            Stretches(width_ns, series.STUCK_CHECKPOINTS, "checkpoints", max),
            Stretches(width_ns, series.CHECKPOINT_TIME, "ns", add),
            Stretches(width_ns, series.LONGEST_CHECKPOINT, "ns", max),
        )
        self._in_a_row = [0] * files
        self._reached = [-1] * files

    def take(self, file: int, answer: tuple[int, ...], took_ns: int, at_ns: int | None) -> None:
        """Take an answer, and when it came: in ns after the opening of the window, None outside of it.

        It is (busy, frames, checkpointed): busy says nothing about whether frames were left in the WAL, and
        the other two are -1 when it could not even look. Stuck are checkpoints in a row that have left frames
        and got no further: any short read makes one leave some, but the next one gets further.
        """
        busy, frames, checkpointed = answer
        if frames >= 0:
            further = checkpointed != self._reached[file]
            self._reached[file] = checkpointed
            self._in_a_row[file] = (frames > checkpointed) * (1 if further else self._in_a_row[file] + 1)
        if at_ns is not None:
            values = (1, busy, self._in_a_row[file], took_ns, took_ns)
            for figure, value in zip(self._figures, values, strict=True):
                figure.add(at_ns, value)

    def series(self) -> list[Series]:
        """Return the counts and times, stretch by stretch."""
        return [figure.series() for figure in self._figures]


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
            time.sleep(_SLEEP_S)
        return []

    def close(self) -> None:
        self._client.close()


class WalWatcher:
    """Looks at every file once in each interval. What it tells is summed over the files."""

    def __init__(self, case: Case, place: SqlitePlace, _shared: tuple[Any, ...]) -> None:
        self._case, self._files = case, place.paths

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Look at all files, again and again, while the window is open."""
        timing = Timing(self._case, window, ended)
        width_ns = timing.interval_ns
        frames = Stretches(width_ns, series.WAL_FRAMES, "frames", max)
        checkpointed = Stretches(width_ns, series.CHECKPOINTED_FRAMES, "frames", max)
        size = Stretches(width_ns, series.WAL_SIZE, "bytes", max)
        largest = Stretches(width_ns, series.LARGEST_WAL, "bytes", max)
        for _ in timing.rounds():
            at_ns = timing.within(time.perf_counter_ns())
            if at_ns is None:
                continue
            sizes = [walindex.wal_bytes(path) for path in self._files]
            indexes = [index for path in self._files if (index := walindex.read(path))]
            size.add(at_ns, sum(sizes))
            largest.add(at_ns, max(sizes))
            if len(indexes) == len(sizes):  # else a sum would be one of fewer files
                frames.add(at_ns, sum(index.frames for index in indexes))
                checkpointed.add(at_ns, sum(index.checkpointed for index in indexes))
        return [figure.series() for figure in (frames, checkpointed, size, largest)]

    def close(self) -> None:
        pass
