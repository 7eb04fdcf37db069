"""Worker's part of a trial with the user's own work: random operations by weight."""

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


MAX_KINDS = 20
"""Maximum number of kinds of observations or failures that are counted separately."""
K = TypeVar("K")


class KindCounter(Generic[K]):
    """Counter of observations by kind, with the first example of each kind."""

    def __init__(self, others: K) -> None:
        """Count kinds after the first MAX_KINDS as the kind `others`."""
        self._others = others
        self.counts = Counter[K]()
        self.examples: dict[K, str] = {}

    def add(self, kind: K, example: str) -> None:
        """Count an observation of this kind. `example` describes the observation."""
        if kind not in self.counts and len(self.counts) >= MAX_KINDS:
            kind = self._others
        self.counts[kind] += 1
        self.examples.setdefault(kind, example)

    def __iter__(self) -> Iterator[tuple[K, int, str]]:
        return ((kind, count, self.examples[kind]) for kind, count in self.counts.items())


class FailureTimes:
    """Recorder of the durations of failed operations that ended in the measured time.

    A worker runs operations in batches (chunks). Their start and end times (stamps) are known only after the
    batch.
    """

    def __init__(self) -> None:
        self.window: Window | None = None
        self._recorders: dict[tuple[str, str], Recorder] = {}
        self._pending: list[tuple[int, str, str]] = []

    def add(self, index: int, kind: str, error: str) -> None:
        """Store a failed operation until its times are known. `index` is its place in the batch."""
        self._pending.append((index, kind, error))

    def fold(self, stamps: Stamps) -> None:
        """Record the durations of the stored operations. `stamps` has the start and end times."""
        window = self.window
        for index, kind, error in self._pending:
            begin, end = stamps.begins[index], stamps.ends[index]
            if window and window.opens_ns <= end < window.closes_ns:
                key = (kind, error)
                if key not in self._recorders and len(self._recorders) >= MAX_KINDS:
                    key = (kind, "")
                self._recorders.setdefault(key, Recorder()).record([end - begin])
        self._pending.clear()

    def recorded(self) -> list[tuple[str, str, dict[int, int], int]]:
        """Return a tuple for each kind of operation and error.

        The items are the kind, the error, the counts of durations by histogram bucket, and the longest
        duration in ns. After MAX_KINDS tuples, other errors are counted together, with "" as the error.
        """
        return [(*key, recorder.buckets(), recorder.largest()) for key, recorder in self._recorders.items()]


class UserSource:
    """Base class of a worker's operations, which are drawn at random by weight.

    A subclass sets `calls` and implements `was_busy`. Any exception other than an unavailable lock ends the
    worker.
    """

    acknowledges = False
    stamps: Any = None
    largest_chunk = 256

    def __init__(self, case: Case, worker: int, salt: int, weights: Mapping[str, int]) -> None:
        """`weights` has the weight of each kind of operation. `salt` varies random draws between trials."""
        self.case, self.worker, self.kinds = case, worker, tuple(weights)
        self.row_weights: Sequence[int] = (0,) * len(weights)
        self.random = Random(f"{case.seed}:{salt}:{worker}")
        self.calls: Sequence[Callable[[Any], Any]] = ()
        """Functions that run an operation, one per kind. Their argument comes from `prepare`."""
        self.seen = Findings()
        self.failures = FailureTimes()
        self._kind_numbers, self._cumulative_weights = range(len(weights)), list(accumulate(weights.values()))

    def prepare(self, picks: Sequence[int]) -> Sequence[Any]:
        """Return an argument for each operation of the next batch. This takes no measured time.

        `picks` has an index into `kinds` for each operation.
        """
        return picks

    def was_busy(self, error: Exception) -> bool:
        """Return whether `error` means that a lock was not released in time. If so, count the error."""
        raise NotImplementedError

    def busy_counts(self) -> tuple[int, int]:
        return 0, 0

    def effective(self) -> dict[str, str]:
        """Return the effective settings of the worker's connection, by name."""
        return {}

    def close(self) -> None:
        """Do nothing: connections and files are closed when the process ends."""

    def next_chunk(self, size: int) -> Chunk:
        picks = self.random.choices(self._kind_numbers, cum_weights=self._cumulative_weights, k=size)
        calls = self.calls
        return Chunk(bytearray(picks), [calls[pick] for pick in picks], self.prepare(picks))

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        if not self.was_busy(error):
            raise error
        self.failures.add(index, self.kinds[chunk.kinds[index]], self.error_name(error))
        chunk.kinds[index] = FAILED

    def error_name(self, error: Exception) -> str:
        """Return the database's name of an error, such as "SQLITE_BUSY"; empty if unknown."""
        return ""

    def hear(self, window: Window) -> None:
        """Set the measured time: failures outside of `window` are not recorded."""
        self.failures.window = window

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Record the durations of failed operations in a finished batch.

        `done` and `results` are not used: sqlstress cannot check results of the user's code.
        """
        self.failures.fold(stamps)

    def findings(self) -> Findings:
        self.seen.effective = self.effective()
        self.seen.failures = self.failures.recorded()
        return self.seen
