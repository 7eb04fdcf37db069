"""What a case of an application says beside what all cases say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlstress.options.option import LOAD, ONE, option
from sqlstress.own.data import NO_DATA, NO_OPTIONS, Data, DataOptions, name
from sqlstress.own.where import NOWHERE, Where


@dataclass(frozen=True, slots=True)
class Weighted:
    """A transaction of the application."""

    name: str
    """The name of its function."""
    weight: int = 1
    """How often it is called, relative to the others."""


def app_file(value: Any) -> str:
    """Read the name of a Python file."""
    found = name(value)
    if not found.endswith(".py"):
        raise ValueError(f"{found!r:.60} is no Python file: its name ends with .py")
    return found


@dataclass(frozen=True, slots=True)
class App:
    """An application of the user's, as a Python file declares it."""

    file: str = ""
    """The Python file."""
    digest: str = ""
    """The SHA-256 of that file; what it imports is not in it."""
    transactions: tuple[Weighted, ...] = ()
    """Its transactions."""
    data: Data = NO_DATA
    """The database that they find, and what must hold of it."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that the case has in another form."""

    file: str | None = option(
        app_file,
        None,
        LOAD,
        "A Python file that declares transactions: see docs/app.md.",
        metavar="FILE",
        argument=ONE,
    )
    data: DataOptions = NO_OPTIONS
    where: Where = NOWHERE
