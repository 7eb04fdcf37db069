"""Acknowledgements in shared memory, so that those of a killed worker count too.

Every worker has an area of 64-bit words that nobody else writes:

    meta    operations in the current chunk, sequence number of its first row
    stamps  when each of its operations began, and when each ended; 0: not done yet
    rows    the slot of each row of the chunk's operations
    written
            a byte for each of these rows: 1 if it is written, 0 if it is read or was given up
    sequences, begins, ends
            for each slot, the worker's last acknowledged write to it; sequence 0: none
    counts  for each counter, the worker's acknowledged updates

A slot is a key, or the place of a key in a hash-selected subset when keys times workers would take
too much memory; of the published script, whose keys nobody knows before, it is one of the worker's sets.
When a chunk is done its writes are folded into the last three arrays; of a worker that died, the parent
folds the chunk that was under way.

The stamps are a row of begins and a row of ends. In a closed loop, where every operation begins when the
one before it has ended, they lie one over the other, a word apart: so a single store is both.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain, compress, count, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.protocols import Stamps
from sqlstress.experiments.kv.keys import KEY_TYPES, coprime

if TYPE_CHECKING:
    from sqlstress.engine.values import Values
    from sqlstress.experiments.kv.keys import Placement
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse

MEMORY_BUDGET = 256 << 20
"""Bytes of acknowledgements, all workers together."""
CHUNK_ROWS = 1024
META = 8
COUNTERS = 16
"""Counters in every bucket, for read-modify-write transactions."""

_STRETCH = 512

UNTRACKED = -1
"""The slot of a key for which there was no room."""


class Shape(NamedTuple):
    """How many words of each kind a worker's area has."""

    width: int
    """Rows of one operation."""
    operations: int
    """Operations of a chunk, at most."""
    slots: int
    """Tracked keys."""
    counters: int
    """Counters of all files together."""
    idle: bool = False
    """Whether an operation may begin later than the one before it ended: then its begin is stored apart."""

    @property
    def ends_from(self) -> int:
        """Where in `stamps` the row of ends begins; that of the begins does so at 0."""
        return self.operations if self.idle else 1

    @property
    def parts(self) -> tuple[int, ...]:
        """Words of `meta`, `stamps`, `rows` and `written`, of what is known of the slots, and of `counts`."""
        rows = self.operations * self.width
        return META, self.ends_from + self.operations, rows, -(-rows // 8), 3 * self.slots, self.counters

    @property
    def words(self) -> int:
        """Words of one worker's area."""
        return sum(self.parts)


def shape_of(case: Case) -> Shape:
    """Return the shape of the areas of a case's workers."""
    load = case.spec
    if case.workload == "classic":
        return Shape(1, CHUNK_ROWS, case.ops or 0, 0)
    slots = min(load.key_space, MEMORY_BUDGET // (24 * case.concurrency))
    counters = case.buckets * COUNTERS if load.update_ratio else 0
    return Shape(load.batch, max(8, CHUNK_ROWS // load.batch), slots, counters, case.arrivals is not None)


class Area:
    """One worker's area, as named slices of the shared words."""

    def __init__(self, words: Any, shape: Shape, worker: int) -> None:
        """`words` are 64-bit integers that can be sliced and written: a memoryview of format "q"."""
        self.shape = shape
        start, parts = (worker - 1) * shape.words, []
        for length in shape.parts:
            parts.append(words[start : start + length])
            start += length
        # Of each slot its three words lie side by side: to enter a write is one cache miss, not three.
        self.meta, stamps, self.rows, written, self.last, self.counts = parts
        self.stamps = Stamps(stamps[: shape.operations], stamps[shape.ends_from :])
        self.written = written.cast("B")
        self.sequences, self.begins, self.ends = (self.last[column::3] for column in range(3))

    def announce(self, rows: array[int], written: bytes | bytearray, first: int, operations: int) -> None:
        """Say what the next chunk will write, before any of it is written; `rows` is an array("q").

        Every row of the chunk has a sequence number, counted from `first`, whether it is written or not.
        A row that is written must be tracked.
        """
        self.stamps.ends[:operations] = memoryview(bytes(8 * operations)).cast("q")
        self.rows[: len(rows)] = rows
        self.written[: len(rows)] = written
        self.meta[1] = first
        self.meta[0] = operations

    def give_up(self, operation: int) -> None:
        """Say that an operation of the chunk, by its number from 0, has written nothing."""
        width = self.shape.width
        self.written[operation * width : (operation + 1) * width] = bytes(width)

    def fold(self, rows: Sequence[int], stamps: Stamps) -> None:
        """Enter the writes of done operations, `rows` being the chunk's; to do it twice does no harm."""
        sequences, begins, ends, width = self.sequences, self.begins, self.ends, self.shape.width
        by_row: Iterable[Iterable[int]] = stamps
        if width > 1:  # each stamp is that of all rows of its operation
            by_row = (chain.from_iterable(map(repeat, each, repeat(width))) for each in stamps)
        done = zip(rows, count(self.meta[1]), *by_row, strict=False)
        for slot, sequence, begin, end in compress(done, self.written[: len(rows)].tolist()):
            # The sequence number comes last: see `enter` in native/record.c.
            begins[slot] = begin
            ends[slot] = end
            sequences[slot] = sequence

    def settled(self) -> None:
        """Say that the chunk is done and folded."""
        self.meta[0] = 0

    def settle_after_death(self) -> dict[int, int]:
        """Fold what a dead worker had been told of its last chunk.

        Returns {sequence number: slot} of the operation that was under way: whether those were
        written nobody knows.
        """
        operations, width = self.meta[0], self.shape.width
        begins, ends = (list(each[:operations]) for each in self.stamps)
        done = [*ends, 0].index(0)
        rows = self.rows[: operations * width].tolist()
        self.fold(rows, Stamps(begins[:done], ends[:done]))
        under_way = slice(done * width, (done + 1) * width)
        numbered = enumerate(rows[under_way], self.meta[1] + done * width)
        return dict(compress(numbered, self.written[under_way].tolist()))


def area_of(case: Case, words: Any, worker: int) -> Area:
    """Return a worker's area of the array that the parent shares with the workers of a case."""
    return Area(memoryview(words).cast("B").cast("q"), shape_of(case), worker)


def plan_of(case: Case, placement: Placement, values: Values, first: Area) -> dict[str, Any]:
    """Return what C is told of rows and their acknowledged writes; `first` is the first worker's area."""
    load, shape = case.spec, first.shape
    return {
        "key_type": KEY_TYPES.index(load.key_type),
        "key_space": load.key_space,
        "bucket_of": placement.table,
        "salt": values.salt,
        "value_size": load.value_size,
        "workers": case.concurrency,
        "lasts": first.last,
        "stride": shape.words,
        "slots": shape.slots,
        "slot_step": Slots(load.key_space, shape.slots).step,
    }


def latest_begins(areas: Sequence[Area], pulse: Pulse) -> Sequence[int]:
    """Return the latest begin of any worker's write to each slot; 0 where nobody wrote.

    Stretch by stretch: as lists, the columns of many workers would be several times the shared memory.
    """
    columns = [area.begins for area in areas]
    if len(columns) == 1:
        return columns[0]  # type: ignore[no-any-return]
    latest = array("q")
    for start in range(0, len(columns[0]), _STRETCH):
        pulse()
        latest.extend(map(max, *(column[start : start + _STRETCH].tolist() for column in columns)))
    return latest


def tracked(rows: Iterable[int]) -> bytes:
    """Return what `announce` wants to know of rows of which only the written ones have a slot."""
    return bytes(slot != UNTRACKED for slot in rows)


class Slots:
    """Which slot a key has. With room for all keys a key's number is its slot."""

    def __init__(self, keys: int, slots: int) -> None:
        self.keys, self.slots, self.all_tracked = keys, slots, slots >= keys
        # A multiplication modulo the number of keys is a permutation, and so a hash without collisions.
        self.step = coprime(keys)

    def slot(self, number: int) -> int:
        """Return the slot of a key's number, or UNTRACKED."""
        if self.all_tracked:
            return number
        place = number * self.step % self.keys
        return place if place < self.slots else UNTRACKED
