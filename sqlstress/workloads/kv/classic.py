"""A worker's half of the published measurement.

Each worker draws 5,000 keys, sets each in a transaction of its own (a deferred BEGIN, the replace,
COMMIT), shuffles them and gets each. Source: the benchmark whose tables `--preset classic` sets
one's own beside; see docs/classic.md.
"""

from __future__ import annotations

from array import array
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from sqlstress.case import Case
from sqlstress.stores import Operation
from sqlstress.stores.partition import modulo
from sqlstress.workloads.base import Chunk
from sqlstress.workloads.kv import acks
from sqlstress.workloads.kv.kinds import GET, REPLACE
from sqlstress.workloads.kv.source import KeyValueSource

LARGEST_KEY = 1 << 31


def drawn_keys(case: Case, salt: int, worker: int) -> list[int]:
    """Return a worker's keys, in the order in which it sets them."""
    randint = Random(f"{case.seed}:{salt}:{worker}").randint
    return [randint(0, LARGEST_KEY) for _ in range(case.ops or 0)]


def shape_of(case: Case) -> acks.Shape:
    """Return the shape of a worker's area: each of its sets has a slot of its own."""
    return acks.Shape(1, acks.CHUNK_ROWS, case.ops or 0, 0)


class ClassicSource(KeyValueSource):
    """Sets all of its keys, then gets them shuffled."""

    def __init__(self, case: Case, folder: Path, worker: int, salt: int, shared: tuple[Any, ...]) -> None:
        self._open(case, folder, worker, salt, shared[0], shape_of(case))
        keys = drawn_keys(case, salt, worker)
        shuffled = list(keys)
        Random(f"{case.seed}:{salt}:{worker}:shuffle").shuffle(shuffled)
        self._operations = iter([(REPLACE, key) for key in keys] + [(GET, key) for key in shuffled])
        self._slot = 0

    def next_chunk(self, size: int) -> Chunk | None:
        first, kinds, rows = self._slot + 1, bytearray(), array("q")
        calls: list[Operation] = []
        params: list[Any] = []
        for kind, key in islice(self._operations, size):
            bucket = modulo(key, self.case.buckets)
            kinds.append(kind)
            if kind == REPLACE:
                calls.append(self.store.batches[bucket])
                params.append([(key, self._make_value(self._slot + 1))])
                rows.append(self._slot)
                self._slot += 1
            else:
                calls.append(self.store.gets[bucket])
                params.append((key,))
                rows.append(acks.READ)
        if not kinds:
            return None
        self.area.announce(rows, first, len(kinds))
        return Chunk(kinds, calls, params, rows)
