"""Options and spec of the experiment with the user's application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlstress.options.option import LOAD, ONE, TRUST, option
from sqlstress.options.parsing import switch
from sqlstress.request import Request
from sqlstress.user_work import options
from sqlstress.user_work.options import NO_DATA, NO_OPTIONS, NOWHERE, Data, DataOptions, Where


@dataclass(frozen=True, slots=True)
class Weighted:
    """A transaction of the application."""

    name: str
    """The name of its function."""
    weight: int = 1
    """How often it is called, relative to the others."""


def app_file(value: Any) -> str:
    """Read the name of a Python file."""
    found = options.name(value)
    if not found.endswith(".py"):
        raise ValueError(f"{found!r:.60} is not a Python file: its name must end with .py")
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
    ledger: bool = option(
        switch,
        False,
        TRUST,
        "Add a row to each transaction that commits (Python's sqlite3), which proves that every acknowledged "
        "commit is there.",
        flag=True,
        meaning="Whether sqlstress adds a row to each transaction that commits.",
    )
    allow_other_files: bool = option(
        switch,
        False,
        LOAD,
        "Let the file open databases outside the trial's folder. Without it they are refused.",
        flag=True,
        meaning="Whether the file may open databases outside the trial's folder.",
    )
    strict: bool = options.strict_option()
    where: bool = options.where_option()


@dataclass(frozen=True, slots=True)
class CaseSelection:
    """Options that the case has in another form."""

    file: str | None = option(
        app_file,
        None,
        LOAD,
        "Python file that declares transactions; see docs/app.md.",
        metavar="FILE",
        argument=ONE,
    )
    data: DataOptions = NO_OPTIONS
    where: Where = NOWHERE


AppRequest = Request[App, CaseSelection]
