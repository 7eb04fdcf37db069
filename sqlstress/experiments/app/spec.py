"""Options of the experiment app, and the fields of its cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlstress.options.option import LOAD, ONE, TRUST, option
from sqlstress.options.parsing import switch
from sqlstress.request import Request
from sqlstress.user_work import options
from sqlstress.user_work.options import NO_DATA, NO_OPTIONS, NO_TARGETS, Data, DataOptions, TargetOptions

NO_FILE, ROLLBACK, WAL, CRASHED_WAL = "no file", "rollback journal", "WAL", "WAL after a crash"
SITUATIONS = (NO_FILE, ROLLBACK, WAL, CRASHED_WAL)
"""Situations: states of the database's files before the calls of @connect with --start."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """Transaction of the application, with its weight."""

    name: str
    """Name of the transaction's function."""
    weight: int = 1
    """Relative frequency of the transaction's calls."""


def parse_app_file(value: Any) -> str:
    """Return the name of a Python file. Raises ValueError if the name does not end with .py."""
    name = options.name(value)
    if not name.endswith(".py"):
        raise ValueError(f"{name!r:.60} is not a Python file: its name must end with .py")
    return name


@dataclass(frozen=True, slots=True)
class App:
    """The user's application, declared by a Python file."""

    file: str = ""
    """Python file of the application."""
    digest: str = ""
    """SHA-256 of the application's file, without imported modules."""
    transactions: tuple[Weighted, ...] = ()
    """Transactions of the application."""
    situation: str = ""
    """State of the database's files before calls of @connect, such as "WAL"; empty without --start."""
    data: Data = NO_DATA
    """Database that the transactions use, and the checks of its data."""
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
    where: bool = options.lock_watch_option()


@dataclass(frozen=True, slots=True)
class AppSelection:
    """Options that select cases but are not stored in a case, such as --start."""

    file: str | None = option(
        parse_app_file,
        None,
        LOAD,
        "Python file that declares transactions; see docs/app.md.",
        metavar="FILE",
        argument=ONE,
    )
    start: bool = option(
        switch,
        False,
        LOAD,
        "Measure only the start: all processes call @connect at once, without a file, with a rollback "
        "journal, with a WAL, and with a WAL that a crash left.",
        flag=True,
    )
    data: DataOptions = NO_OPTIONS
    where: TargetOptions = NO_TARGETS


AppRequest = Request[App, AppSelection]
