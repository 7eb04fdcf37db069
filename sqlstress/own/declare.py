"""What the user's file imports: decorators that say which of its functions are what.

    from sqlstress import check, connect, setup, transaction

A function keeps working as it is: nothing but a mark is put on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

MARK = "__sqlstress__"
"""The attribute in which a function has its role."""
SETUP, CONNECT, TRANSACTION, CHECK = "setup", "connect", "transaction", "check"


class Role(NamedTuple):
    """What a function is for."""

    name: str
    weight: int = 1
    """How often a transaction is drawn, relative to the others."""


def setup(function: F) -> F:
    """Mark the function that makes the database of a trial: it is given the path, in a process of its own."""
    return _marked(function, Role(SETUP))


def connect(function: F) -> F:
    """Mark the function that each process calls once, with the path; transactions get what it returns."""
    return _marked(function, Role(CONNECT))


@overload
def transaction(function: F) -> F: ...
@overload
def transaction(*, weight: int = 1) -> Callable[[F], F]: ...
def transaction(function: F | None = None, *, weight: int = 1) -> F | Callable[[F], F]:
    """Mark a transaction: it is called again and again, and has failed when it raises.

    `weight` says how often, relative to the others. It is given what the function marked with `connect`
    returned, or the path where there is none; one without parameters is given nothing.
    """
    role = Role(TRANSACTION, weight)
    return _marked(function, role) if function else lambda given: _marked(given, role)


def check(function: F) -> F:
    """Mark what must hold before, during and after the load: it fails by raising.

    It is given a function of SQL and parameters that returns rows, all as of one moment.
    """
    return _marked(function, Role(CHECK))


def _marked(function: F, role: Role) -> F:
    setattr(function, MARK, role)
    return function
