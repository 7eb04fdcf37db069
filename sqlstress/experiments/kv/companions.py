"""Companions (processes besides the workers): a checkpointer, a reader with a snapshot, and a WAL watcher.

A companion returns series: values for each interval of the window, the measured period of a trial.
"""

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
"""Maximum delay, in seconds, until a companion notices the end of the trial."""
MOST = 600
"""Maximum number of intervals in a series (values over time)."""
PATIENCE_MS = 1000
"""Maximum busy timeout of a checkpoint, in ms. A checkpoint that waits for a reader may block all writers."""


class Timing:
    """Schedule of a companion, which repeats its work with pauses of --checkpoint-interval in between.

    All times are times of `perf_counter_ns`.
    """

    def __init__(self, case: Case, window: Window, ended: Callable[[], bool]) -> None:
        self.interval_ns = round(case.spec.checkpointing.interval_s * NS_PER_S)
        self._window, self._ended = window, ended

    def rounds(self) -> Iterator[None]:
        """Yield when the work is due, again and again, until the measured window closes or the trial ends."""
        while not self.over():
            yield
            due_ns = time.perf_counter_ns() + self.interval_ns
            while not self.over() and (left_ns := due_ns - time.perf_counter_ns()) > 0:
                time.sleep(min(left_ns / NS_PER_S, _SLEEP_S))

    def over(self) -> bool:
        return self._ended() or time.perf_counter_ns() >= self._window.closes_ns

    def within(self, at_ns: int) -> int | None:
        """Return `at_ns` as ns since the measured window opened; None if it is outside the window."""
        opens_ns = self._window.opens_ns
        return at_ns - opens_ns if opens_ns <= at_ns < self._window.closes_ns else None


class IntervalValues:
    """Sums or maxima of values, such as WAL sizes, over successive intervals of the measured window.

    If there are more than MOST intervals, neighbours are merged in pairs.
    """

    def __init__(self, width_ns: int, name: str, unit: str, fold: Callable[[int, int], int]) -> None:
        """`width_ns` is the initial length of an interval. `fold` (`add` or `max`) combines its values."""
        self._name, self._unit, self._width_ns, self._fold = name, unit, width_ns, fold
        self._values: dict[int, int] = {}

    def add(self, at_ns: int, value: int) -> None:
        """Add a value observed `at_ns` ns after the measured window opened."""
        while at_ns // self._width_ns >= MOST:
            self._width_ns *= 2
            values, self._values = self._values, {}
            for index, earlier in values.items():
                self._put(index // 2, earlier)
        self._put(at_ns // self._width_ns, value)

    def _put(self, index: int, value: int) -> None:
        self._values[index] = self._fold(self._values[index], value) if index in self._values else value

    def series(self) -> Series:
        """Return the values in the order of time, with the starts of their intervals."""
        indices = sorted(self._values)
        values = tuple(self._values[index] for index in indices)
        return Series(self._name, self._unit, values, tuple(index * self._width_ns for index in indices))


class Checkpointer:
    """Companion that runs PRAGMA wal_checkpoint on each database file in turn."""

    def __init__(self, case: Case, place: SqlitePlace, _shared: tuple[Any, ...]) -> None:
        self._case = case
        self._sql = f"PRAGMA wal_checkpoint({case.spec.checkpointing.mode.upper()})"
        self._client = place.client(0)
        self._files = self._client.connect_all()
        patience_ms = min(case.settings.busy_timeout_ms, PATIENCE_MS)
        for connection in self._files:
            # This PRAGMA replaces the driver's own busy handler, if the driver has one.
            connection.rows(f"PRAGMA busy_timeout={patience_ms}")

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        timing = Timing(self._case, window, ended)
        answers = CheckpointAnswers(timing.interval_ns, len(self._files))
        for _ in timing.rounds():
            for number, connection in enumerate(self._files):
                if timing.over():
                    break
                started_ns = time.perf_counter_ns()
                (answer,) = connection.rows(self._sql)
                ended_ns = time.perf_counter_ns()
                answers.take(number, answer, ended_ns - started_ns, timing.within(ended_ns))
        return answers.series()

    def close(self) -> None:
        self._client.close()


class CheckpointAnswers:
    """Counts and times of the checkpoints that ended in the measured window, by interval of time."""

    def __init__(self, width_ns: int, files: int) -> None:
        self._figures = (
            IntervalValues(width_ns, series.CHECKPOINTS, "checkpoints", add),
            IntervalValues(width_ns, series.BUSY_CHECKPOINTS, "checkpoints", add),
            IntervalValues(width_ns, series.STUCK_CHECKPOINTS, "checkpoints", max),
            IntervalValues(width_ns, series.CHECKPOINT_TIME, "ns", add),
            IntervalValues(width_ns, series.LONGEST_CHECKPOINT, "ns", max),
        )
        self._in_a_row = [0] * files
        self._reached = [-1] * files

    def take(self, file: int, answer: tuple[int, ...], took_ns: int, at_ns: int | None) -> None:
        """Count a checkpoint of database file number `file`, which took `took_ns` ns.

        `answer` is SQLite's result (busy, frames, checkpointed); `frames` is -1 if the WAL is unreadable.
        `at_ns` is the end of the checkpoint, in ns after the window opened; None means outside the window.

        A checkpoint is stuck if it left frames in the WAL and copied none (`checkpointed` did not change).
        Even a short read transaction can cause that, so only several stuck checkpoints in a row matter.
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
        """Return series of checkpoints: number, busy, consecutive stuck, total time, longest time."""
        return [figure.series() for figure in self._figures]


class PinnedReader:
    """Companion that holds a snapshot of every database file, so that checkpoints cannot complete."""

    def __init__(self, case: Case, place: SqlitePlace, _shared: tuple[Any, ...]) -> None:
        self._client = place.client(0)
        for connection in self._client.connect_all():
            connection.rows("BEGIN")
            # A transaction has no snapshot until it reads.
            connection.rows("SELECT count(*) FROM sqlite_schema")

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        while not ended():
            time.sleep(_SLEEP_S)
        return []

    def close(self) -> None:
        self._client.close()


class WalWatcher:
    """Companion that records the sizes of all WALs once per --checkpoint-interval."""

    def __init__(self, case: Case, place: SqlitePlace, _shared: tuple[Any, ...]) -> None:
        self._case, self._files = case, place.paths

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        timing = Timing(self._case, window, ended)
        width_ns = timing.interval_ns
        frames = IntervalValues(width_ns, series.WAL_FRAMES, "frames", max)
        checkpointed = IntervalValues(width_ns, series.CHECKPOINTED_FRAMES, "frames", max)
        size = IntervalValues(width_ns, series.WAL_SIZE, "bytes", max)
        largest = IntervalValues(width_ns, series.LARGEST_WAL, "bytes", max)
        for _ in timing.rounds():
            at_ns = timing.within(time.perf_counter_ns())
            if at_ns is None:
                continue
            sizes = [walindex.wal_bytes(path) for path in self._files]
            indexes = [index for path in self._files if (index := walindex.read(path))]
            size.add(at_ns, sum(sizes))
            largest.add(at_ns, max(sizes))
            if len(indexes) == len(sizes):  # If a wal-index were missing, the sums would be too small.
                frames.add(at_ns, sum(index.frames for index in indexes))
                checkpointed.add(at_ns, sum(index.checkpointed for index in indexes))
        return [figure.series() for figure in (frames, checkpointed, size, largest)]

    def close(self) -> None:
        pass
