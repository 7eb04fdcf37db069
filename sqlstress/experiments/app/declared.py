"""What the user's file declares, found by importing it."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

from sqlstress.errors import UsageError
from sqlstress.statistics.histogram import MOST_KINDS
from sqlstress.user_work.files import MOST_WEIGHT
from sqlstress.user_work.loading import CHECK, CONNECT, MARK, SETUP, TRANSACTION, Role, load, only_begins

Function = Callable[..., Any]


class Declared(NamedTuple):
    """The functions of a file, by what they are for."""

    setup: Function | None
    connect: Function | None
    transactions: dict[str, Function]
    weights: dict[str, int]
    checks: tuple[str, ...]


def declared(file: str) -> Declared:
    """Import a file and return what it declares. Raises UsageError."""
    # A function may have two names.
    functions = {id(value): (name, value) for name, value in reversed(vars(load(file)).items())}
    marked = [
        (name, value, role)
        for name, value in reversed(functions.values())
        if isinstance(role := getattr(value, MARK, None), Role)
    ]
    for name, value, role in marked:
        if only_begins(value):
            raise UsageError(
                f"{file}: the {role.name} {name} does nothing when it is called, it is async or a generator: "
                "wrap it in a function that runs it to its end."
            )
        if role.weight not in range(1, MOST_WEIGHT + 1):
            raise UsageError(f"{file}: the weight of {name} is no whole number from 1 to {MOST_WEIGHT:,}.")
    transactions = {name: value for name, value, role in marked if role.name == TRANSACTION}
    if not transactions:
        raise UsageError(
            f"{file} declares no transaction: put @transaction before a function "
            "(from sqlstress import transaction)."
        )
    if len(transactions) > MOST_KINDS:
        raise UsageError(f"{file} declares more than {MOST_KINDS} transactions.")
    return Declared(
        _only(file, SETUP, marked),
        _only(file, CONNECT, marked),
        transactions,
        {name: role.weight for name, _, role in marked if role.name == TRANSACTION},
        tuple(name for name, _, role in marked if role.name == CHECK),
    )


def _only(file: str, what: str, marked: list[tuple[str, Any, Role]]) -> Function | None:
    found = [(name, value) for name, value, role in marked if role.name == what]
    if len(found) > 1:
        raise UsageError(f"{file} declares two functions with @{what}, {found[0][0]} and {found[1][0]}.")
    return found[0][1] if found else None


def called(function: Function, given: Any) -> Callable[[], Any]:
    """Return a call of a function: with what is given, if it needs anything."""
    try:
        signature(function).bind()
    except (TypeError, ValueError):
        return lambda: function(given)
    return function
