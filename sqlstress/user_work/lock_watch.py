"""The process that looks from outside who holds the write lock of a trial's database.

It takes no lock, and has no connection: programs in any language are seen, and none of them is changed.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.errors import SqlstressError
from sqlstress.statistics.units import NS_PER_S
from sqlstress.system.sharing import shared_array
from sqlstress.targets.sqlite.lock_holders import WRITE, Database, Runs, Sample, sampled
from sqlstress.user_work import OTHERS, OURS
from sqlstress.user_work.messages import kind_of

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.report.case import Case
    from sqlstress.statistics.series import Series
    from sqlstress.targets.place import SqlPlace

RATE = 200
"""Samples per second: they take about 3% of a processor."""
MOST, LONGEST = 20, 300
"""Programs that are told apart; characters of a command line that are kept."""
_TICK_S = 0.02


class LockWatch:
    """Takes samples while the window is open. What they say stands on the board at the end."""

    def __init__(self, case: Case, place: SqlPlace, shared: tuple[Any, ...]) -> None:
        self._board, self._path = Board(shared[0]), Path(place.directions().address)
        self._holders, self._error = Holders(asker()), ""

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Look on until the window closes, or the workers are done."""
        try:
            with closing(Database(self._path)) as database:
                while not ended() and (left_ns := window.opens_ns - time.perf_counter_ns()) > 0:
                    time.sleep(min(_TICK_S, left_ns / NS_PER_S))
                for sample in sampled(RATE, database.look):
                    if ended() or time.perf_counter_ns() >= window.closes_ns:
                        break
                    self._holders.add(sample)
        except SqlstressError as problem:
            self._error = str(problem)
        self._board.write({"rate": RATE, "error": self._error, **self._holders.as_fields()})
        return []

    def close(self) -> None:
        """Nothing is open any more."""


class Holders:
    """Who held the write lock: the holds of all processes of a program, one after the other."""

    def __init__(self, ask: Callable[[int], Sequence[str]]) -> None:
        """`ask` returns the command line of a process; empty: it is not known."""
        self._ask = ask
        self._samples, self._before_s, self._longest_gap_s = 0, 0.0, 0.0
        self._anybody = Runs()
        self._programs: dict[tuple[str, ...], Program] = {}
        self._pid: int | None = None
        """Who held it at the last sample."""
        self._program = Program([])

    def add(self, sample: Sample) -> None:
        """Take a sample."""
        pid = next((lock.pid for lock in sample.look.locks if lock.name == WRITE), None)
        self._samples += 1
        self._longest_gap_s = max(self._longest_gap_s, sample.asked_s - self._before_s)
        if pid != self._pid:
            self._program.runs.free(sample)
            if pid is not None:
                # A number is used again by the system: whoever takes the lock anew is asked anew.
                self._program = self._meet(pid)
            self._pid = pid
        if pid is None:
            self._anybody.free(sample)
        else:
            self._anybody.seen(sample, self._before_s)
            self._program.runs.seen(sample, self._before_s, sample.look.changes)
        self._before_s = sample.asked_s

    def _meet(self, pid: int) -> Program:
        words = shortly(self._ask(pid))
        key = tuple(map(kind_of, words))
        if key not in self._programs and len(self._programs) >= MOST:
            key, words = (OTHERS,), [OTHERS]
        program = self._programs.setdefault(key, Program(words))
        program.pids.add(pid)
        # What differs between its processes is written as what it has in common.
        both = zip(program.words, words, strict=True)
        program.words = [one if one == other else kind_of(one) for one, other in both]
        return program

    def as_fields(self) -> dict[str, Any]:
        """Return what was seen, as the fields of the report's WriteLock."""
        programs = sorted(self._programs.values(), key=lambda one: -one.runs.samples)
        return {
            "samples": self._samples,
            "longest_gap_s": self._longest_gap_s,
            "held": self._anybody.figures,
            "holders": [(" ".join(one.words)[:LONGEST], len(one.pids), one.runs.figures) for one in programs],
        }


class Program:
    """Processes whose command lines differ in numbers and paths only."""

    def __init__(self, words: list[str]) -> None:
        self.words, self.pids, self.runs = words, set[int](), Runs()


def asker() -> Callable[[int], Sequence[str]]:
    """Return what tells the command line of a process."""
    # Here: who forks the processes of a measurement has imported this module.
    import psutil

    parent = psutil.Process().ppid()

    def ask(pid: int) -> Sequence[str]:
        try:
            process = psutil.Process(pid)
            words = process.cmdline()
            return (OURS,) if process.ppid() == parent else words
        except (psutil.Error, ValueError):  # it has ended, or is one of another container
            return ()

    return ask


def shortly(words: Sequence[str]) -> list[str]:
    """Return a command line without folders; what has a space is no name of a file."""
    return [word if " " in word else word.rpartition("/")[2] or word for word in words]


# A board in shared memory, on which one process writes what another reads when it has ended.


_WORDS = 8192
_ROOM = 8 * (_WORDS - 1)


def board_words() -> Any:
    """Return the shared memory of a board, with nothing on it."""
    return shared_array("q", _WORDS)


class Board:
    """What stands there; one process writes."""

    def __init__(self, words: Any) -> None:
        self._length = memoryview(words).cast("B").cast("q")[:1]
        self._room = memoryview(words).cast("B")[8:]

    def write(self, content: Any) -> None:
        """Write something in the place of what stands there, if there is room for it."""
        data = pickle.dumps(content)
        if len(data) > _ROOM:
            return
        # Whoever dies in between leaves nothing that could be taken for the whole.
        self._length[0] = 0
        self._room[: len(data)] = data
        self._length[0] = len(data)

    def read(self) -> Any:
        """Return what stands there; None where nothing does."""
        length = self._length[0]
        return pickle.loads(bytes(self._room[:length])) if length else None
