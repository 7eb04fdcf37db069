"""Arithmetic of 64-bit integers and doubles, as C has it: what does not fit is an error."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

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


def read(text: str) -> Value:
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
