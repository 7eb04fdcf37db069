"""Lock watch: a process that samples which processes hold the write lock of a trial's database.

The process asks the operating system, without a lock or a connection. So it sees programs in any language,
and does not slow them down. A hold is the time in which one process has the lock without a break.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.errors import SqlstressError
from sqlstress.recording.messages import group_key
from sqlstress.statistics.units import NS_PER_S
from sqlstress.system.sharing import shared_array
from sqlstress.targets.sqlite.lock_holders import WRITE, HoldTracker, LockedFile, TimedSample, sample_locks
from sqlstress.user_work import OTHERS, OURS

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.report.case import Case
    from sqlstress.statistics.series import Series
    from sqlstress.targets.place import SqlPlace

RATE = 200
"""Samples of the lock's holder per second. They take about 3% of a processor."""
MOST, LONGEST = 20, 300
"""Maximum number of programs listed separately; maximum length of a command line, in characters."""
_TICK_S = 0.02


class LockWatch:
    """Sampler of the write lock's holder during a trial. It writes the result into shared memory."""

    def __init__(self, case: Case, place: SqlPlace, shared: tuple[Any, ...]) -> None:
        self._slot, self._path = SharedSlot(shared[0]), Path(place.directions().address)
        self._holders, self._error = Holders(command_line_finder()), ""

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Take samples in the measured time `window`, until `ended` returns true.

        Return no time series: the result is in the shared memory.
        """
        try:
            with closing(LockedFile(self._path)) as database:
                while not ended() and (left_ns := window.opens_ns - time.perf_counter_ns()) > 0:
                    time.sleep(min(_TICK_S, left_ns / NS_PER_S))
                for sample in sample_locks(RATE, database.look):
                    if ended() or time.perf_counter_ns() >= window.closes_ns:
                        break
                    self._holders.add(sample)
        except SqlstressError as problem:
            self._error = str(problem)
        self._slot.write({"rate": RATE, "error": self._error, **self._holders.as_fields()})
        return []

    def close(self) -> None:
        """Do nothing: each additional process needs this method, but here nothing is open."""


class Holders:
    """Counter of the samples and holds of the write lock, by program."""

    def __init__(self, find: Callable[[int], Sequence[str]]) -> None:
        """`find` is a function that returns the command line of a process id; empty if unknown."""
        self._find_command = find
        self._samples, self._before_s, self._longest_gap_s = 0, 0.0, 0.0
        self._all_runs = HoldTracker()
        self._programs: dict[tuple[str, ...], Program] = {}
        self._pid: int | None = None
        """Id of the process that had the lock in the last sample; None if the lock was free."""
        self._program = Program([])

    def add(self, sample: TimedSample) -> None:
        """Add a sample. The current hold ends unless the same process still has the lock."""
        pid = next((lock.pid for lock in sample.look.locks if lock.name == WRITE), None)
        self._samples += 1
        self._longest_gap_s = max(self._longest_gap_s, sample.asked_s - self._before_s)
        if pid != self._pid:
            self._program.runs.free(sample)
            if pid is not None:
                # Look up the program for each new hold, because the system reuses process ids.
                self._program = self._find_program(pid)
            self._pid = pid
        if pid is None:
            self._all_runs.free(sample)
        else:
            self._all_runs.add_held(sample, self._before_s)
            self._program.runs.add_held(sample, self._before_s, sample.look.changes)
        self._before_s = sample.asked_s

    def _find_program(self, pid: int) -> Program:
        words = shorten(self._find_command(pid))
        key = tuple(map(group_key, words))
        if key not in self._programs and len(self._programs) >= MOST:
            key, words = (OTHERS,), [OTHERS]
        program = self._programs.setdefault(key, Program(words))
        program.pids.add(pid)
        # If a word differs between processes of the program, replace its paths and numbers by PATH and N.
        both = zip(program.words, words, strict=True)
        program.words = [word if word == new_word else group_key(word) for word, new_word in both]
        return program

    def as_fields(self) -> dict[str, Any]:
        """Return the result as fields of `report.results.WriteLock`, by name."""
        programs = sorted(self._programs.values(), key=lambda program: -program.runs.samples)
        return {
            "samples": self._samples,
            "longest_gap_s": self._longest_gap_s,
            "held": self._all_runs.figures,
            "holders": [
                (" ".join(program.words)[:LONGEST], len(program.pids), program.runs.figures)
                for program in programs
            ],
        }


class Program:
    """Program that held the lock: all processes whose command lines differ only in numbers and paths."""

    def __init__(self, words: list[str]) -> None:
        self.words, self.pids, self.runs = words, set[int](), HoldTracker()


def command_line_finder() -> Callable[[int], Sequence[str]]:
    """Return a function that gets a process id and returns the command line of the process.

    The function returns OURS for a process of sqlstress, and an empty sequence for an unknown process.
    """
    # Imported here, because the process that forks the workers imports this module, but needs no psutil.
    import psutil

    parent = psutil.Process().ppid()

    def find(pid: int) -> Sequence[str]:
        try:
            process = psutil.Process(pid)
            words = process.cmdline()
            return (OURS,) if process.ppid() == parent else words
        except (psutil.Error, ValueError):  # The process has ended, or is in another container.
            return ()

    return find


def shorten(words: Sequence[str]) -> list[str]:
    """Return a command line without folders: "python" for "/usr/bin/python". Keep words with a space."""
    return [word if " " in word else word.rpartition("/")[2] or word for word in words]


# The lock watch writes its result into shared memory. The parent process reads it after the watch has ended.


_WORDS = 8192
_MAX_BYTES = 8 * (_WORDS - 1)


def slot_memory() -> Any:
    """Return new shared memory for a `SharedSlot` that has no message yet."""
    return shared_array("q", _WORDS)


class SharedSlot:
    """Message in shared memory. Only one process may write it."""

    def __init__(self, words: Any) -> None:
        self._length = memoryview(words).cast("B").cast("q")[:1]
        self._bytes = memoryview(words).cast("B")[8:]

    def write(self, content: Any) -> None:
        """Replace the message by any object that pickle supports. Ignore an object that is too large."""
        data = pickle.dumps(content)
        if len(data) > _MAX_BYTES:
            return
        # Set the length last: if the writer dies before, there is no message rather than a part of one.
        self._length[0] = 0
        self._bytes[: len(data)] = data
        self._length[0] = len(data)

    def read(self) -> Any:
        """Return the message; None if there is none."""
        length = self._length[0]
        return pickle.loads(bytes(self._bytes[:length])) if length else None
