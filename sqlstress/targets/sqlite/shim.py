"""Access to the VFS shim: C code that wraps SQLite's interface to files (VFS).
The shim records times and locks, which `--where` shows, and makes pauses for tests. A span is a period of one
activity of a process, such as a sync or a wait for a lock. Each process has a part of the shared memory: sums
of times, then a ring of spans, in which new spans overwrite old spans.
"""

from __future__ import annotations

import ctypes
import math
from array import array
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.native import NativeUnavailable, extension
from sqlstress.targets.sqlite.connections import driver_handle

# Indices of the 64-bit words in a process's part of the shared memory, as in native/where.h. For example, the
# word WRITING is the time of writes during the measurement, in ns. The spans begin at the word RING, and each
# span has SPAN words: begin, end, and a tag with its kind and file.


OPENS, CLOSES, ROOM, SPANS, PENDING = range(5)
WAITING, WRITING, SYNCING_WAL, SYNCING_DATABASE, SYNCING_JOURNAL, CHECKPOINTING = range(5, 11)
STATEMENTS, STATEMENTS_NS, FROM, TO, PROCESSOR = range(11, 16)
WAITS_SEEN, WAITS_PROCESSOR, SYNCS_SEEN, SYNCS_PROCESSOR = range(16, 20)
CHECKPOINTS_SEEN, CHECKPOINTS_PROCESSOR = range(20, 22)
RING, SPAN = 32, 3
STATEMENTS_PER_SAMPLE = 17
"""Ratio of all statements to timed statements: the shim measures the time of one statement in 17."""

TRANSACTION, WAIT_WRITE, WAIT_READ, WAIT_ALONE, HOLD_WRITE, HOLD_READ, HOLD_ALONE, SYNC, CHECKPOINT = range(9)
"""Kinds of spans (periods of one activity). A wait or hold concerns a lock, such as WAIT_WRITE.

WRITE is the writers' lock, READ is a reader's shared lock, and ALONE is a lock that excludes all readers.
"""

MAX_SPANS = 1 << 15
MAX_BYTES = 64 << 20
"""Maximum size of the shared memory of all processes together, in bytes."""


def room(processes: int) -> int:
    """Return the maximum number of spans per process if `processes` processes share the memory."""
    return min(MAX_SPANS, (MAX_BYTES // (8 * processes) - RING) // SPAN)


class Span(NamedTuple):
    """A period in which a process did one thing, held a lock or awaited a lock. Times are in ns."""

    process: int
    """Number of the process. Workers count from 1, and other processes have higher numbers."""
    begin: int
    end: int
    kind: int
    file: int
    """Hash of the name of the database file, equal in all processes; 0 if the span concerns no file."""

    @property
    def ns(self) -> int:
        return self.end - self.begin


class SpanArea:
    """One process's part of the shared memory: sums, such as `area[WRITING]`, and its latest spans."""

    def __init__(self, words: Any, process: int, processes: int) -> None:
        self.process, self.room = process, room(processes)
        size = RING + SPAN * self.room
        self.words = memoryview(words).cast("B").cast("q")[size * (process - 1) : size * process]

    def __getitem__(self, place: int) -> int:
        return int(self.words[place])

    @property
    def window_ns(self) -> int:
        """Length of the measurement, in ns; 0 if the process ended before calling `ShimRecorder.window`."""
        return max(0, self[CLOSES] - self[OPENS])

    @property
    def syncing_ns(self) -> int:
        """Time of the process's syncs, without the syncs of checkpoints, in ns."""
        return self[SYNCING_WAL] + self[SYNCING_DATABASE] + self[SYNCING_JOURNAL]

    def spans(self) -> list[Span]:
        """Return the latest spans of the process, oldest first. Earlier spans may have been overwritten."""
        count = min(self[SPANS], self.room)
        first = self[SPANS] % self.room if self[SPANS] > self.room else 0
        begins, ends, tags = (
            self.words[RING + column : RING + SPAN * count : SPAN].tolist() for column in range(SPAN)
        )
        spans = [
            Span(self.process, begin, end, tag & 0xFF, tag >> 8)
            for begin, end, tag in zip(begins, ends, tags, strict=True)
        ]
        return spans[first:] + spans[:first]

    @property
    def complete_from(self) -> int:
        """Time, in ns, after which the record is complete: no span with a later end was overwritten."""
        if self[SPANS] <= self.room:
            return self[OPENS]
        oldest = RING + SPAN * (self[SPANS] % self.room)
        return int(self.words[oldest + 1])


def size(processes: int) -> int:
    return processes * (RING + SPAN * room(processes))


def areas(words: Any, processes: int) -> list[SpanArea]:
    return [SpanArea(words, number, processes) for number in range(1, processes + 1)]


class ShimRecorder:
    """Recorder of this process's activities, such as syncs, for `--where`. Created before connecting."""

    def __init__(self, driver: str, words: Any, process: int, processes: int) -> None:
        """`words` is shared memory for `processes` processes. `process` is this process's number, from 1.

        Raises EnvironmentFailure if recording is impossible.
        """
        self._area = SpanArea(words, process, processes)
        try:
            handle = driver_handle(driver)
            self._native: Any = extension()
        except NativeUnavailable as error:
            raise EnvironmentFailure(f"--where is not available: {error}") from error
        self._area.words[ROOM] = self._area.room
        address = ctypes.addressof(ctypes.c_int64.from_buffer(self._area.words))
        if problem := self._native.where_begin(handle.functions, address):
            raise EnvironmentFailure(f"--where is not available: {problem}")
        self.gave_up = self._native.where_gave_up
        """Function to call when an operation has failed with BUSY and is not retried."""
        self.end = self._native.where_end
        """Function to call after all operations. The function ends open spans."""

    def window(self, opens_ns: int, closes_ns: int) -> None:
        self._area.words[OPENS] = opens_ns
        self._area.words[CLOSES] = closes_ns


SIDES = 2
"""Number of points at which a call of the VFS can pause: before and after SQLite's own function."""
LENGTH_COUNT = 256
"""Number of random pause lengths in a schedule, from which the C code draws a length for each pause."""


def schedule(random: Random, rates: Sequence[int], shortest_ns: int, longest_ns: int) -> list[int]:
    """Return a schedule of pauses inside SQLite, as 64-bit words for the C code.

    `rates` has a number for each kind of VFS call, in the order of native/pauses.h: with 50, one call in 50
    pauses on average, and 0 means no pauses. The lengths are random (log-uniform) from `shortest_ns` to
    `longest_ns`.
    """
    low, high = math.log(shortest_ns), math.log(longest_ns)
    lengths = [round(math.exp(random.uniform(low, high))) for _ in range(LENGTH_COUNT)]
    return [random.getrandbits(62), LENGTH_COUNT, *(rate for rate in rates for _ in range(SIDES)), *lengths]


def begin_pauses(driver: str, words: Sequence[int]) -> None:
    """Make pauses in all connections that this process opens later. `words` is from `schedule`.

    Raises EnvironmentFailure if the VFS of the driver's SQLite library cannot be wrapped.
    """
    try:
        handle, native = driver_handle(driver), extension()
    except NativeUnavailable as error:
        raise EnvironmentFailure(f"pauses inside SQLite are not available with {driver}: {error}.") from error
    problem = native.pauses_begin(handle.functions, array("q", words))
    if problem:
        raise EnvironmentFailure(f"pauses inside SQLite are not available with {driver}: {problem}.")


def pause_count() -> int:
    """Return the number of pauses that this process has made."""
    return int(extension().pauses_made())
