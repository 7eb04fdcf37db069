"""How far each worker has come in a list of operations that is known beforehand, in shared memory.

A worker does its operations in their order, so their number says which of them were acknowledged,
also of a worker that was killed. Each worker has words that nobody else writes: the number of the
first operation of its chunk, with the chunk's length, and when each operation of the chunk ended: one
that has an end was acknowledged. When it began nobody asks of a worker that was killed.
"""

from __future__ import annotations

from typing import Any

from sqlstress.system.sharing import shared_array

CHUNK = 256
"""Operations of a chunk, at most."""
_LENGTH_BITS = 16
_WORDS = 1 + CHUNK


def shared_words(workers: int) -> Any:
    """Return the shared 64-bit words of so many workers."""
    return shared_array("q", _WORDS * workers)


class Ledger:
    """One worker's words."""

    def __init__(self, words: Any, worker: int) -> None:
        """`worker` counts from 1."""
        own = memoryview(words).cast("B").cast("q")[_WORDS * (worker - 1) : _WORDS * worker]
        self._place, self.ends = own[:1], own[1:]

    def announce(self, first: int, operations: int) -> None:
        """Say which operations come next: so many, from number `first` (0 for the first of all)."""
        self.ends[:operations] = memoryview(bytes(8 * operations)).cast("q")
        # Both numbers in one store: a reader never sees one without the other.
        self._place[0] = first << _LENGTH_BITS | operations

    def settled(self, done: int) -> None:
        """Say that the first `done` operations of the chunk were done, and no more of it will be."""
        self._place[0] = ((self._place[0] >> _LENGTH_BITS) + done) << _LENGTH_BITS

    def under_way(self) -> bool:
        """Return whether an operation has begun, or is about to, that the worker was not told of."""
        first, operations = divmod(self._place[0], 1 << _LENGTH_BITS)
        return self.acknowledged() < first + operations

    def acknowledged(self) -> int:
        """Return how many operations, from the first of all, the worker was told were done."""
        while True:
            place = self._place[0]
            first, operations = divmod(place, 1 << _LENGTH_BITS)
            done = first + sum(map(bool, self.ends[:operations]))
            # One that is alive may have begun its next chunk meanwhile, and cleared ends not yet counted.
            if self._place[0] == place:
                return done
