"""Keys: numbers 0 to key_space - 1, how they look in the database, and how they are drawn."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable
from functools import lru_cache
from itertools import count, islice
from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlstress.experiments.kv.experiment import Load

Key = int | str | bytes
Draw = Callable[[int], "array[int]"]
"""A function of a count: so many key numbers, as an array("q")."""

ZIPF_THETA = 0.99
_MIX = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def to_text(number: int) -> str:
    """Return the text key of a number: its order is that of the numbers."""
    return f"key{number:012d}"


def to_blob(number: int) -> bytes:
    """Return the blob key of a number, 16 bytes: neighbours lie far apart, as random identifiers do."""
    return (number * _MIX & _MASK).to_bytes(8, "big") + number.to_bytes(8, "big")


def encoder(key_type: str) -> Callable[[int], Key]:
    """Return the function from a key's number to what stands in the database."""
    encoders: dict[str, Callable[[int], Key]] = {"int": int, "text": to_text, "blob": to_blob}
    return encoders[key_type]


def number_of(key: object, key_type: str) -> int | None:
    """Return the number of a key that was read; None when no key looks like that."""
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
    """Return the function that draws key numbers for one worker, who is counted from 0."""
    key_space = load.key_space
    if load.distribution == "zipfian":
        return _zipfian(key_space, random)
    if load.distribution == "uniform":
        return _uniform(key_space, random)
    following = (number % key_space for number in count(worker * key_space // workers))
    return lambda wanted: array("q", islice(following, wanted))


def _uniform(key_space: int, random: Random) -> Draw:
    """Draw a random fraction times the key space, for all keys at once, side by side in one long integer.

    Each has 64 bits there, of which as many are random as the product leaves: with a hundred thousand
    keys no key is preferred by one part in a thousand million, with a hundred million not by one in
    a thousand.
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
    """What Gray's method needs of a key space, and the step by which ranks are scattered over it."""

    total: float
    second: float
    eta: float
    alpha: float
    step: int


def zipf(key_space: int) -> Zipf:
    """Return the numbers by which ranks are drawn from a key space."""
    total = zeta(key_space)
    second = 1 + 0.5**ZIPF_THETA
    eta = (1 - (2 / key_space) ** (1 - ZIPF_THETA)) / (1 - second / total) if key_space > 2 else 1.0
    return Zipf(total, second, eta, 1 / (1 - ZIPF_THETA), coprime(key_space))


def _zipfian(key_space: int, random: Random) -> Draw:
    """Draw ranks by Gray's method and scatter them over the key space by a fixed permutation.

    Source: Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994, as
    YCSB uses it; theta is 0.99 as in YCSB.
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
    """Return the sum of 1/i**ZIPF_THETA for i = 1 to count, beyond 10,000 terms by Euler and Maclaurin."""
    theta, exact = ZIPF_THETA, min(count, 10_000)
    total = math.fsum(i**-theta for i in range(1, exact + 1))
    if count > exact:
        total += (count ** (1 - theta) - exact ** (1 - theta)) / (1 - theta)
        total += (count**-theta - exact**-theta) / 2
    return total


def coprime(count: int) -> int:
    """Return a step without a common divisor: multiples of it, modulo the count, are a permutation."""
    step = int(count * 0.6180339887) | 1
    while math.gcd(step, count) != 1:
        step += 2
    return step
