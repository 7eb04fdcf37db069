"""Limits: what SQLite, or Peewee, refuses because a statement is too large."""

from __future__ import annotations

from collections.abc import Callable

_REFUSALS = (
    "parser stack overflow",
    "Expression tree is too large",
    "too many SQL variables",
    "too many terms",
    "string or blob too big",
    "Recursion limit",
)
"""How SQLite says so; the result code is the one of any wrong statement."""


class LimitReached(Exception):
    """It was seen beforehand that a statement would be refused."""


def refusal(error: Exception) -> str | None:
    """Return what a limit's error says; None for any other error."""
    if isinstance(error, RecursionError):
        return "Python's recursion limit, which Peewee met while it nested the conditions"
    text = str(error)
    found = isinstance(error, LimitReached) or any(phrase in text for phrase in _REFUSALS)
    return text if found else None


def most(fits: Callable[[int], bool], refused: int) -> int:
    """Return the largest number below `refused` that fits, if all numbers below it do."""
    fitting = 0
    while refused - fitting > 1:
        middle = (fitting + refused) // 2
        if fits(middle):
            fitting = middle
        else:
            refused = middle
    return fitting
