"""The functions and operators of expressions: each a function of values, and how many it takes."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from typing import NamedTuple

from sqlstress.experiments.sql.script.draw import Draws, fnv1a, murmur2, permute
from sqlstress.experiments.sql.script.numbers import (
    NoValue,
    divided,
    double,
    integer,
    kind,
    mixed,
    quotient,
    remainder,
    signed,
    truth,
    whole,
)
from sqlstress.experiments.sql.script.tree import Value

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
