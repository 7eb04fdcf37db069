"""Acknowledgements (records of completed writes) in shared memory, so that a killed worker's writes count.

Each worker has an area of the memory. A chunk is a batch of operations that the timed loop runs without other
work in between. The rows of all of a worker's operations are numbered from 1: these are their sequence
numbers. A slot records a worker's last write to one key. Parts of an area, in 64-bit words:

- meta: number of operations in the current chunk, and sequence number of the chunk's first row
- stamps: begin and end time of each operation of the chunk, in ns; 0 means not done yet
- rows: slot of each table row that the chunk reads or writes
- written: a byte per row: 1 if the row is written, 0 if it is only read or its operation failed
- last: three words per slot, on the worker's last acknowledged write to the slot's key: sequence number (0
  means no write), begin, end. The attributes `sequences`, `begins` and `ends` are views of these words
- counts: number of the worker's acknowledged updates of each counter

After a chunk, the worker copies the chunk's writes to their slots; after a worker's death, the parent does.
If slots for all keys would take too much memory, only some keys, selected by a hash, have slots. The
published script (`--preset classic`) draws keys from 2**31 numbers, too many for a slot per key. So its slots
stand for writes: slot N records the worker's write number N, counted from 0.

In a closed loop an operation begins when the previous one ends. So the two arrays of stamps (begins, ends)
overlap, shifted by a word: a single store to memory sets an end and the next begin.
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
"""Maximum size of the slots (records of last writes) of all workers together, in bytes."""
MAX_CHUNK_ROWS = 1024
META = 8
COUNTERS = 16
"""Number of counters per bucket (database file), for transactions that increment a counter."""

_STRETCH = 512

UNTRACKED = -1
"""Slot number of a row without slot: it is only read, or the writes to its key are not recorded."""


class Shape(NamedTuple):
    """Sizes of the parts of a worker's area (the module docstring lists the parts)."""

    width: int
    """Number of table rows for which each operation has space: the rows that a transaction replaces."""
    operations: int
    """Maximum number of operations in a chunk."""
    slots: int
    """Number of slots. Each records the last write to one key."""
    counters: int
    """Number of counters in all buckets together."""
    idle: bool = False
    """Whether a worker may pause between operations (--rate). If so, begins and ends do not overlap."""

    @property
    def ends_from(self) -> int:
        """Index of the first end in the part `stamps`. The begins start at index 0.

        The index is 1 if begins and ends overlap. Otherwise the ends follow all begins.
        """
        return self.operations if self.idle else 1

    @property
    def parts(self) -> tuple[int, ...]:
        """Sizes of `meta`, `stamps`, `rows`, `written`, `last` and `counts`, in 64-bit words."""
        rows = self.operations * self.width
        return META, self.ends_from + self.operations, rows, -(-rows // 8), 3 * self.slots, self.counters

    @property
    def words(self) -> int:
        """Number of 64-bit words in a worker's area."""
        return sum(self.parts)


def shape_of(case: Case) -> Shape:
    """Return the sizes of each worker's area for a case (a set of options)."""
    load = case.spec
    if case.workload == "classic":
        return Shape(1, MAX_CHUNK_ROWS, case.ops or 0, 0)
    slots = min(load.key_space, MEMORY_BUDGET // (24 * case.concurrency))
    counters = case.buckets * COUNTERS if load.update_ratio else 0
    return Shape(load.batch, max(8, MAX_CHUNK_ROWS // load.batch), slots, counters, case.arrivals is not None)


class AckArea:
    """View of a worker's area of the shared memory, which records its acknowledged writes."""

    def __init__(self, words: Any, shape: Shape, worker: int) -> None:
        """`words` is the memory of all workers, in format "q" (64-bit words). `worker` counts from 1."""
        self.shape = shape
        start, parts = (worker - 1) * shape.words, []
        for length in shape.parts:
            parts.append(words[start : start + length])
            start += length
        # The sequence number, begin and end of a slot are adjacent in `last`. So storing a write costs one
        # cache miss instead of three.
        self.meta, stamps, self.rows, written, self.last, self.counts = parts
        self.stamps = Stamps(stamps[: shape.operations], stamps[shape.ends_from :])
        self.written = written.cast("B")
        self.sequences, self.begins, self.ends = (self.last[column::3] for column in range(3))

    def announce(self, rows: array[int], written: bytes | bytearray, first: int, operations: int) -> None:
        """Store the rows of the next chunk of operations, before the chunk begins.

        `rows` has the slot of each row that the chunk reads or writes. `written` has 1 for a row that is
        written (and has a slot), else 0. The rows have consecutive sequence numbers from `first`.
        `operations` is the number of operations in the chunk.
        """
        self.stamps.ends[:operations] = memoryview(bytes(8 * operations)).cast("q")
        self.rows[: len(rows)] = rows
        self.written[: len(rows)] = written
        self.meta[1] = first
        self.meta[0] = operations

    def give_up(self, operation: int) -> None:
        """Mark an operation of the current chunk, counted from 0, as failed: its writes do not count."""
        width = self.shape.width
        self.written[operation * width : (operation + 1) * width] = bytes(width)

    def fold(self, rows: Sequence[int], stamps: Stamps) -> None:
        """Record the completed writes of the current chunk in the slots of their keys.

        `rows` has the slot of each row. A second call with equal arguments has no effect.
        """
        sequences, begins, ends, width = self.sequences, self.begins, self.ends, self.shape.width
        by_row: Iterable[Iterable[int]] = stamps
        if width > 1:  # All rows of an operation share the operation's stamps.
            by_row = (chain.from_iterable(map(repeat, stamp, repeat(width))) for stamp in stamps)
        done = zip(rows, count(self.meta[1]), *by_row, strict=False)
        for slot, sequence, begin, end in compress(done, self.written[: len(rows)].tolist()):
            # The sequence number is stored last: a reader that sees it also sees the end of this write.
            begins[slot] = begin
            ends[slot] = end
            sequences[slot] = sequence

    def mark_settled(self) -> None:
        """Mark the current chunk as recorded: if the worker dies, the parent need not record it."""
        self.meta[0] = 0

    def settle_after_death(self) -> dict[int, int]:
        """Record the completed writes of a dead worker's last chunk in the slots of their keys.

        Return {sequence number: slot} for the writes in progress at the death. Each of these writes may be in
        the database, or may be missing.
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
    """Return a worker's area of the shared array `words`; `worker` counts from 1."""
    return AckArea(memoryview(words).cast("B").cast("q"), shape_of(case), worker)


def plan_of(case: Case, placement: Placement, values: Values, first: AckArea) -> dict[str, Any]:
    """Return the parameters of the C code that describe keys, values and the slots of all workers.

    `first` is the area of worker 1. The parameter `stride` is the distance, in 64-bit words, from a worker's
    slots to the slots of the next worker.
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
    """Return, by slot, the begin in ns of the latest acknowledged write of any worker; 0 means no write."""
    columns = [area.begins for area in areas]
    if len(columns) == 1:
        return columns[0]  # type: ignore[no-any-return]
    latest = array("q")
    for start in range(0, len(columns[0]), _STRETCH):
        pulse()
        latest.extend(map(max, *(column[start : start + _STRETCH].tolist() for column in columns)))
    return latest


def tracking_flags(rows: Iterable[int]) -> bytes:
    """Return a flag for each slot number in `rows`: 0 if it is UNTRACKED, else 1."""
    return bytes(slot != UNTRACKED for slot in rows)


class Slots:
    """Mapping from a key's number to its slot, which is the number itself if all keys have slots."""

    def __init__(self, keys: int, slots: int) -> None:
        self.keys, self.slots, self.all_tracked = keys, slots, slots >= keys
        # Multiplication by `step`, modulo the number of keys, is a permutation: a hash without collisions.
        self.step = coprime(keys)

    def slot(self, number: int) -> int:
        """Return the slot of key `number`; UNTRACKED if the key has no slot."""
        if self.all_tracked:
            return number
        scattered = number * self.step % self.keys
        return scattered if scattered < self.slots else UNTRACKED
