"""Which bucket each key lies in, computed once by the parent and shared with the workers."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqlstress.errors import UsageError
from sqlstress.experiments.kv.keys import encoder
from sqlstress.system.sharing import shared_array
from sqlstress.targets.sqlite.partition import table

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.system.pulse import Pulse

_BLOCK = 1 << 14


class Placement:
    """Keys by bucket. With one bucket and no batches nothing has to be stored.

    For transactions of several replaces, the keys of a bucket are taken in pairs that are always
    written together, so that a torn transaction shows; an odd batch has one more key, from the
    bucket's last ones, which belong to no pair. Without batches over several buckets nobody asks for
    the members of a bucket, and `starts` and `pairs` are empty.
    """

    def __init__(self, case: Case, bucket_table: Any, order: Any) -> None:
        self.buckets = case.buckets
        self.key_space = case.spec.key_space
        self.table = memoryview(bucket_table).cast("B").cast("H") if bucket_table is not None else None
        self.order = memoryview(order).cast("B").cast("I") if order is not None else None
        self.starts = self._starts()
        batch = case.spec.batch
        solo_share = batch % 2 / batch
        self.pairs = [
            int(self.size(bucket) * (1 - solo_share)) // 2 for bucket in range(len(self.starts) - 1)
        ]

    def _starts(self) -> list[int]:
        if self.table is None:
            return [0, self.key_space]
        if self.order is None:
            return []
        bucket_of = self.table.__getitem__
        return [bisect_left(self.order, bucket, key=bucket_of) for bucket in range(self.buckets + 1)]

    def bucket(self, number: int) -> int:
        """Return the bucket of a key."""
        return self.table[number] if self.table is not None else 0

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

    def by_bucket(self, pulse: Pulse) -> list[Sequence[int]]:
        """Return the keys of each bucket, in ascending order."""
        if self.table is None:
            return [range(self.key_space)]
        return list(_grouped(self.table, self.buckets, pulse))


def shared_arrays(case: Case, pulse: Pulse) -> tuple[Any, Any]:
    """Return (bucket of each key, keys ordered by bucket) as shared arrays; None where not needed.

    Millions of keys take seconds: `pulse` is called often, and may raise.
    """
    load = case.spec
    if case.buckets == 1:
        return None, None
    encode = encoder(load.key_type)
    bucket_table = shared_array("H", load.key_space)
    words = memoryview(bucket_table).cast("B").cast("H")
    for block in _blocks(load.key_space):
        pulse()
        words[block.start : block.stop] = table(map(encode, block), case.buckets)
    if load.batch == 1:
        return bucket_table, None
    order = shared_array("I", load.key_space)
    ordered = memoryview(order).cast("B").cast("I")
    place = 0
    for group in _grouped(words, case.buckets, pulse):
        ordered[place : place + len(group)] = group
        place += len(group)
    return bucket_table, order


def _grouped(bucket_table: Any, buckets: int, pulse: Pulse) -> list[array[int]]:
    groups = [array("I") for _ in range(buckets)]
    adders = [group.append for group in groups]
    for block in _blocks(len(bucket_table)):
        pulse()
        for number, bucket in zip(block, bucket_table[block.start : block.stop].tolist(), strict=True):
            adders[bucket](number)
    return groups


def _blocks(count: int) -> Iterator[range]:
    """Yield the numbers from 0 to count - 1, block by block."""
    return (range(start, min(start + _BLOCK, count)) for start in range(0, count, _BLOCK))


def check_room(case: Case, placement: Placement) -> None:
    """Raise UsageError when a bucket has too few keys for a transaction's distinct keys."""
    batch = case.spec.batch
    for bucket in range(case.buckets):
        solo = placement.size(bucket) - 2 * placement.pairs[bucket]
        if placement.pairs[bucket] < batch // 2 or (batch % 2 and not solo):
            raise UsageError(
                f"bucket {bucket} holds {placement.size(bucket)} keys, too few for transactions of {batch} "
                "distinct keys: raise --key-space, or lower --batch or --buckets."
            )
