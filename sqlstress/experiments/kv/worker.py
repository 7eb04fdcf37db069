"""A worker's half of the key-value workload: random gets and replaces, prepared chunk by chunk.

Everything that can be done for many operations at once is done so, in C: drawing keys, choosing
kinds, checking what was read. Between two time stamps there is one call into the store.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import compress, repeat
from random import Random
from typing import TYPE_CHECKING, Any

from sqlstress.engine.protocols import FAILED, Chunk, Findings, Stamps
from sqlstress.engine.values import Values
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.checks import ReadCheck
from sqlstress.experiments.kv.keys import drawer, encoder
from sqlstress.experiments.kv.placement import Placement

if TYPE_CHECKING:
    from sqlstress.experiments.kv.native import NativeSource
    from sqlstress.report.case import Case
    from sqlstress.targets.keyvalue import Operation
    from sqlstress.targets.place import Place

KINDS = ("get", "replace", "update", "pair")
GET, REPLACE, UPDATE, PAIR = range(len(KINDS))
PATIENCE_S = 60.0
"""So long a worker may wait for locks, all attempts together, without a write between that was done."""
RESOLUTION = 1 << 16
"""From so many numbers the kind of an operation is drawn that may be a transaction of several statements."""
_IS_GET = bytes(kind == GET for kind in range(256))


class KeyValueSource:
    """Gets and single replaces; subclassed for transactions of several statements."""

    kinds = KINDS
    only_reads = False
    row_weights: tuple[int, ...] = (1, 1, 1, 2)
    stamps: Any

    def __init__(self, case: Case, place: Place, worker: int, salt: int, shared: tuple[Any, ...]) -> None:
        words, bucket_table, order = shared
        load = case.spec
        self._open(case, place, worker, salt, words, acks.shape_of(case, load.key_space))
        self.placement = Placement(case, bucket_table, order)
        self.random = Random(f"{case.seed}:{salt}:{worker}")
        self.draw = drawer(load, self.random, worker - 1, case.concurrency)
        self.encode = encoder(load.key_type)
        self.slots = acks.Slots(load.key_space, self.shape.slots)
        self.only_reads = load.read_ratio == 1
        self.acknowledges = self.proves and not self.only_reads

    def _open(self, case: Case, place: Place, worker: int, salt: int, words: Any, shape: acks.Shape) -> None:
        self.case, self.worker, self.shape = case, worker, shape
        self.values = Values(salt, case.spec.value_size)
        self.store = place.keyvalue(worker, case.spec.begin, self.values.maker(0)(0))
        self.area = acks.Area(memoryview(words).cast("B").cast("q"), shape, worker)
        self.stamps = self.area.stamps
        self.largest_chunk = shape.operations
        self.proves = case.verify != "none"
        self.check = ReadCheck(self.values, case.spec.batch)
        self.sequence = 1
        self._given_up = 0
        self._make_value = self.values.maker(worker)
        self._make_values = self.values.series(worker)
        self.acknowledges = self.proves

    def next_chunk(self, size: int) -> Chunk | None:
        drawn = self.draw(size)
        numbers = drawn.tolist()
        keys = numbers if self.encode is int else list(map(self.encode, numbers))
        if self.only_reads:
            return Chunk(bytearray(size), self._of_buckets(self.store.gets, numbers), zip(keys), keys)
        kinds, first = self._kinds(size), self.sequence
        self.sequence += size
        rows = self._announce(drawn, numbers, kinds, first) if self.acknowledges else None
        return Chunk(kinds, self._calls(numbers, kinds), self._params(keys, kinds, first), rows)

    def _kinds(self, size: int) -> bytearray:
        # One random byte for each operation; where the ratio is no multiple of 1/256, the threshold
        # itself is drawn for each chunk, so that its mean is exact.
        threshold = int(256 * self.case.spec.read_ratio + self.random.random())
        return bytearray(self.random.randbytes(size).translate(bytes(threshold) + b"\1" * (256 - threshold)))

    def _params(self, keys: list[Any], kinds: bytearray, first: int) -> Iterable[Any]:
        values = self._make_values(first, kinds)
        if kinds.count(REPLACE) == len(kinds):
            return zip(keys, values, strict=True)
        return [
            (key, value) if kind else (key,) for key, value, kind in zip(keys, values, kinds, strict=True)
        ]

    def _announce(self, drawn: array[int], numbers: list[int], kinds: bytearray, first: int) -> list[int]:
        """Announce what the chunk writes, and return its rows. A kind is 0 or 1: GET or REPLACE."""
        if self.slots.all_tracked:  # then a key's number is its slot
            self.area.announce(drawn, kinds, first, len(kinds))
            return numbers
        slots = map(self.slots.slot, numbers)
        rows = [slot if kind else acks.UNTRACKED for slot, kind in zip(slots, kinds, strict=True)]
        self.area.announce(array("q", rows), acks.tracked(rows), first, len(kinds))
        return rows

    def _calls(self, numbers: list[int], kinds: bytearray) -> Iterable[Operation]:
        gets, puts = self.store.gets, self.store.puts
        if kinds.count(REPLACE) == len(kinds):
            return self._of_buckets(puts, numbers)
        if self.placement.table is None:
            get, put = gets[0], puts[0]
            return [put if kind else get for kind in kinds]
        buckets = map(self.placement.table.__getitem__, numbers)
        return [puts[bucket] if kind else gets[bucket] for bucket, kind in zip(buckets, kinds, strict=True)]

    def _of_buckets(self, operations: list[Operation], numbers: list[int]) -> Iterable[Operation]:
        if self.placement.table is None:
            return repeat(operations[0])
        return map(operations.__getitem__, map(self.placement.table.__getitem__, numbers))

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        if not self.store.was_busy(error):
            raise error
        if chunk.kinds[index] == REPLACE:
            self.area.give_up(index)
        chunk.kinds[index] = FAILED

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        if self.proves:
            self._check_reads(chunk, done, results)
        if self.acknowledges:
            self.area.fold(chunk.rows, stamps)
            self.area.settled()
        if self.case.ops is not None:
            self._check_patience(chunk.kinds[:done])

    def _check_patience(self, kinds: bytearray) -> None:
        """Raise when no write has been possible for long: a fixed amount of work would wait for ever."""
        wrote = REPLACE in kinds or UPDATE in kinds
        self._given_up = 0 if wrote else self._given_up + kinds.count(FAILED)
        if self._given_up * self.case.settings.busy_timeout_ms / 1000 > PATIENCE_S:
            raise EnvironmentFailure(f"{self._given_up} writes in a row were given up, and none was done")

    def _check_reads(self, chunk: Chunk, done: int, results: list[Any]) -> None:
        params = zip(chunk.rows, strict=False) if self.only_reads else chunk.params
        is_get = chunk.kinds[:done].translate(_IS_GET)
        gets = is_get.count(1)
        if gets == done:
            self.check.values_read(results, params)
        elif gets:
            self.check.values_read(list(compress(results, is_get)), compress(params, is_get))

    def busy_counts(self) -> tuple[int, int]:
        return self.store.busy_counts()

    def findings(self) -> Findings:
        self.check.findings.effective = self.store.effective()
        return self.check.findings

    def close(self) -> None:
        self.store.close()


def open_source(
    case: Case, place: Place, worker: int, salt: int, shared: tuple[Any, ...]
) -> KeyValueSource | NativeSource:
    """Open a worker's half of a key-value case."""
    if case.spec.loop == "native":
        from sqlstress.experiments.kv.native import NativeSource

        return NativeSource(case, place, worker, salt, shared)
    if case.spec.batch > 1 or case.spec.update_ratio > 0:
        # Most cases have none, and a worker imports what it needs.
        from sqlstress.experiments.kv.transactions import TransactionSource

        return TransactionSource(case, place, worker, salt, shared)
    return KeyValueSource(case, place, worker, salt, shared)
