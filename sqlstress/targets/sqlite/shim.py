"""The shim in C between SQLite and the system: it tells where time goes and who held the lock, and pauses."""

from __future__ import annotations

import ctypes
import math
from array import array
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.native import NotToBeHad, extension
from sqlstress.targets.sqlite.connections import reached_once

# The shared words in which each process says where its time goes; native/where.h has the same layout.
#
# All times are ns of the machine's common clock. Sums are of what lies in the window; of spans of time
# there are the newest, as many as there is room for.


OPENS, CLOSES, ROOM, SPANS, PENDING = range(5)
WAITING, WRITING, SYNCING_WAL, SYNCING_DATABASE, SYNCING_JOURNAL, CHECKPOINTING = range(5, 11)
STATEMENTS, STATEMENTS_NS, FROM, TO, PROCESSOR = range(11, 16)
WAITS_SEEN, WAITS_PROCESSOR, SYNCS_SEEN, SYNCS_PROCESSOR = range(16, 20)
CHECKPOINTS_SEEN, CHECKPOINTS_PROCESSOR = range(20, 22)
RING, SPAN = 32, 3
EVERY = 17
"""Of so many statements one is timed."""

TRANSACTION, WAIT_WRITE, WAIT_READ, WAIT_ALONE, HOLD_WRITE, HOLD_READ, HOLD_ALONE, SYNC, CHECKPOINT = range(9)
"""Kinds of spans."""

MOST_SPANS = 1 << 15
BUDGET = 64 << 20
"""Bytes of all areas together."""


def room(processes: int) -> int:
    """Return for how many spans each of so many processes has room."""
    return min(MOST_SPANS, (BUDGET // (8 * processes) - RING) // SPAN)


class Span(NamedTuple):
    """A stretch of time of one process."""

    process: int
    """1 and up: the workers, then those beside them."""
    begin: int
    end: int
    kind: int
    file: int
    """0 where it is of none."""

    @property
    def ns(self) -> int:
        return self.end - self.begin


class Area:
    """One process's words."""

    def __init__(self, words: Any, process: int, processes: int) -> None:
        self.process, self.room = process, room(processes)
        size = RING + SPAN * self.room
        self.words = memoryview(words).cast("B").cast("q")[size * (process - 1) : size * process]

    def __getitem__(self, place: int) -> int:
        return int(self.words[place])

    @property
    def window_ns(self) -> int:
        """How long the window was for it; 0 where it never heard of it."""
        return max(0, self[CLOSES] - self[OPENS])

    @property
    def syncing_ns(self) -> int:
        """Its syncs, checkpoints' left out."""
        return self[SYNCING_WAL] + self[SYNCING_DATABASE] + self[SYNCING_JOURNAL]

    def spans(self) -> list[Span]:
        """Return its spans, the oldest first."""
        count = min(self[SPANS], self.room)
        first = self[SPANS] % self.room if self[SPANS] > self.room else 0
        begins, ends, tags = (
            self.words[RING + column : RING + SPAN * count : SPAN].tolist() for column in range(SPAN)
        )
        found = [
            Span(self.process, begin, end, tag & 0xFF, tag >> 8)
            for begin, end, tag in zip(begins, ends, tags, strict=True)
        ]
        return found[first:] + found[:first]

    @property
    def complete_from(self) -> int:
        """From when on all of its spans are there."""
        if self[SPANS] <= self.room:
            return self[OPENS]
        oldest = RING + SPAN * (self[SPANS] % self.room)
        return int(self.words[oldest + 1])


def size(processes: int) -> int:
    return processes * (RING + SPAN * room(processes))


def areas(words: Any, processes: int) -> list[Area]:
    return [Area(words, number, processes) for number in range(1, processes + 1)]


class Watch:
    """This process's own account, from before it opens a database. There is one in a process, at most."""

    def __init__(self, driver: str, words: Any, process: int, processes: int) -> None:
        """Connections opened from now on are watched; `words` are those of so many processes.

        Raises EnvironmentFailure where none can be.
        """
        self._area = Area(words, process, processes)
        try:
            handle = reached_once(driver)
            self._native: Any = extension()
        except NotToBeHad as error:
            raise EnvironmentFailure(f"--where is not available: {error}") from error
        self._area.words[ROOM] = self._area.room
        address = ctypes.addressof(ctypes.c_int64.from_buffer(self._area.words))
        if problem := self._native.where_begin(handle.functions, address):
            raise EnvironmentFailure(f"--where is not available: {problem}")
        self.gave_up = self._native.where_gave_up
        """Say that an operation was given up: it waits for no lock any more."""
        self.end = self._native.where_end
        """Say that all is done. What is still under way counts until the window closes."""

    def window(self, opens_ns: int, closes_ns: int) -> None:
        self._area.words[OPENS] = opens_ns
        self._area.words[CLOSES] = closes_ns


# Pauses at the calls that SQLite makes of its VFS, as a schedule says.


SIDES = 2
LENGTHS = 256
"""Lengths of pauses that a schedule has to draw from."""


def schedule(random: Random, rates: Sequence[int], shortest_ns: int, longest_ns: int) -> list[int]:
    """Return a schedule as words. `rates`: at each point of native/pauses.h, one in how many calls pauses.

    Lengths are spread evenly over the orders of magnitude between the shortest and the longest.
    """
    low, high = math.log(shortest_ns), math.log(longest_ns)
    lengths = [round(math.exp(random.uniform(low, high))) for _ in range(LENGTHS)]
    return [random.getrandbits(62), LENGTHS, *(rate for rate in rates for _ in range(SIDES)), *lengths]


def begin_pauses(driver: str, words: Sequence[int]) -> None:
    """Pause as a schedule says, at all connections of a driver's library that this process opens from now on.

    Raises EnvironmentFailure where its VFS can't be wrapped.
    """
    try:
        handle, native = reached_once(driver), extension()
    except NotToBeHad as error:
        raise EnvironmentFailure(f"pauses inside SQLite are not available with {driver}: {error}.") from error
    problem = native.pauses_begin(handle.functions, array("q", words))
    if problem:
        raise EnvironmentFailure(f"pauses inside SQLite are not available with {driver}: {problem}.")


def pauses_made() -> int:
    """Return how often this process has paused."""
    return int(extension().pauses_made())
