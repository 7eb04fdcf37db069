"""Which bucket each key lies in, computed once by the parent and shared with the workers."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from multiprocessing.sharedctypes import RawArray
from typing import Any

from sqlstress.case import Case
from sqlstress.errors import UsageError
from sqlstress.stores.partition import table
from sqlstress.workloads.kv.keys import encoder


class Placement:
    """Keys by bucket. With one bucket and no batches nothing has to be stored.

    For transactions of several replaces, the keys of a bucket are taken in pairs that are always
    written together, so that a torn transaction shows; an odd batch has one more key, from the
    bucket's last ones, which belong to no pair.
    """

    def __init__(self, case: Case, bucket_table: Any, order: Any) -> None:
        self.buckets = case.buckets
        self.key_space = case.load.key_space
        self.table = memoryview(bucket_table).cast("B").cast("H") if bucket_table is not None else None
        self.order = memoryview(order).cast("B").cast("Q") if order is not None else None
        self.starts, self.pairs = self._layout(case)

    def _layout(self, case: Case) -> tuple[list[int], list[int]]:
        sizes = [self.key_space]
        if self.table is not None:
            sizes = [0] * self.buckets
            for bucket in self.table:
                sizes[bucket] += 1
        batch = case.load.batch
        solo_share = batch % 2 / batch
        pairs = [int(size * (1 - solo_share)) // 2 for size in sizes]
        return [0, *accumulate(sizes)], pairs

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

    def by_bucket(self) -> list[Sequence[int]]:
        """Return the keys of each bucket, in ascending order."""
        if self.table is None:
            return [range(self.key_space)]
        groups = [array("Q") for _ in range(self.buckets)]
        for number, bucket in enumerate(self.table):
            groups[bucket].append(number)
        return list(groups)

    def size(self, bucket: int) -> int:
        """Return the number of keys in a bucket."""
        return self.starts[bucket + 1] - self.starts[bucket]


def shared_arrays(case: Case) -> tuple[Any, Any]:
    """Return (bucket of each key, keys ordered by bucket) as shared arrays; None where not needed."""
    load = case.load
    if case.buckets == 1:
        return None, None
    encode = encoder(load.key_type)
    buckets = table(map(encode, range(load.key_space)), case.buckets)
    bucket_table = RawArray("H", load.key_space)
    memoryview(bucket_table).cast("B").cast("H")[:] = buckets
    if load.batch == 1:
        return bucket_table, None
    order = RawArray("Q", load.key_space)
    ordered = memoryview(order).cast("B").cast("Q")
    ordered[:] = array("Q", sorted(range(load.key_space), key=buckets.__getitem__))
    return bucket_table, order


def check_room(case: Case, placement: Placement) -> None:
    """Raise UsageError when a bucket has too few keys for a transaction's distinct keys."""
    batch = case.load.batch
    for bucket in range(case.buckets):
        solo = placement.size(bucket) - 2 * placement.pairs[bucket]
        if placement.pairs[bucket] < batch // 2 or (batch % 2 and not solo):
            raise UsageError(
                f"bucket {bucket} holds {placement.size(bucket)} keys, too few for transactions of {batch} "
                "distinct keys: raise --key-space, or lower --batch or --buckets."
            )
