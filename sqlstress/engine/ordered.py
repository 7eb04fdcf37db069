"""A worker's half that does a list of operations, known beforehand, in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sqlstress.engine.ledger import CHUNK, Ledger
from sqlstress.engine.protocols import Chunk, Findings, Stamps

if TYPE_CHECKING:
    from sqlstress.targets.keyvalue import Operation


class Counting(Protocol):
    """Who counts the answers BUSY."""

    def busy_counts(self) -> tuple[int, int]:
        """Return how many BUSY and BUSY_SNAPSHOT answers were met."""


class Step(NamedTuple):
    """One operation."""

    kind: int
    """Index into the source's kinds."""
    call: Operation
    params: Any
    rows: int
    """Rows that it reads or writes."""


class OrderedSource:
    """Does steps in their order. A workload inherits from it, and adds `kinds`, `findings` and `close`.

    Only the call of a step is timed: what it needs is made by the iterator, before the chunk begins.
    An error ends the worker; what may be tried again is tried again inside the call.
    """

    kinds: Sequence[str]
    acknowledges = True
    largest_chunk = CHUNK

    def __init__(self, words: Any, worker: int, client: Counting | None, steps: Iterator[Step]) -> None:
        """`words` are those of `ledger.shared_words`; without a client nothing is ever busy."""
        self.row_weights = (0,) * len(self.kinds)
        self.seen = Findings()
        self._ledger, self._counting, self._steps = Ledger(words, worker), client, steps
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
        self._ledger.settled(done)

    def busy_counts(self) -> tuple[int, int]:
        return self._counting.busy_counts() if self._counting else (0, 0)
