"""A worker's half when transactions have several statements: batches, updates and reads of pairs."""

from __future__ import annotations

from array import array
from itertools import chain
from typing import TYPE_CHECKING, Any

from sqlstress.engine.protocols import Chunk
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.experiments.kv.worker import GET, PAIR, REPLACE, RESOLUTION, UPDATE, KeyValueSource

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.keyvalue import Operation
    from sqlstress.targets.place import Place

PAIRS_AMONG_GETS = 4
"""With batches, one get in so many reads a pair."""


class TransactionSource(KeyValueSource):
    """Prepares one operation at a time: a transaction of several statements hides that cost."""

    def __init__(self, case: Case, place: Place, worker: int, salt: int, shared: tuple[Any, ...]) -> None:
        super().__init__(case, place, worker, salt, shared)
        # Even where nothing is written there are two kinds of reads, told apart by the chunk's kinds.
        self.only_reads = False
        self.row_weights = (1, case.spec.batch, 1, 2)
        self._updates = [self._counted(bucket) for bucket in range(case.buckets)]
        self._read_below = round(case.spec.read_ratio * RESOLUTION)
        self._update_below = round((case.spec.read_ratio + case.spec.update_ratio) * RESOLUTION)

    def _counted(self, bucket: int) -> Operation:
        """Acknowledge an update at once: a count can't be folded twice."""
        update, counts = self.store.updates[bucket], self.area.counts

        def update_and_count(counter: tuple[int]) -> None:
            update(counter)
            counts[bucket * COUNTERS + counter[0]] += 1

        return update_and_count

    def next_chunk(self, size: int) -> Chunk:
        first = self.sequence
        kinds, calls, params, rows = bytearray(), [], [], array("q")
        for number, drawn in zip(self.draw(size), array("H", self.random.randbytes(2 * size)), strict=True):
            kind = self._kind(drawn)
            call, param, slots = self._operation(kind, number)
            kinds.append(kind)
            calls.append(call)
            params.append(param)
            rows.extend(slots)
            # Every operation uses up as many sequence numbers as a transaction has rows.
            self.sequence += self.shape.width
        if self.acknowledges:
            self.area.announce(rows, acks.tracked(rows), first, size)
        return Chunk(kinds, calls, params, rows)

    def _kind(self, drawn: int) -> int:
        if drawn < self._read_below:
            return PAIR if self.case.spec.batch > 1 and drawn % PAIRS_AMONG_GETS == 0 else GET
        return UPDATE if drawn < self._update_below else REPLACE

    def _operation(self, kind: int, number: int) -> tuple[Operation, Any, list[int]]:
        """Return (call, parameters, slots of its rows) of one operation."""
        bucket, encode = self.placement.bucket(number), self.encode
        nothing = [acks.UNTRACKED] * self.shape.width
        if kind == GET:
            return self.store.gets[bucket], (encode(number),), nothing
        if kind == PAIR:
            first, second = self._pair(bucket, number)
            return self.store.pairs[bucket], (encode(first), encode(second)), nothing
        if kind == UPDATE:
            return self._updates[bucket], (number % COUNTERS,), nothing
        numbers = self._batch(bucket, number) if self.shape.width > 1 else [number]
        rows = [(encode(each), self._make_value(self.sequence + place)) for place, each in enumerate(numbers)]
        slots = [self.slots.slot(each) for each in numbers]
        if self.shape.width == 1:
            return self.store.puts[bucket], rows[0], slots
        return self.store.batches[bucket], rows, slots

    def _pair(self, bucket: int, number: int) -> tuple[int, int]:
        position = self._pair_number(bucket, number) * 2
        return self.placement.member(bucket, position), self.placement.member(bucket, position + 1)

    def _pair_number(self, bucket: int, number: int) -> int:
        """Return the pair to which a key belongs; a key that belongs to none stands for one all the same."""
        position, pairs = self.placement.position(bucket, number), self.placement.pairs[bucket]
        return position // 2 if position < 2 * pairs else position % pairs

    def _batch(self, bucket: int, number: int) -> list[int]:
        """Return a batch's distinct keys: whole pairs, and one key without a partner if it is odd."""
        pairs, batch = self.placement.pairs[bucket], self.shape.width
        chosen: dict[int, None] = {}
        further = (drawn % pairs for drawn in self.draw(batch // 2 - 1))
        for pair in chain([self._pair_number(bucket, number)], further):
            while pair in chosen:
                pair = (pair + 1) % pairs
            chosen[pair] = None
        positions = [2 * pair + half for pair in chosen for half in (0, 1)]
        if batch % 2:
            solo = self.placement.size(bucket) - 2 * pairs
            positions.append(2 * pairs + self.random.randrange(solo))
        return [self.placement.member(bucket, position) for position in positions]

    def _check_reads(self, chunk: Chunk, done: int, results: list[Any]) -> None:
        super()._check_reads(chunk, done, results)
        for kind, rows in zip(chunk.kinds, results, strict=False):
            if kind == PAIR:
                self.check.pair_read(rows)
