"""A worker's half that does a list of operations, known beforehand, in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from sqlstress.engine.ledger import CHUNK, Ledger
from sqlstress.engine.protocols import Chunk, Findings, Stamps
from sqlstress.targets import Operation
from sqlstress.targets.sqlite.drivers import Waiting


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

    def __init__(self, words: Any, worker: int, waiting: Waiting, steps: Iterator[Step]) -> None:
        """`words` are those of `ledger.shared_words`; `waiting` counts the answers BUSY."""
        self.row_weights = (0,) * len(self.kinds)
        self.seen = Findings()
        self._ledger, self._waiting, self._steps = Ledger(words, worker), waiting, steps
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
        return self._waiting.busy, self._waiting.busy_snapshot
