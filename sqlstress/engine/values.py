"""Values that identify the write that stored them.

The first eight bytes of a value are a positive integer: 15 bits of salt (a number per trial, its highest bit
set), 12 bits of worker (0 is the preload: the rows stored before the load) and 36 bits of sequence number.
Longer values are blobs, padded with bytes that follow from the three numbers. All values differ, so SQLite
cannot skip a write.

The preload has one salt in all trials, so that trials can start with copies of the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import NamedTuple

SEQUENCE_BITS = 36
WORKER_BITS = 12
SALT_SHIFT = SEQUENCE_BITS + WORKER_BITS
SALTS = 1 << 14
PRELOAD_SALT = 1
"""Salt of rows stored before the load. Like other salts, it makes SQLite store an integer in 8 bytes."""
HEADER = 8
_STRETCH = 256

Value = int | bytes


class Stamp(NamedTuple):
    """Identity of a write: number of the worker (0: preload), and number among the worker's writes."""

    worker: int
    sequence: int


class Values:
    """Maker and reader of the values of one trial.

    `trial` is a number from which the salt follows, a part of each value. `size` is a value's size in bytes.
    """

    def __init__(self, trial: int, size: int) -> None:
        self.salt = SALTS | trial % SALTS
        self.size = size
        self._pads: dict[int, bytes] = {}

    def base(self, worker: int) -> int:
        """Return the integer value of a worker's sequence number 0. Worker 0 is the preload."""
        return (self.salt if worker else PRELOAD_SALT) << SALT_SHIFT | worker << SEQUENCE_BITS

    def maker(self, worker: int) -> Callable[[int], Value]:
        """Return the function from a sequence number to the worker's value."""
        base = self.base(worker)
        if self.size == HEADER:
            return base.__add__
        pad, length = self.padding(worker), self.size - HEADER

        def make(sequence: int) -> bytes:
            start = sequence % _STRETCH
            return (base + sequence).to_bytes(HEADER, "big") + pad[start : start + length]

        return make

    def series(self, worker: int) -> Callable[[int, Sequence[int]], Iterable[Value | None]]:
        """Return the function that makes a worker's values for consecutive sequence numbers.

        Arguments: the first sequence number, and a flag for each value: whether the value is needed. A value
        that is not needed may be None.
        """
        base, make = self.base(worker), self.maker(worker)
        if self.size == HEADER:
            return lambda first, needed: range(base + first, base + first + len(needed))
        return lambda first, needed: [
            make(sequence) if need else None for sequence, need in enumerate(needed, first)
        ]

    def padding(self, worker: int) -> bytes:
        """Return the bytes from which a worker pads its values, each from a different offset."""
        if worker not in self._pads:
            salt = self.salt if worker else PRELOAD_SALT
            self._pads[worker] = Random(f"{salt}:{worker}").randbytes(self.size + _STRETCH)
        return self._pads[worker]

    def stamp(self, number: int) -> Stamp | None:
        """Return the write encoded in a value's integer; None if it is not a write of this trial."""
        worker = number >> SEQUENCE_BITS & (1 << WORKER_BITS) - 1
        if number >> SALT_SHIFT != (self.salt if worker else PRELOAD_SALT):
            return None
        return Stamp(worker, number & (1 << SEQUENCE_BITS) - 1)

    def read(self, value: object) -> Stamp | None:
        """Return the write that stored a value; None if no write of this trial can have stored it."""
        if self.size == HEADER:
            number = value if isinstance(value, int) else -1
        elif isinstance(value, bytes) and len(value) == self.size:
            number = int.from_bytes(value[:HEADER], "big")
        else:
            return None
        stamp = self.stamp(number)
        if stamp and self.size > HEADER and self.maker(stamp.worker)(stamp.sequence) != value:
            return None
        return stamp
