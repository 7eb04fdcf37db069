"""Keys of the key-value load: form in the database, random choice, and bucket (database file)."""

from __future__ import annotations

import math
import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import count, islice
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from sqlstress.errors import UsageError

if TYPE_CHECKING:
    from sqlstress.experiments.kv.spec import Load
    from sqlstress.report.case import Case

# The order of the names must match loop.h.
DISTRIBUTIONS = ("uniform", "zipfian", "sequential")
KEY_TYPES = ("int", "text", "blob")
Key = int | str | bytes
Draw = Callable[[int], "array[int]"]
"""Function that draws N random keys and returns their numbers as an array("q")."""

ZIPF_THETA = 0.99
_MIX = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def to_text(number: int) -> str:
    """Return a text key such as "key000000000042". Text keys sort like their numbers."""
    return f"key{number:012d}"


def to_blob(number: int) -> bytes:
    """Return a 16-byte key. Keys of neighbouring numbers sort far apart."""
    return (number * _MIX & _MASK).to_bytes(8, "big") + number.to_bytes(8, "big")


def encoder(key_type: str) -> Callable[[int], Key]:
    """Return the function that converts a number to a key of `key_type`, one of KEY_TYPES."""
    encoders: dict[str, Callable[[int], Key]] = {"int": int, "text": to_text, "blob": to_blob}
    return encoders[key_type]


def number_of(key: object, key_type: str) -> int | None:
    """Return the number of a stored key; None if `key` is not valid for this type."""
    try:
        if key_type == "int" and isinstance(key, int):
            return key if key >= 0 else None
        if key_type == "text" and isinstance(key, str):
            number = int(key[3:])
            return number if number >= 0 and key == to_text(number) else None
        if key_type == "blob" and isinstance(key, bytes):
            number = int.from_bytes(key[8:16], "big")
            return number if key == to_blob(number) else None
    except ValueError:
        pass
    return None


def drawer(load: Load, random: Random, worker: int, workers: int) -> Draw:
    """Return a function that draws the numbers of one worker's keys; `worker` counts from 0."""
    key_space = load.key_space
    if load.distribution == "zipfian":
        return _zipfian(key_space, random)
    if load.distribution == "uniform":
        return _uniform(key_space, random)
    following = (number % key_space for number in count(worker * key_space // workers))
    return lambda wanted: array("q", islice(following, wanted))


def _uniform(key_space: int, random: Random) -> Draw:
    """Return a function that draws keys with equal probability, all from one long random integer.

    A key is `key_space` times a random fraction. The product must fit into 64 bits, which limits the bits of
    the fraction. So the probabilities of two keys differ a little: with 100,000 keys by at most one part in
    10**9, with 10**8 keys by one part in 1,000.
    """
    fraction_bits = 64 - key_space.bit_length()
    fraction, whole = (1 << fraction_bits) - 1, (1 << 64 - fraction_bits) - 1

    @lru_cache(maxsize=32)
    def masks(count: int) -> tuple[int, int]:
        ones = int.from_bytes((1).to_bytes(8, "little") * count, "little")
        return ones * fraction, ones * whole

    def draw(count: int) -> array[int]:
        fractions, wholes = masks(count)
        products = (random.getrandbits(64 * count) & fractions) * key_space
        return array("q", (products >> fraction_bits & wholes).to_bytes(8 * count, sys.byteorder))

    return draw


class Zipf(NamedTuple):
    """Constants with which Gray's method draws Zipf-distributed ranks.

    The number of a key is its rank times `step`, modulo the number of keys.
    """

    total: float
    second: float
    eta: float
    alpha: float
    step: int


def zipf(key_space: int) -> Zipf:
    total = zeta(key_space)
    second = 1 + 0.5**ZIPF_THETA
    eta = (1 - (2 / key_space) ** (1 - ZIPF_THETA)) / (1 - second / total) if key_space > 2 else 1.0
    return Zipf(total, second, eta, 1 / (1 - ZIPF_THETA), coprime(key_space))


def _zipfian(key_space: int, random: Random) -> Draw:
    """Return a function that draws Zipf-distributed keys. Frequent keys are not adjacent.

    Source: Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994; theta as in
    YCSB.
    """
    total, second, eta, alpha, step = zipf(key_space)
    draw_unit = random.random

    def rank() -> int:
        unit = draw_unit()
        if unit * total < 1:
            return 0
        if unit * total < second:
            return 1
        return int(key_space * (eta * unit - eta + 1) ** alpha)

    return lambda count: array("q", [rank() * step % key_space for _ in range(count)])


def zeta(count: int) -> float:
    """Return the sum of 1/i**ZIPF_THETA for i = 1 to `count`, approximated after 10,000 terms."""
    theta, exact = ZIPF_THETA, min(count, 10_000)
    total = math.fsum(i**-theta for i in range(1, exact + 1))
    if count > exact:
        total += (count ** (1 - theta) - exact ** (1 - theta)) / (1 - theta)
        total += (count**-theta - exact**-theta) / 2
    return total


def coprime(count: int) -> int:
    """Return a number that is coprime to `count` and lies near the golden section of `count`.

    Its multiples modulo `count` are a permutation of 0 to `count` - 1 that scatters neighbouring numbers.
    """
    step = int(count * 0.6180339887) | 1
    while math.gcd(step, count) != 1:
        step += 2
    return step


_MASK_32 = (1 << 32) - 1


def key_bytes(key: Key) -> bytes:
    """Return the bytes of a key: an integer in big-endian order, a text in UTF-8, a blob as it is."""
    if isinstance(key, int):
        return key.to_bytes(8, "big", signed=True)
    return key.encode() if isinstance(key, str) else key


def scatter(number: int) -> int:
    """Return a 32-bit hash: fmix32 of MurmurHash3 (Austin Appleby, public domain)."""
    number = (number ^ number >> 16) * 0x85EBCA6B & _MASK_32
    number = (number ^ number >> 13) * 0xC2B2AE35 & _MASK_32
    return number ^ number >> 16


def bucket_of(key: Key, buckets: int) -> int:
    """Return the number of the bucket (database file) of a key, from 0.

    The bucket is a hash modulo `buckets`. The hash is CRC-32 followed by `scatter`. Without `scatter`, half
    of eight buckets would be empty for keys that are multiples of 524,288. Python's hash() is not used,
    because it differs between processes.
    """
    return scatter(crc32(key_bytes(key))) % buckets


def buckets_of(keys: Iterable[Key], buckets: int) -> array[int]:
    """Return the buckets (database files) of many keys as an array("H")."""
    return array("H", (bucket_of(key, buckets) for key in keys))


class Placement:
    """Table of the keys in each bucket (database file). A key's position is its index in its bucket.

    If transactions replace several rows, keys form pairs. Both keys of a pair are always written in the same
    transaction, so that reads can detect a torn (half visible) transaction. If a transaction replaces an odd
    number of rows, one of them is not in a pair: its key is one of the last keys of the bucket.
    """

    def __init__(self, case: Case, bucket_table: Any, order: Any) -> None:
        """`bucket_table` has the bucket of each key, `order` the keys sorted by bucket.

        Both are None if there is only one bucket.
        """
        self.buckets, self.batch = case.buckets, case.spec.batch
        self.table = memoryview(bucket_table).cast("B").cast("H") if bucket_table is not None else None
        self.order = memoryview(order).cast("B").cast("I") if order is not None else None
        self.starts: list[int] = [0, case.spec.key_space]
        if self.table is not None and self.order is not None:
            bucket_of_key, all_buckets = self.table.__getitem__, range(self.buckets + 1)
            self.starts = [bisect_left(self.order, bucket, key=bucket_of_key) for bucket in all_buckets]
        paired_share = 1 - self.batch % 2 / self.batch
        self.pairs = [int(self.size(bucket) * paired_share) // 2 for bucket in range(len(self.starts) - 1)]

    def bucket(self, number: int) -> int:
        return self.table[number] if self.table is not None else 0

    def members(self, bucket: int) -> Sequence[int]:
        """Return the numbers of a bucket's keys in ascending order."""
        members = slice(self.starts[bucket], self.starts[bucket + 1])
        return range(members.stop) if self.order is None else self.order[members]

    def member(self, bucket: int, position: int) -> int:
        """Return the number of the key at `position` in a bucket."""
        index = self.starts[bucket] + position
        return self.order[index] if self.order is not None else index

    def position(self, bucket: int, number: int) -> int:
        if self.order is None:
            return number
        start = self.starts[bucket]
        return bisect_left(self.order, number, start, self.starts[bucket + 1]) - start

    def size(self, bucket: int) -> int:
        return self.starts[bucket + 1] - self.starts[bucket]

    def check_room(self) -> None:
        """Raise UsageError if a bucket has too few distinct keys for one transaction."""
        for bucket, pairs in enumerate(self.pairs):
            size = self.size(bucket)
            if self.batch > 1 and (pairs < self.batch // 2 or size - 2 * pairs < self.batch % 2):
                raise UsageError(
                    f"bucket {bucket} has {size} keys, too few for transactions of {self.batch} distinct "
                    "keys. Raise --key-space, or lower --batch or --buckets."
                )
