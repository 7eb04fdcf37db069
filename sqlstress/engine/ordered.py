"""The worker's part of experiments whose operations have a fixed order, such as `crash`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.protocols import Chunk, Findings, Stamps
from sqlstress.system.sharing import shared_array

if TYPE_CHECKING:
    from sqlstress.targets.views import Operation, WaitingConnections


CHUNK = 256
"""Maximum number of operations in a chunk (operations that the timed loop runs without a break)."""
_LENGTH_BITS = 16
_WORDS = 1 + CHUNK


def shared_words(workers: int) -> Any:
    """Return a shared array of zeros, in which each of `workers` workers has an area for OperationLedger."""
    return shared_array("q", _WORDS * workers)


class OperationLedger:
    """Record of one worker's progress in shared memory, which the parent can read even after a kill.

    The first word of the worker's area has two numbers: the index of the current chunk's first operation, and
    the chunk's length. The other words have the end time of each operation of the chunk, 0 if it has not
    ended. Operations run in order, so the ends show which operations are acknowledged.
    """

    def __init__(self, words: Any, worker: int) -> None:
        """`worker` counts from 1."""
        slot = memoryview(words).cast("B").cast("q")[_WORDS * (worker - 1) : _WORDS * worker]
        self._position, self.ends = slot[:1], slot[1:]

    def announce(self, first: int, operations: int) -> None:
        """Publish that the worker starts `operations` operations of its list, from index `first`."""
        self.ends[:operations] = memoryview(bytes(8 * operations)).cast("q")
        # One 64-bit store writes both numbers, so that a reader never sees one of them without the other.
        self._position[0] = first << _LENGTH_BITS | operations

    def settle(self, done: int) -> None:
        """Publish that the worker has finished its chunk after the first `done` operations."""
        self._position[0] = ((self._position[0] >> _LENGTH_BITS) + done) << _LENGTH_BITS

    def under_way(self) -> bool:
        """Return whether the worker has begun, or is about to begin, an unacknowledged operation."""
        first, operations = divmod(self._position[0], 1 << _LENGTH_BITS)
        return self.acknowledged() < first + operations

    def acknowledged(self) -> int:
        """Return the number of operations acknowledged so far, from the start of the worker's list."""
        while True:
            position = self._position[0]
            first, operations = divmod(position, 1 << _LENGTH_BITS)
            done = first + sum(map(bool, self.ends[:operations]))
            # Read again if the worker began its next chunk during the sum, because it has cleared the ends.
            if self._position[0] == position:
                return done


class OrderedStep(NamedTuple):
    """One operation and its parameters."""

    kind: int
    """Index into the source's `kinds`."""
    call: Operation
    params: Any
    rows: int
    """Number of rows that the operation reads or writes."""


class OrderedSource:
    """Source of steps in a fixed order. Subclasses set `kinds`.

    Up to CHUNK steps are prepared ahead, so that only their calls are timed. An error ends the worker, so
    calls must retry by themselves.
    """

    kinds: Sequence[str]
    acknowledges = True
    largest_chunk = CHUNK

    def __init__(
        self, words: Any, worker: int, client: WaitingConnections | None, steps: Iterator[OrderedStep]
    ) -> None:
        """`worker` counts from 1. `client` is None for a driver without storage."""
        self.row_weights = (0,) * len(self.kinds)
        self.seen = Findings()
        self._ledger, self._link, self._steps = OperationLedger(words, worker), client, steps
        self.stamps = Stamps([0] * CHUNK, self._ledger.ends)
        self._next = 0

    def next_chunk(self, size: int) -> Chunk | None:
        steps = list(islice(self._steps, size))
        if not steps:
            return None
        kinds, calls, params, rows = zip(*steps, strict=True)
        self._ledger.announce(self._next, len(steps))
        self._next += len(steps)
        return Chunk(bytearray(kinds), calls, params, sizes=rows)

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        raise error

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        self._ledger.settle(done)

    def busy_counts(self) -> tuple[int, int]:
        return self._link.busy_counts() if self._link else (0, 0)

    def findings(self) -> Findings:
        if self._link:
            self.seen.effective = self._link.effective()
        return self.seen

    def close(self) -> None:
        if self._link:
            self._link.close()
