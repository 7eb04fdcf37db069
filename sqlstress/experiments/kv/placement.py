"""Which bucket each key lies in, as the parent has computed it once and shared it with the workers."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from sqlstress.errors import UsageError

if TYPE_CHECKING:
    from sqlstress.report.case import Case


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
