"""Acknowledgements in shared memory, so that the writes of a killed worker count too.

Every worker has an area of 64-bit words that no other process writes:

    meta    operations in the current chunk, sequence number of its first row
    stamps  begin and end of each operation of the chunk; 0 means not done yet
    rows    the slot of each row of the chunk's operations
    written
            a byte for each of these rows: 1 if it is written, 0 if it is only read or was given up
    sequences, begins, ends
            for each slot, the worker's last acknowledged write to it; sequence 0 means none
    counts  for each counter, the worker's acknowledged updates

A slot stands for a key. If keys times workers would take too much memory, only a subset of the keys,
selected by a hash, has slots. The keys of the published script are not known in advance, so each of its
slots stands for one set by the worker.
When a chunk is done, its writes are folded into the last three arrays. After the death of a worker, the
parent folds the unfinished chunk.

The stamps are a row of begins and a row of ends. In a closed loop every operation begins when the
previous one ends, so the two rows overlap, shifted by a word: a single store sets an end and a begin.
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
"""Maximum size of the acknowledgements of all workers, in bytes."""
MAX_CHUNK_ROWS = 1024
META = 8
COUNTERS = 16
"""Number of counters in every bucket, for read-modify-write transactions."""

_STRETCH = 512

UNTRACKED = -1
"""Slot number of a key that has no slot."""


class Shape(NamedTuple):
    """Sizes of the parts of a worker's area."""

    width: int
    """Rows per operation."""
    operations: int
    """Maximum number of operations in a chunk."""
    slots: int
    """Number of tracked keys."""
    counters: int
    """Number of counters in all files together."""
    idle: bool = False
    """Whether operations may begin later than the previous one ended; begins are then stored separately."""

    @property
    def ends_from(self) -> int:
        """Index in `stamps` of the first end. The first begin has index 0."""
        return self.operations if self.idle else 1

    @property
    def parts(self) -> tuple[int, ...]:
        """Words in `meta`, `stamps`, `rows`, `written`, in the last writes to the slots, and in `counts`."""
        rows = self.operations * self.width
        return META, self.ends_from + self.operations, rows, -(-rows // 8), 3 * self.slots, self.counters

    @property
    def words(self) -> int:
        """Number of words in one worker's area."""
        return sum(self.parts)


def shape_of(case: Case) -> Shape:
    """Return the shape of each worker's area."""
    load = case.spec
    if case.workload == "classic":
        return Shape(1, MAX_CHUNK_ROWS, case.ops or 0, 0)
    slots = min(load.key_space, MEMORY_BUDGET // (24 * case.concurrency))
    counters = case.buckets * COUNTERS if load.update_ratio else 0
    return Shape(load.batch, max(8, MAX_CHUNK_ROWS // load.batch), slots, counters, case.arrivals is not None)


class AckArea:
    """One worker's area, as named slices of the shared words."""

    def __init__(self, words: Any, shape: Shape, worker: int) -> None:
        """`words` must be 64-bit integers in a writable memoryview of format "q"."""
        self.shape = shape
        start, parts = (worker - 1) * shape.words, []
        for length in shape.parts:
            parts.append(words[start : start + length])
            start += length
        # The three words of a slot are adjacent, so that storing a write costs one cache miss, not three.
        self.meta, stamps, self.rows, written, self.last, self.counts = parts
        self.stamps = Stamps(stamps[: shape.operations], stamps[shape.ends_from :])
        self.written = written.cast("B")
        self.sequences, self.begins, self.ends = (self.last[column::3] for column in range(3))

    def announce(self, rows: array[int], written: bytes | bytearray, first: int, operations: int) -> None:
        """Store the rows that the next chunk will write, before it writes any; `rows` is an array("q").

        Every row of the chunk has a sequence number, counted from `first`, whether it is written or not. A
        written row must be tracked.
        """
        self.stamps.ends[:operations] = memoryview(bytes(8 * operations)).cast("q")
        self.rows[: len(rows)] = rows
        self.written[: len(rows)] = written
        self.meta[1] = first
        self.meta[0] = operations

    def give_up(self, operation: int) -> None:
        """Mark an operation of the chunk, numbered from 0, as one without writes."""
        width = self.shape.width
        self.written[operation * width : (operation + 1) * width] = bytes(width)

    def fold(self, rows: Sequence[int], stamps: Stamps) -> None:
        """Store the writes of the chunk's completed operations; calling it twice is harmless.

        `rows` has the slots of all rows of the chunk.
        """
        sequences, begins, ends, width = self.sequences, self.begins, self.ends, self.shape.width
        by_row: Iterable[Iterable[int]] = stamps
        if width > 1:  # all rows of an operation share its stamps
            by_row = (chain.from_iterable(map(repeat, stamp, repeat(width))) for stamp in stamps)
        done = zip(rows, count(self.meta[1]), *by_row, strict=False)
        for slot, sequence, begin, end in compress(done, self.written[: len(rows)].tolist()):
            # The sequence number comes last: see `enter` in native/record.c.
            begins[slot] = begin
            ends[slot] = end
            sequences[slot] = sequence

    def mark_settled(self) -> None:
        """Mark the chunk as done and folded."""
        self.meta[0] = 0

    def settle_after_death(self) -> dict[int, int]:
        """Fold the acknowledged operations of a dead worker's last chunk.

        Return {sequence number: slot} of the operation in progress: its writes may or may not be stored.
        """
        operations, width = self.meta[0], self.shape.width
        begins, ends = (list(stamps[:operations]) for stamps in self.stamps)
        done = [*ends, 0].index(0)
        rows = self.rows[: operations * width].tolist()
        self.fold(rows, Stamps(begins[:done], ends[:done]))
        under_way = slice(done * width, (done + 1) * width)
        numbered = enumerate(rows[under_way], self.meta[1] + done * width)
        return dict(compress(numbered, self.written[under_way].tolist()))


def area_of(case: Case, words: Any, worker: int) -> AckArea:
    """Return a worker's area within the array that the parent shares with the workers."""
    return AckArea(memoryview(words).cast("B").cast("q"), shape_of(case), worker)


def plan_of(case: Case, placement: Placement, values: Values, first: AckArea) -> dict[str, Any]:
    """Return the description of rows and acknowledged writes for the C code.

    `first` is the first worker's area.
    """
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


def latest_begins(areas: Sequence[AckArea], pulse: Pulse) -> Sequence[int]:
    """Return the latest begin of any worker's write to each slot; 0 means no write.

    Works in stretches, because lists of the columns of many workers would take several times the shared
    memory.
    """
    columns = [area.begins for area in areas]
    if len(columns) == 1:
        return columns[0]  # type: ignore[no-any-return]
    latest = array("q")
    for start in range(0, len(columns[0]), _STRETCH):
        pulse()
        latest.extend(map(max, *(column[start : start + _STRETCH].tolist() for column in columns)))
    return latest


def tracking_flags(rows: Iterable[int]) -> bytes:
    """Return a flag per row for `announce`: 1 if the row has a slot, else 0."""
    return bytes(slot != UNTRACKED for slot in rows)


class Slots:
    """The mapping from keys to slots. With room for all keys, a key's number is its slot."""

    def __init__(self, keys: int, slots: int) -> None:
        self.keys, self.slots, self.all_tracked = keys, slots, slots >= keys
        # Multiplication modulo the number of keys is a permutation, and so a hash without collisions.
        self.step = coprime(keys)

    def slot(self, number: int) -> int:
        """Return the slot of a key's number, or UNTRACKED."""
        if self.all_tracked:
            return number
        scattered = number * self.step % self.keys
        return scattered if scattered < self.slots else UNTRACKED
