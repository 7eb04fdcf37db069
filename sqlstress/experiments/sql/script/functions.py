"""What expressions reckon with: integers and doubles as C has them, random numbers, functions, operators."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import NamedTuple

from sqlstress.experiments.sql.script.tree import Value

LEAST, MOST = -(1 << 63), (1 << 63) - 1
WRAP = (1 << 64) - 1

_INTEGER = re.compile(r"\s*[-+]?\d{1,19}\s*")
_WORDS: dict[str, Value] = {
    **dict.fromkeys(("true", "yes", "on", "t", "y"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n"), False),
    "null": None,
}


class NoValue(Exception):
    """An expression that has no value: says why."""


def integer(number: int) -> int:
    """Return an integer that fits into 64 bits. Raises NoValue."""
    if LEAST <= number <= MOST:
        return number
    raise NoValue("the result does not fit into 64 bits")


def signed(bits: int) -> int:
    """Return the low 64 bits of a number as a signed integer."""
    bits &= WRAP
    return bits - (1 << 64) if bits > MOST else bits


def kind(value: Value) -> str:
    """Return what a value is, in a word."""
    names: dict[type, str] = {bool: "a boolean", int: "an integer", float: "a double", type(None): "NULL"}
    return names.get(type(value), "text")


def meant(text: str) -> Value:
    """Return what a text means in an expression, as pgbench reads variables. Raises NoValue."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return integer(int(text)) if _INTEGER.fullmatch(text) else float(text)
    except ValueError as error:
        raise NoValue(f"{text[:40]!r} is no number") from error


def whole(value: Value) -> int:
    """Return a value as an integer: a double is rounded to the nearest, of two as near to the even one."""
    if value.__class__ is int:
        return value
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            raise NoValue(f"the double {value} is no integer")
        return integer(round(value))
    raise NoValue(f"{kind(value)} is no integer")


def double(value: Value) -> float:
    """Return a value as a double."""
    if isinstance(value, float):
        return value
    if value.__class__ is int:
        return float(value)
    raise NoValue(f"{kind(value)} is no number")


def truth(value: Value) -> bool:
    """Return a boolean. Raises NoValue for what is none."""
    if isinstance(value, bool):
        return value
    raise NoValue(f"{kind(value)} is no boolean")


def holds(value: Value) -> bool:
    """Return whether a condition of `\\if` holds: a number but 0 does, NULL does not."""
    if isinstance(value, str | bytes):
        raise NoValue("text is no condition")
    return bool(value)


Binary = Callable[[Value, Value], Value]


def mixed(integers: Callable[[int, int], Value], doubles: Callable[[float, float], Value]) -> Binary:
    """Return what reckons with integers where both are, else with doubles; NULL with anything is NULL."""

    def operate(left: Value, right: Value) -> Value:
        if left.__class__ is int and right.__class__ is int:
            return integers(left, right)
        if left is None or right is None:
            return None
        if isinstance(left, float) or isinstance(right, float):
            return doubles(double(left), double(right))
        return integers(whole(left), whole(right))

    return operate


def divided(left: int, right: int) -> int:
    """Divide integers as C does: towards zero."""
    if right == 0:
        raise NoValue("division by zero")
    quotient = abs(left) // abs(right)
    return integer(quotient if (left < 0) == (right < 0) else -quotient)


def remainder(left: int, right: int) -> int:
    """Return what a division as C's leaves: with the sign of the dividend."""
    if right == 0:
        raise NoValue("division by zero")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def quotient(left: float, right: float) -> float:
    """Divide doubles."""
    if right == 0:
        raise NoValue("division by zero")
    return left / right


# Random numbers, hashes and permutations as pgbench makes them.
#
# Source: PostgreSQL 15, src/bin/pgbench/pgbench.c and src/common/pg_prng.c. The distributions are pgbench's;
# the streams are ours. Hashes and permutations give pgbench's own numbers.


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


# The functions and operators of expressions: each a function of values, and how many it takes.


Function = Callable[..., Value]


class Known(NamedTuple):
    """A function: NULL among its arguments makes it NULL, unless it says otherwise."""

    call: Function
    least: int
    most: int
    takes_null: bool = False


MANY = 100
SEED = "default_seed"
"""The variable that stands for the seed of a hash or permutation that is not given."""
SEEDED = {"hash": 1, "hash_murmur2": 1, "hash_fnv1a": 1, "permute": 2}
"""Functions that take it, after so many arguments."""
LAZY = {"and": (2, 2), "or": (2, 2), "case": (1, MANY)}
"""What evaluates no more of its arguments than it needs; how many it takes."""
RANDOM = {"random": (2, 2), "random_gaussian": (3, 3), "random_exponential": (3, 3), "random_zipfian": (3, 3)}
"""What draws a number."""


def random_calls(draws: Draws) -> dict[str, Function]:
    """Return the functions that draw, over one stream."""
    return {
        "random": draws.random,
        "random_gaussian": draws.gaussian,
        "random_exponential": draws.exponential,
        "random_zipfian": draws.zipfian,
    }


def _bits(call: Callable[[int, int], int]) -> Function:
    return lambda left, right: call(whole(left), whole(right))


def _shifted_left(number: int, by: int) -> int:
    return signed(number << _shift(by))


def _shift(by: int) -> int:
    if not 0 <= by < 64:
        raise NoValue(f"a shift lies from 0 to 63, not at {by}")
    return by


def _absolute(value: Value) -> Value:
    return abs(value) if isinstance(value, float) else integer(abs(whole(value)))


def _extreme(choose: Callable[..., float]) -> Function:
    def call(*values: Value) -> Value:
        if any(isinstance(value, float) for value in values):
            return choose(map(double, values))
        return choose(map(whole, values))

    return call


def _real(call: Callable[..., float]) -> Function:
    def checked(*values: Value) -> Value:
        try:
            return call(*map(double, values))
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            told = ", ".join(map(str, values))
            raise NoValue(f"it has no value for {told}") from error

    return checked


def _is(left: Value, right: Value) -> bool:
    return left is right if right is None or isinstance(left, bool) else False


def _debug(value: Value) -> Value:
    print(f"debug: {kind(value)}, {value!r}", file=sys.stderr)  # noqa: T201 - that is what it is for
    return value


def _less(left: float, right: float) -> bool:
    return left < right


FUNCTIONS: dict[str, Known] = {
    "+": Known(mixed(lambda a, b: integer(a + b), operator.add), 2, 2),
    "-": Known(mixed(lambda a, b: integer(a - b), operator.sub), 2, 2),
    "*": Known(mixed(lambda a, b: integer(a * b), operator.mul), 2, 2),
    "/": Known(mixed(divided, quotient), 2, 2),
    "%": Known(lambda a, b: remainder(whole(a), whole(b)), 2, 2),
    "<": Known(mixed(operator.lt, operator.lt), 2, 2),
    "<=": Known(mixed(operator.le, operator.le), 2, 2),
    "=": Known(mixed(operator.eq, operator.eq), 2, 2),
    "<>": Known(mixed(operator.ne, operator.ne), 2, 2),
    "&": Known(_bits(operator.and_), 2, 2),
    "|": Known(_bits(operator.or_), 2, 2),
    "#": Known(_bits(operator.xor), 2, 2),
    "<<": Known(_bits(_shifted_left), 2, 2),
    ">>": Known(_bits(lambda number, by: number >> _shift(by)), 2, 2),
    "not": Known(lambda value: not truth(value), 1, 1),
    "is": Known(_is, 2, 2, True),
    "abs": Known(_absolute, 1, 1),
    "least": Known(_extreme(min), 1, MANY),
    "greatest": Known(_extreme(max), 1, MANY),
    "debug": Known(_debug, 1, 1, True),
    "double": Known(double, 1, 1),
    "int": Known(whole, 1, 1),
    "mod": Known(lambda a, b: remainder(whole(a), whole(b)), 2, 2),
    "pi": Known(lambda: math.pi, 0, 0),
    "sqrt": Known(_real(math.sqrt), 1, 1),
    "ln": Known(_real(math.log), 1, 1),
    "exp": Known(_real(math.exp), 1, 1),
    "pow": Known(_real(math.pow), 2, 2),
    "power": Known(_real(math.pow), 2, 2),
    "hash": Known(murmur2, 2, 2),
    "hash_murmur2": Known(murmur2, 2, 2),
    "hash_fnv1a": Known(fnv1a, 2, 2),
    "permute": Known(permute, 3, 3),
}
OPERATORS = frozenset(name for name in FUNCTIONS if not name.isidentifier()) | {"not", "is"}
"""Those that can't be called by their name."""
