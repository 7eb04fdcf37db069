"""A worker's half: what to do next is drawn by weight, and a call does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlstress.engine.protocols import FAILED, Chunk, Findings, Stamps

if TYPE_CHECKING:
    from sqlstress.report.case import Case


MOST_KINDS = 20
"""Kinds of what workers met that are kept apart."""
Plain = tuple[str, str, int, str, dict[str, str]]
"""What a worker tells of: topic, what, count, example, traits, as the fields of a Sighting."""
K = TypeVar("K")


class Kinds(Generic[K]):
    """Counts what was met by kind: of each the first example is kept."""

    def __init__(self, others: K) -> None:
        """`others` are what there is no room for."""
        self._others = others
        self.counts = Counter[K]()
        self.examples: dict[K, str] = {}

    def add(self, kind: K, example: str) -> None:
        if kind not in self.counts and len(self.counts) >= MOST_KINDS:
            kind = self._others
        self.counts[kind] += 1
        self.examples.setdefault(kind, example)

    def __iter__(self) -> Iterator[tuple[K, int, str]]:
        """Yield each kind, how often it was met, and its first example."""
        return ((kind, count, self.examples[kind]) for kind, count in self.counts.items())


class UserSource:
    """Draws operations. An experiment inherits from it, sets `calls`, and adds the methods that raise here.

    What an operation raises ends the worker, unless `was_busy` says that a lock stayed taken.
    """

    acknowledges = False
    stamps: Any = None
    largest_chunk = 256

    def __init__(self, case: Case, worker: int, salt: int, weights: Mapping[str, int]) -> None:
        """`weights` are those of the kinds of operations, in their order."""
        self.case, self.worker, self.kinds = case, worker, tuple(weights)
        self.row_weights: Sequence[int] = (0,) * len(weights)
        self.random = Random(f"{case.seed}:{salt}:{worker}")
        self.calls: Sequence[Callable[[Any], Any]] = ()
        """What each kind of operation calls, with what `prepared` made of it."""
        self.seen = Findings()
        self._which, self._sums = range(len(weights)), list(accumulate(weights.values()))

    def prepared(self, picks: Sequence[int]) -> Sequence[Any]:
        """Make what each of these operations needs, outside the times that are measured."""
        return picks

    def was_busy(self, error: Exception) -> bool:
        """Return whether an operation was given up because a lock stayed taken, and count it if so."""
        raise NotImplementedError

    def busy_counts(self) -> tuple[int, int]:
        return 0, 0

    def effective(self) -> dict[str, str]:
        """Return the settings that it ran with."""
        return {}

    def close(self) -> None:
        """Nothing stays that does not end with this process."""

    def next_chunk(self, size: int) -> Chunk:
        picks = self.random.choices(self._which, cum_weights=self._sums, k=size)
        calls = self.calls
        return Chunk(bytearray(picks), [calls[pick] for pick in picks], self.prepared(picks))

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        if not self.was_busy(error):
            raise error
        chunk.kinds[index] = FAILED

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Nothing is to be acknowledged that the operation has not acknowledged itself."""

    def findings(self) -> Findings:
        self.seen.effective = self.effective()
        return self.seen
