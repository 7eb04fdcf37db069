"""A clock that moves only when a test moves it, and a source whose operations move it."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlstress.engine.loop import Run
from sqlstress.engine.protocols import FAILED, Chunk, Findings, Source, Stamps
from sqlstress.experiments.kv.worker import GET, KINDS

LARGEST = 64


class FakeClock:
    """A clock, in the caller's unit, that moves only by `now` or `sleep`."""

    def __init__(self, now: Any = 0) -> None:
        self.now = now

    def __call__(self) -> Any:
        return self.now

    def sleep(self, length: Any) -> None:
        self.now += length


class Busy(Exception):
    """Error of the fake store if a lock was not released."""


class FakeSource:
    """Operations of fixed lengths; preparing and settling a chunk also take fixed times.

    An operation is (kind, nanoseconds) or (kind, nanoseconds, function called at its end).
    """

    kinds: Sequence[str] = KINDS
    acknowledges = True
    row_weights: Sequence[int] = (1, 10, 1, 2)
    largest_chunk = LARGEST

    def __init__(
        self, clock: FakeClock, operations: Iterable[tuple[Any, ...]], prepare_ns: int = 0, settle_ns: int = 0
    ) -> None:
        self.clock = clock
        self.operations: Iterator[tuple[Any, ...]] = iter(operations)
        self.prepare_ns, self.settle_ns = prepare_ns, settle_ns
        words = memoryview(array("q", bytes(16 * LARGEST)))
        self.stamps: Any = Stamps(words[:LARGEST], words[LARGEST:])
        self.sizes: list[int] = []
        self.settled: list[tuple[int, list[Any], Stamps]] = []
        self.begun = 0
        self.busy = (0, 0)

    def next_chunk(self, size: int) -> Chunk | None:
        self.clock.now += self.prepare_ns
        operations = list(islice(self.operations, size))
        if not operations:
            return None
        self.sizes.append(size)
        return Chunk(bytearray(kind for kind, *_ in operations), [self._run] * len(operations), operations)

    def _run(self, operation: tuple[Any, ...]) -> str:
        self.begun += 1
        self.clock.now += operation[1]
        for act in operation[2:]:
            act()
        return f"result {self.begun}"

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        if not isinstance(error, Busy):
            raise error
        chunk.kinds[index] = FAILED

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        self.clock.now += self.settle_ns
        self.settled.append((done, results, stamps))

    def busy_counts(self) -> tuple[int, int]:
        return self.busy

    def findings(self) -> Findings:
        return Findings()

    def close(self) -> None:
        pass


def gets(count: int, ns: int) -> list[tuple[int, int]]:
    """Return `count` gets of the same length."""
    return [(GET, ns)] * count


def idling(clock: FakeClock, gap_ns: int) -> Run:
    """Return a loop that begins each operation `gap_ns` after the previous end, as a loop with a rate may."""

    def run(source: Source, chunk: Chunk, begin: int, closes_ns: int, _: Any) -> tuple[list[Any], Stamps]:
        results: list[Any] = []
        begins, ends = source.stamps
        for place, (call, params) in enumerate(zip(chunk.calls, chunk.params, strict=False)):
            clock.now += gap_ns
            if clock() >= closes_ns:
                break
            begins[place] = clock()
            try:
                results.append(call(params))
            except Exception as error:
                source.give_up(chunk, place, error)
                results.append(None)
            ends[place] = clock()
            if clock() >= closes_ns:
                break
        done = len(results)
        return results, Stamps(begins[:done].tolist(), ends[:done].tolist())

    return run


def raising(error: Exception) -> Any:
    """Return a function that raises this error."""

    def act() -> None:
        raise error

    return act
