"""Which file a key lies in: stable across processes, Python runs and drivers.

Python's hash() is salted in every process, so it is never used. CRC-32 alone keeps the regularity of
regular keys: every 524,288th integer would leave half of eight buckets empty. MurmurHash3's last step
takes that regularity out. The published script partitions by `key % n`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from zlib import crc32

Key = int | str | bytes

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


def modulo(key: int, buckets: int) -> int:
    """Return the bucket of a key as the published script chooses it."""
    return key % buckets


def table(keys: Iterable[Key], buckets: int) -> array[int]:
    """Return the buckets of many keys, two bytes each."""
    return array("H", (bucket_of(key, buckets) for key in keys))


def file_names(buckets: int) -> list[str]:
    """Return the names of the database files, one for each bucket."""
    return ["kv.db"] if buckets == 1 else [f"kv_{bucket}.db" for bucket in range(buckets)]
