"""A worker's half of the published measurement.

Each worker draws 5,000 keys, sets each in a transaction of its own (a deferred BEGIN, the replace,
COMMIT), shuffles them and gets each. Source: the benchmark whose tables `--preset classic` sets
one's own beside; see docs/classic.md.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import islice, repeat
from random import Random
from typing import TYPE_CHECKING, Any

from sqlstress.engine.protocols import Chunk
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.worker import GET, REPLACE, KeyValueSource

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.place import Place
    from sqlstress.targets.views import Operation


LARGEST_KEY = 1 << 31


def drawn_keys(case: Case, salt: int, worker: int) -> list[int]:
    """Return a worker's keys, in the order in which it sets them."""
    randint = Random(f"{case.seed}:{salt}:{worker}").randint
    return [randint(0, LARGEST_KEY) for _ in range(case.ops or 0)]


def modulo(key: int, buckets: int) -> int:
    """Return the bucket of a key as the published script chooses it."""
    return key % buckets


def shape_of(case: Case) -> acks.Shape:
    """Return the shape of a worker's area: each of its sets has a slot of its own."""
    return acks.Shape(1, acks.CHUNK_ROWS, case.ops or 0, 0)


class ClassicSource(KeyValueSource):
    """Sets all of its keys, then gets them shuffled."""

    def __init__(self, case: Case, place: Place, worker: int, salt: int, shared: tuple[Any, ...]) -> None:
        self._open(case, place, worker, salt, shared[0], shape_of(case))
        keys = drawn_keys(case, salt, worker)
        shuffled = list(keys)
        Random(f"{case.seed}:{salt}:{worker}:shuffle").shuffle(shuffled)
        self._to_set, self._to_get = iter(keys), iter(shuffled)

    def next_chunk(self, size: int) -> Chunk | None:
        return self._sets(list(islice(self._to_set, size))) or self._gets(list(islice(self._to_get, size)))

    def _sets(self, keys: list[int]) -> Chunk | None:
        if not keys:
            return None
        kinds, first = bytearray([REPLACE]) * len(keys), self.sequence
        self.sequence += len(keys)
        params = [[row] for row in zip(keys, self._make_values(first, kinds), strict=True)]
        slots = range(first - 1, first - 1 + len(keys))
        self.area.announce(array("q", slots), kinds, first, len(keys))
        return Chunk(kinds, self._of_buckets(self.store.batches, keys), params, slots)

    def _gets(self, keys: list[int]) -> Chunk | None:
        if not keys:
            return None
        nowhere = [acks.UNTRACKED] * len(keys)
        self.area.announce(array("q", nowhere), acks.tracked(nowhere), self.sequence, len(keys))
        kinds = bytearray([GET]) * len(keys)
        return Chunk(kinds, self._of_buckets(self.store.gets, keys), list(zip(keys)), nowhere)

    def _of_buckets(self, operations: list[Operation], numbers: list[int]) -> Iterable[Operation]:
        buckets = self.case.buckets
        if buckets == 1:
            return repeat(operations[0], len(numbers))
        return [operations[modulo(number, buckets)] for number in numbers]
