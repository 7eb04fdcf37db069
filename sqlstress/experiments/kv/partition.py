"""Which bucket a key lies in: stable across processes, Python runs and targets.

The parent asks once for every key, and shares the answers with the workers: they hash nothing.

Python's hash() is salted in every process, so it is never used. CRC-32 alone keeps the regularity of
regular keys: every 524,288th integer would leave half of eight buckets empty. MurmurHash3's last step
takes that regularity out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

from sqlstress.errors import UsageError

if TYPE_CHECKING:
    from sqlstress.experiments.kv.keys import Key
    from sqlstress.report.case import Case

_MASK = (1 << 32) - 1


def key_bytes(key: Key) -> bytes:
    """Return the bytes that are hashed: big-endian two's complement, UTF-8, or the blob itself."""
    if isinstance(key, int):
        return key.to_bytes(8, "big", signed=True)
    return key.encode() if isinstance(key, str) else key


def scatter(number: int) -> int:
    """Return a permutation of the 32-bit numbers that leaves nothing of their order.

    Source: fmix32 of MurmurHash3, Austin Appleby, public domain.
    """
    number = (number ^ number >> 16) * 0x85EBCA6B & _MASK
    number = (number ^ number >> 13) * 0xC2B2AE35 & _MASK
    return number ^ number >> 16


def bucket_of(key: Key, buckets: int) -> int:
    """Return the bucket, 0 to buckets - 1, of a key."""
    return scatter(crc32(key_bytes(key))) % buckets


def table(keys: Iterable[Key], buckets: int) -> array[int]:
    """Return the buckets of many keys, two bytes each."""
    return array("H", (bucket_of(key, buckets) for key in keys))


class Placement:
    """Keys by bucket, as the parent has computed it and shared it. With one bucket nothing is stored.

    For transactions of several replaces, the keys of a bucket are taken in pairs that are always
    written together, so that a torn transaction shows; an odd batch has one more key, from the
    bucket's last ones, which belong to no pair.
    """

    def __init__(self, case: Case, bucket_table: Any, order: Any) -> None:
        """`bucket_table` has the bucket of each key, `order` the keys by bucket; None: there is one."""
        self.buckets, self.batch = case.buckets, case.spec.batch
        self.table = memoryview(bucket_table).cast("B").cast("H") if bucket_table is not None else None
        self.order = memoryview(order).cast("B").cast("I") if order is not None else None
        self.starts: list[int] = [0, case.spec.key_space]
        if self.table is not None and self.order is not None:
            of_key, places = self.table.__getitem__, range(self.buckets + 1)
            self.starts = [bisect_left(self.order, bucket, key=of_key) for bucket in places]
        paired_share = 1 - self.batch % 2 / self.batch
        self.pairs = [int(self.size(bucket) * paired_share) // 2 for bucket in range(len(self.starts) - 1)]

    def bucket(self, number: int) -> int:
        """Return the bucket of a key."""
        return self.table[number] if self.table is not None else 0

    def members(self, bucket: int) -> Sequence[int]:
        """Return the keys of a bucket, in ascending order."""
        members = slice(self.starts[bucket], self.starts[bucket + 1])
        return range(members.stop) if self.order is None else self.order[members]

    def member(self, bucket: int, position: int) -> int:
        """Return the key at a position of a bucket."""
        place = self.starts[bucket] + position
        return self.order[place] if self.order is not None else place

    def position(self, bucket: int, number: int) -> int:
        """Return the position of a key in its bucket."""
        if self.order is None:
            return number
        start = self.starts[bucket]
        return bisect_left(self.order, number, start, self.starts[bucket + 1]) - start

    def size(self, bucket: int) -> int:
        """Return the number of keys in a bucket."""
        return self.starts[bucket + 1] - self.starts[bucket]

    def check_room(self) -> None:
        """Raise UsageError when a bucket has too few keys for a transaction's distinct keys."""
        for bucket, pairs in enumerate(self.pairs):
            size = self.size(bucket)
            if self.batch > 1 and (pairs < self.batch // 2 or size - 2 * pairs < self.batch % 2):
                raise UsageError(
                    f"bucket {bucket} has {size} keys, too few for transactions of {self.batch} distinct "
                    "keys. Raise --key-space, or lower --batch or --buckets."
                )
