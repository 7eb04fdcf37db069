"""Worker's part of the key-value workload: random gets and replaces, prepared in chunks.

A chunk is a batch of operations that the timed loop runs without other work in between. Built-in functions
draw keys, choose kinds and check values for a whole chunk at once. A stamp identifies the write of a value.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import chain, compress, islice, repeat
from operator import itemgetter
from random import Random
from typing import TYPE_CHECKING, Any, cast

from sqlstress.engine.protocols import FAILED, Chunk, Findings, Stamps
from sqlstress.engine.values import HEADER, SALT_SHIFT, Stamp, Values
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.experiments.kv.keys import Placement, drawer, encoder

if TYPE_CHECKING:
    from sqlstress.experiments.kv.native_loop import NativeSource
    from sqlstress.report.case import Case
    from sqlstress.targets.place import Place
    from sqlstress.targets.views import Operation, Refusal, RefusalStore


EXAMPLES = 3


class ReadCheck:
    """Checker of a worker's reads for values that no write stored, and for half-visible transactions.

    `batch` is the number of rows that a transaction replaces.
    """

    def __init__(self, values: Values, batch: int) -> None:
        self._values, self._batch = values, batch
        # The first two bytes of a value contain the salt, a number that identifies the trial.
        salt_of: Any = SALT_SHIFT.__rrshift__ if values.size == HEADER else itemgetter(slice(2))
        self._salt_of, self._salts = salt_of, {salt_of(values.maker(worker)(0)) for worker in (0, 1)}
        self.findings = Findings()

    def values_read(self, values: list[Any], params: Iterable[Any]) -> None:
        """Check the values that get operations have read. `params` has their keys, for error examples."""
        findings = self.findings
        findings.reads_checked += len(values)
        if self._all_ours(values):
            return
        for value, (key,) in zip(values, params, strict=False):
            if self._values.read(value) is None:
                findings.bad_reads += 1
                if findings.bad_reads <= EXAMPLES:
                    findings.bad_read_examples.append(foreign_read_text(key, value))

    def _all_ours(self, values: list[Any]) -> bool:
        # Built-in functions check all values at once. If this fails, the caller checks each value.
        if not values:
            return True
        try:
            sizes_fit = self._values.size == HEADER or set(map(len, values)) == {self._values.size}
            return sizes_fit and self._salts.issuperset(map(self._salt_of, values))
        except TypeError:
            return False

    def pair_read(self, rows: list[tuple[Any, Any]]) -> None:
        """Check that one transaction wrote both of `rows`, read in one snapshot; their keys form a pair."""
        findings = self.findings
        findings.pairs_checked += 1
        stamps = [self._values.read(value) for _, value in rows]
        if not self._is_one_transaction(stamps):
            findings.torn += 1
            if findings.torn <= EXAMPLES:
                stamped_rows = ((key, value, stamp) for (key, value), stamp in zip(rows, stamps, strict=True))
                findings.torn_examples.append(torn_pair_text(stamped_rows))

    def _is_one_transaction(self, stamps: list[Stamp | None]) -> bool:
        if len(stamps) != 2 or None in stamps:
            return False
        first, second = sorted(stamp for stamp in stamps if stamp)
        if first.worker == second.worker == 0:
            return True
        same_batch = (first.sequence - 1) // self._batch == (second.sequence - 1) // self._batch
        return first.worker == second.worker and second.sequence == first.sequence + 1 and same_batch


def foreign_read_text(key: Any, value: Any) -> str:
    """Return text on a get that read no row, or a value that no write of this trial stored."""
    result = "nothing" if value is None else f"the value {str(value)[:40]}, which no write of this trial made"
    return f"a get of key {key!r} read {result}"


def stale_read_text(key: Any, stamp: Stamp, worker: int, last: int) -> str:
    """Return text on a get that read an old value, stored by the write `stamp`.

    Before the get, worker number `worker` had replaced the value by its write number `last`.
    """
    return f"a get of key {key!r} read {_writer(stamp)} after worker {worker}'s write {last} was acknowledged"


def torn_pair_text(rows: Iterable[tuple[Any, Any, Stamp | None]]) -> str:
    """Return text on a pair of rows, (key, value, stamp or None), that different transactions wrote."""
    written = " and ".join(
        f"{key!r} by {_writer(stamp) if stamp else f'nobody ({str(value)[:40]})'}"
        for key, value, stamp in rows
    )
    return f"a snapshot of a pair of one transaction read {written or 'no rows'}"


def _writer(stamp: Stamp) -> str:
    return f"worker {stamp.worker}'s write {stamp.sequence}" if stamp.worker else "the preload"


KINDS = ("get", "replace", "update", "pair")
GET, REPLACE, UPDATE, PAIR = range(len(KINDS))
PATIENCE_S = 60.0
"""Time, in seconds, after which a worker fails if it only waited for locks and completed no write."""
RESOLUTION = 1 << 16
"""Number of values of the random 16-bit integer that decides the kind of an operation."""
_IS_GET = bytes(kind == GET for kind in range(256))


class KeyValueSource:
    """Source of a worker's operations, gets and replaces, each of which is a single SQL statement.

    Subclasses add transactions: replaces of several rows, and updates of counters.
    """

    kinds = KINDS
    row_weights: tuple[int, ...] = (1, 1, 1, 2)
    stamps: Any
    single_statements: tuple[int, ...] = (GET, REPLACE, PAIR)
    """Kinds of operations that are a single statement. This class records their failures.

    `store` records failures in transactions, because only it knows which statement failed.
    """

    def __init__(self, case: Case, place: Place, worker: int, salt: int, shared: tuple[Any, ...]) -> None:
        words, bucket_table, order = shared
        load, values = case.spec, Values(salt, case.spec.value_size)
        self.case, self.worker = case, worker
        self.store = place.keyvalue(worker, load.begin, values.maker(0)(0))
        self.area = acks.area_of(case, words, worker)
        self.shape, self.stamps = self.area.shape, self.area.stamps
        self.largest_chunk = self.shape.operations
        self.slots = acks.Slots(load.key_space, self.shape.slots)
        self.placement = Placement(case, bucket_table, order)
        self.random = Random(f"{case.seed}:{salt}:{worker}")
        self.draw = drawer(load, self.random, worker - 1, case.concurrency)
        self.encode = encoder(load.key_type)
        self.proves = case.verify != "none"
        self.check = ReadCheck(values, load.batch)
        self.only_reads = load.read_ratio == 1
        self.acknowledges = self.proves and not self.only_reads
        self.sequence = 1
        self._given_up = 0
        self._refusals = cast("RefusalStore", self.store) if hasattr(self.store, "refuse") else None
        self._refused: list[tuple[int, int, Exception]] = []
        """Failed operations of the current chunk: index, kind, error. Their times are known at its end."""
        self._make_value = values.maker(worker)
        self._make_values = values.series(worker)

    def next_chunk(self, size: int) -> Chunk | None:
        drawn = self.draw(size)
        numbers, table = drawn.tolist(), self.placement.table
        keys = numbers if self.encode is int else list(map(self.encode, numbers))
        gets, puts = self.store.gets, self.store.puts
        if self.only_reads:
            return Chunk(bytearray(size), self._select_by_bucket(gets, numbers), zip(keys), keys)
        # An operation reads if its random byte is below a threshold. The threshold is rounded up or down at
        # random, so that the share of reads is exact on average.
        below = int(256 * self.case.spec.read_ratio + self.random.random())
        kinds = bytearray(self.random.randbytes(size).translate(bytes(below) + b"\1" * (256 - below)))
        first = self.sequence
        self.sequence += size
        rows = self._announce(drawn, numbers, kinds, first) if self.acknowledges else None
        values = self._make_values(first, kinds)
        if kinds.count(REPLACE) == size:
            return Chunk(kinds, self._select_by_bucket(puts, numbers), zip(keys, values, strict=True), rows)
        writes = zip(keys, values, kinds, strict=True)
        params = [(key, value) if kind else (key,) for key, value, kind in writes]
        if table is None:
            get, put = gets[0], puts[0]
            return Chunk(kinds, [put if kind else get for kind in kinds], params, rows)
        buckets = zip(map(table.__getitem__, numbers), kinds, strict=True)
        calls = [puts[bucket] if kind else gets[bucket] for bucket, kind in buckets]
        return Chunk(kinds, calls, params, rows)

    def _announce(self, drawn: array[int], numbers: list[int], kinds: bytearray, first: int) -> list[int]:
        if self.slots.all_tracked:  # The number of a key is its slot.
            self.area.announce(drawn, kinds, first, len(kinds))
            return numbers
        slots = map(self.slots.slot, numbers)
        rows = [slot if kind else acks.UNTRACKED for slot, kind in zip(slots, kinds, strict=True)]
        self.area.announce(array("q", rows), acks.tracking_flags(rows), first, len(kinds))
        return rows

    def _select_by_bucket(self, operations: list[Operation], numbers: list[int]) -> Iterable[Operation]:
        if self.placement.table is None:
            return repeat(operations[0])
        return map(operations.__getitem__, map(self.placement.table.__getitem__, numbers))

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        if not self.store.was_busy(error):
            raise error
        if self._refusals and chunk.kinds[index] in self.single_statements:
            self._refused.append((index, chunk.kinds[index], error.with_traceback(None)))
        if chunk.kinds[index] == REPLACE:
            self.area.give_up(index)
        chunk.kinds[index] = FAILED

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        if self._refusals and self._refused:
            for index, kind, error in self._refused:
                waited_s = (stamps.ends[index] - stamps.begins[index]) / 1e9
                self._refusals.refuse(KINDS[kind], error, waited_s)
            self._refused.clear()
        if self.proves:
            self._check_reads(chunk, done, results)
        if self.acknowledges:
            self.area.fold(chunk.rows, stamps)
            self.area.mark_settled()
        if self.case.ops is not None:
            self._check_patience(chunk.kinds[:done])

    def _check_patience(self, kinds: bytearray) -> None:
        """Raise EnvironmentFailure if lock waits add up to PATIENCE_S without a write in between.

        Each failure counts as a whole busy timeout. Without this limit, a trial with a fixed number of
        operations might never end.
        """
        wrote = REPLACE in kinds or UPDATE in kinds
        self._given_up = 0 if wrote else self._given_up + kinds.count(FAILED)
        if self._given_up * self.case.settings.busy_timeout_ms / 1000 > PATIENCE_S:
            raise EnvironmentFailure(f"{self._given_up} writes in a row failed, and none succeeded")

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
        if self._refusals:
            self.check.findings.sightings = refusal_sightings(self.case, self._refusals.refusals())
        return self.check.findings

    def close(self) -> None:
        self.store.close()


def refusal_sightings(case: Case, refusals: list[Refusal]) -> list[Any]:
    """Return a worker's failed statements as sightings (observed events in the report)."""
    if not refusals:
        return []
    from sqlstress.recording.failures import refusal_records  # Without failures the module is not needed.

    return list(refusal_records(refusals, case.settings))


def open_source(
    case: Case, place: Place, worker: int, salt: int, shared: tuple[Any, ...]
) -> KeyValueSource | NativeSource:
    """Return the source of a worker's operations, for the loop in C or in Python."""
    if case.spec.loop == "native":  # Workers import only the modules that they use.
        from sqlstress.experiments.kv.native_loop import NativeSource

        return NativeSource(case, place, worker, salt, shared)
    several = case.spec.batch > 1 or case.spec.update_ratio > 0
    return (TransactionSource if several else KeyValueSource)(case, place, worker, salt, shared)


PAIRS_AMONG_GETS = 4
"""If transactions write several rows, one in PAIRS_AMONG_GETS gets reads a pair of rows."""


class TransactionSource(KeyValueSource):
    """Source of a worker's operations if transactions have several statements.

    It draws the operations of a chunk one after the other. The base class draws a whole chunk at once.
    """

    def __init__(self, case: Case, place: Place, worker: int, salt: int, shared: tuple[Any, ...]) -> None:
        super().__init__(case, place, worker, salt, shared)
        load = case.spec
        # Switch off the base class's shortcut for loads without writes, because it does not support pairs.
        self.only_reads = False
        self.row_weights = (1, load.batch, 1, 2)
        self.single_statements = (GET, REPLACE, PAIR) if load.batch == 1 else (GET, PAIR)
        self._updates = [self._counting_update(bucket) for bucket in range(case.buckets)]
        self._read_below = round(load.read_ratio * RESOLUTION)
        self._update_below = round((load.read_ratio + load.update_ratio) * RESOLUTION)

    def _counting_update(self, bucket: int) -> Operation:
        """Return a function that updates a counter, and counts the update as soon as it is committed.

        Replaces are recorded after the chunk, and perhaps again by the parent after the worker's death. The
        second time has no effect for a replace, but an update would be counted twice.
        """
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
            # Every operation, even a get, uses as many sequence numbers as a transaction has rows. So the
            # sequence number of a row follows from its position in the chunk.
            self.sequence += self.shape.width
        if self.acknowledges:
            self.area.announce(rows, acks.tracking_flags(rows), first, size)
        return Chunk(kinds, calls, params, rows)

    def _kind(self, drawn: int) -> int:
        if drawn < self._read_below:
            return PAIR if self.case.spec.batch > 1 and drawn % PAIRS_AMONG_GETS == 0 else GET
        return UPDATE if drawn < self._update_below else REPLACE

    def _operation(self, kind: int, number: int) -> tuple[Operation, Any, list[int]]:
        """Return the call, parameters and slots for an operation on key `number`."""
        bucket, encode, member = self.placement.bucket(number), self.encode, self.placement.member
        nothing = [acks.UNTRACKED] * self.shape.width
        if kind == GET:
            return self.store.gets[bucket], (encode(number),), nothing
        if kind == PAIR:
            first = 2 * self._pair_of(bucket, number)
            keys = encode(member(bucket, first)), encode(member(bucket, first + 1))
            return self.store.pairs[bucket], keys, nothing
        if kind == UPDATE:
            return self._updates[bucket], (number % COUNTERS,), nothing
        numbers = self._batch(bucket, number) if self.shape.width > 1 else [number]
        rows = [
            (encode(key_number), self._make_value(self.sequence + index))
            for index, key_number in enumerate(numbers)
        ]
        slots = [self.slots.slot(key_number) for key_number in numbers]
        if self.shape.width == 1:
            return self.store.puts[bucket], rows[0], slots
        return self.store.batches[bucket], rows, slots

    def _pair_of(self, bucket: int, number: int) -> int:
        """Return the index, in the bucket, of the pair to which the key `number` belongs.

        If the key has no partner, return the index of any pair.
        """
        position, pairs = self.placement.position(bucket, number), self.placement.pairs[bucket]
        return position // 2 if position < 2 * pairs else position % pairs

    def _batch(self, bucket: int, number: int) -> list[int]:
        """Return the distinct keys that a transaction replaces: the pair of key `number`, then random pairs.

        If the number of rows is odd, add a key that belongs to no pair.
        """
        pairs, batch = self.placement.pairs[bucket], self.shape.width
        chosen: dict[int, None] = {}
        further = (drawn % pairs for drawn in self.draw(batch // 2 - 1))
        for pair in chain([self._pair_of(bucket, number)], further):
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


LARGEST_KEY = 1 << 31


def draw_keys(case: Case, salt: int, worker: int) -> list[int]:
    """Return the random keys that a worker sets in `--preset classic`, in order.

    `salt`, a number that differs between trials, makes the keys differ.
    """
    randint = Random(f"{case.seed}:{salt}:{worker}").randint
    return [randint(0, LARGEST_KEY) for _ in range(case.ops or 0)]


class ClassicSource(KeyValueSource):
    """Source of a worker's operations in `--preset classic`: set all keys, then get them in random order.

    Each set is a transaction: a deferred BEGIN, the replace, COMMIT. A key's bucket is its remainder modulo
    the number of buckets. Source: docs/published-benchmark.md.
    """

    single_statements = (GET,)

    def __init__(self, case: Case, place: Place, worker: int, salt: int, shared: tuple[Any, ...]) -> None:
        super().__init__(case, place, worker, salt, shared)
        keys = draw_keys(case, salt, worker)
        shuffled = list(keys)
        Random(f"{case.seed}:{salt}:{worker}:shuffle").shuffle(shuffled)
        self._to_set, self._to_get = iter(keys), iter(shuffled)

    def next_chunk(self, size: int) -> Chunk | None:
        store, first = self.store, self.sequence
        if keys := list(islice(self._to_set, size)):
            self.sequence += len(keys)
            kinds = bytearray([REPLACE]) * len(keys)
            params: Any = [[row] for row in zip(keys, self._make_values(first, kinds), strict=True)]
            calls, slots = self._select_by_bucket(store.batches, keys), [*range(first - 1, self.sequence - 1)]
        elif keys := list(islice(self._to_get, size)):
            kinds, params = bytearray([GET]) * len(keys), list(zip(keys))
            calls, slots = self._select_by_bucket(store.gets, keys), [acks.UNTRACKED] * len(keys)
        else:
            return None
        self.area.announce(array("q", slots), acks.tracking_flags(slots), first, len(keys))
        return Chunk(kinds, calls, params, slots)

    def _select_by_bucket(self, operations: list[Operation], numbers: list[int]) -> Iterable[Operation]:
        return [operations[number % len(operations)] for number in numbers]
