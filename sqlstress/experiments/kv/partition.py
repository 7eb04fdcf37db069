"""Which bucket a key lies in: stable across processes, Python runs and targets.

The parent asks once for every key, and shares the answers with the workers: they hash nothing.

Python's hash() is salted in every process, so it is never used. CRC-32 alone keeps the regularity of
regular keys: every 524,288th integer would leave half of eight buckets empty. MurmurHash3's last step
takes that regularity out.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast
from zlib import crc32

from sqlstress.experiments.kv.keys import Key, encoder
from sqlstress.experiments.kv.placement import Placement
from sqlstress.report.case import Case
from sqlstress.system.interrupt import Pulse
from sqlstress.system.sharing import shared_array

T = TypeVar("T")

MOST_KEPT = 1_000_000
"""Keys whose partition is kept for the next trial: 6 to 10 MB a layout."""
_MASK = (1 << 32) - 1
_BLOCK = 1 << 14


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


def shared_arrays_once(case: Case, carry: dict[Any, Any], pulse: Pulse) -> tuple[Any, Any]:
    """Return the same, from the trial before that had the same keys; of very many keys none are kept."""
    return _once(case, carry, "partition", lambda: shared_arrays(case, pulse))


def by_bucket_once(
    case: Case, placement: Placement, carry: dict[Any, Any], pulse: Pulse
) -> list[Sequence[int]]:
    """Return what by_bucket returns, kept as the partition is."""
    return _once(case, carry, "by bucket", lambda: by_bucket(placement, pulse))


def _once(case: Case, carry: dict[Any, Any], what: str, make: Callable[[], T]) -> T:
    load = case.spec
    key = (what, case.buckets, load.key_space, load.key_type, load.batch > 1)
    if key in carry:
        return cast(T, carry[key])
    found = make()
    if load.key_space <= MOST_KEPT:
        carry[key] = found
    return found


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


def by_bucket(placement: Placement, pulse: Pulse) -> list[Sequence[int]]:
    """Return the keys of each bucket, in ascending order."""
    if placement.table is None:
        return [range(placement.key_space)]
    return list(_grouped(placement.table, placement.buckets, pulse))
