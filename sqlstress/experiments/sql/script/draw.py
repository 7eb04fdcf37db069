"""Random numbers, hashes and permutations as pgbench makes them.

Source: PostgreSQL 15, src/bin/pgbench/pgbench.c and src/common/pg_prng.c. The distributions are pgbench's;
the streams are ours. Hashes and permutations give pgbench's own numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from random import Random

from sqlstress.experiments.sql.script.numbers import WRAP, NoValue, double, signed, whole
from sqlstress.experiments.sql.script.tree import Value

_LEAST_GAUSSIAN = 2.0
_LEAST_ZIPFIAN, _MOST_ZIPFIAN = 1.001, 1000.0
_EXACT = 1 << 53
"""Up to this a double can tell every integer from the next one."""
_FNV_BASIS, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
_MURMUR, _MURMUR_TIMES_8, _MURMUR_SHIFT = 0xC6A4A7935BD1E995, 0x35253C9ADE8F4CA8, 47


def _count(low: int, high: int) -> int:
    """Return how many integers lie between two, both included."""
    if low > high:
        raise NoValue(f"there is no integer from {low} to {high}")
    count = high - low + 1
    if count > 1 << 63:
        raise NoValue("the range is too large")
    return count


class Draws:
    """The random functions over one stream."""

    def __init__(self, source: Random) -> None:
        self._uniform, self._gauss, self._below = source.random, source.gauss, source.randrange

    def between(self, low: int, high: int) -> Callable[[], int]:
        """Return what draws an integer between two, both included."""
        count, uniform, below = _count(low, high), self._uniform, self._below
        if count < _EXACT:
            return lambda: low + int(count * uniform())
        return lambda: low + below(count)

    def random(self, low: Value, high: Value) -> Value:
        first = whole(low)
        count = _count(first, whole(high))
        return first + (int(count * self._uniform()) if count < _EXACT else self._below(count))

    def gaussian(self, low: Value, high: Value, parameter: Value) -> Value:
        first, width = whole(low), double(parameter)
        count = _count(first, whole(high))
        if not width >= _LEAST_GAUSSIAN:
            raise NoValue(f"the parameter of random_gaussian is at least {_LEAST_GAUSSIAN}, not {width}")
        while not -width <= (drawn := self._gauss(0.0, 1.0)) < width:
            pass
        return first + int(count * (drawn + width) / (2 * width))

    def exponential(self, low: Value, high: Value, parameter: Value) -> Value:
        first, decay = whole(low), double(parameter)
        count = _count(first, whole(high))
        if not decay > 0:
            raise NoValue(f"the parameter of random_exponential is above 0, not {decay}")
        cut = math.exp(-decay)
        share = -math.log(cut + (1 - cut) * (1 - self._uniform())) / decay
        return first + min(int(count * share), count - 1)

    def zipfian(self, low: Value, high: Value, parameter: Value) -> Value:
        first, skew = whole(low), double(parameter)
        count = _count(first, whole(high))
        if not _LEAST_ZIPFIAN <= skew <= _MOST_ZIPFIAN:
            raise NoValue(
                f"the parameter of random_zipfian lies from {_LEAST_ZIPFIAN} to {_MOST_ZIPFIAN:g}, not {skew}"
            )
        return first if count == 1 else first - 1 + self._rank(count, skew)

    def _rank(self, count: int, skew: float) -> int:
        """Draw a rank by rejection. Source: L. Devroye, Non-Uniform Random Variate Generation, p. 550-551."""
        top = 2.0 ** (skew - 1)
        while True:
            try:
                rank = math.floor(math.pow(1 - self._uniform(), -1 / (skew - 1)))
            except OverflowError:
                continue  # far beyond any count
            if rank > count:
                continue
            ratio = (1 + 1 / rank) ** (skew - 1)
            if self._uniform() * rank * (ratio - 1) / (top - 1) <= ratio / top:
                return rank


def fnv1a(value: Value, seed: Value) -> Value:
    """Return the FNV-1a hash of a 64-bit integer."""
    bits, hashed = whole(value) & WRAP, _FNV_BASIS ^ (whole(seed) & WRAP)
    for octet in bits.to_bytes(8, "little"):
        hashed = (hashed ^ octet) * _FNV_PRIME & WRAP
    return signed(hashed)


def murmur2(value: Value, seed: Value) -> Value:
    """Return the MurmurHash2 of a 64-bit integer."""
    hashed, bits = (whole(seed) & WRAP) ^ _MURMUR_TIMES_8, whole(value) * _MURMUR & WRAP
    bits = (bits ^ bits >> _MURMUR_SHIFT) * _MURMUR & WRAP
    hashed = (hashed ^ bits) * _MURMUR & WRAP
    hashed = (hashed ^ hashed >> _MURMUR_SHIFT) * _MURMUR & WRAP
    return signed(hashed ^ hashed >> _MURMUR_SHIFT)


def permute(value: Value, size: Value, seed: Value) -> Value:
    """Return where a number goes in a permutation of so many."""
    number, count = whole(value), whole(size)
    if count <= 0:
        raise NoValue(f"permute: the size is above 0, not {count}")
    if count == 1:
        return 0
    place, masklen = (number & WRAP) % count, count.bit_length() - 1
    mask = (1 << masklen) - 1
    for low, high, offset in _rounds(count, whole(seed)):
        if place <= mask:
            place = _stirred(place, low, mask, masklen)
        if (mirrored := count - 1 - place) <= mask:
            place = count - 1 - _stirred(mirrored, high, mask, masklen)
        place = (place + offset) % count
    return place


Step = tuple[int, int]
"""An odd factor, and what is then XORed."""


def _stirred(number: int, step: Step, mask: int, masklen: int) -> int:
    number = (number * step[0] ^ step[1]) & mask
    return (number << 1 & mask) | number >> (masklen - 1)


@lru_cache(maxsize=64)
def _rounds(count: int, seed: int) -> list[tuple[Step, Step, int]]:
    """Return the numbers that each of the six rounds of a permutation needs."""
    stream, mask = Xoroshiro(seed), (1 << (count.bit_length() - 1)) - 1

    def step() -> Step:
        return stream.next() & mask | 1, stream.next() & mask

    return [(step(), step(), stream.below(count)) for _ in range(6)]


class Xoroshiro:
    """The generator xoroshiro128**, seeded by splitmix64. Source: https://prng.di.unimi.it."""

    def __init__(self, seed: int) -> None:
        self._a, self._b = (_split(seed + number * 0x9E3779B97F4A7C15) for number in (1, 2))

    def next(self) -> int:
        """Return the next 64 bits."""
        first, mixed = self._a, self._a ^ self._b
        self._a = _rotated(first, 24) ^ mixed ^ (mixed << 16 & WRAP)
        self._b = _rotated(mixed, 37)
        return _rotated(first * 5 & WRAP, 7) * 9 & WRAP

    def below(self, count: int) -> int:
        """Return a number from 0 to one less than the count: a larger one is drawn again."""
        shift = 64 - (count - 1).bit_length()
        while (number := self.next() >> shift) >= count:
            pass
        return number


def _split(state: int) -> int:
    state &= WRAP
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & WRAP
    state = (state ^ state >> 27) * 0x94D049BB133111EB & WRAP
    return state ^ state >> 31


def _rotated(bits: int, by: int) -> int:
    return (bits << by | bits >> (64 - by)) & WRAP
