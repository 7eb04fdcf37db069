"""A worker's half: what to do next is drawn by weight, and a call does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlstress.engine.protocols import FAILED, Chunk, Findings, Stamps
from sqlstress.statistics.histogram import Recorder

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
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


class FailureTimes:
    """The times of failed operations by kind and error, as far as they ended in the window."""

    def __init__(self) -> None:
        self.window: Window | None = None
        self._recorders: dict[tuple[str, str], Recorder] = {}
        self._pending: list[tuple[int, str, str]] = []

    def add(self, index: int, kind: str, error: str) -> None:
        """Keep a failed operation of the current chunk until its times are known."""
        self._pending.append((index, kind, error))

    def fold(self, stamps: Stamps) -> None:
        """Record the times of the failed operations of a chunk."""
        window = self.window
        for index, kind, error in self._pending:
            begin, end = stamps.begins[index], stamps.ends[index]
            if window and window.opens_ns <= end < window.closes_ns:
                key = (kind, error)
                if key not in self._recorders and len(self._recorders) >= MOST_KINDS:
                    key = (kind, "")
                self._recorders.setdefault(key, Recorder()).record([end - begin])
        self._pending.clear()

    def recorded(self) -> list[tuple[str, str, dict[int, int], int]]:
        """Return the failures as the findings of a worker have them."""
        return [(*key, each.buckets(), each.largest()) for key, each in self._recorders.items()]


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
        self.failures = FailureTimes()
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
        self.failures.add(index, self.kinds[chunk.kinds[index]], self.error_name(error))
        chunk.kinds[index] = FAILED

    def error_name(self, error: Exception) -> str:
        """Return the database's name for an error; empty if unknown."""
        return ""

    def hear(self, window: Window) -> None:
        """Take the window in which operations count."""
        self.failures.window = window

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Record the times of failed operations; operations acknowledge themselves."""
        self.failures.fold(stamps)

    def findings(self) -> Findings:
        self.seen.effective = self.effective()
        self.seen.failures = self.failures.recorded()
        return self.seen
