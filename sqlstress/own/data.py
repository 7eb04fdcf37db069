"""The database that the workers find, and what must hold of it: as options, and as part of a case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.options.dialects import SQLITE, Dialect
from sqlstress.options.option import LOAD, TRUST, chosen, option, options_of
from sqlstress.options.parsing import duration
from sqlstress.own.files import digest, text_of
from sqlstress.own.refused import refuse
from sqlstress.own.statements import Place, place_of, split

MOST_SETUP = 64 << 20
MOST_CHECKS = 64 << 10
"""Bytes of a file: the checks stand in every case of a report, the setup does not."""
MOST_INVARIANTS = 50
_PYTHON = re.compile(r"(.+\.py):([A-Za-z_]\w*)")


def names(value: Any) -> tuple[str, ...]:
    """Read one name or several."""
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(one, str) and one for one in found):
        raise ValueError("a name is a text that is not empty")
    return found


def name(value: Any) -> str:
    """Read a name."""
    (found,) = names([value])
    return found


@dataclass(frozen=True, slots=True)
class Invariant:
    """What must hold of the data: a query that returns no rows, or a function that does not raise."""

    name: str
    """What it is called."""
    where: str
    """The file, and the line or the function."""
    sql: str = ""
    """The query; empty: it is a function."""


@dataclass(frozen=True, slots=True)
class Data:
    """The database that the workers find, and what must hold of it."""

    setup: str = ""
    """The file of SQL that makes it; empty: there is none."""
    setup_digest: str = ""
    """The SHA-256 of that file."""
    database: str = ""
    """The database of which each trial gets a copy; empty: it begins with an empty one."""
    checks: tuple[Invariant, ...] = ()
    """What must hold before, during and after the load."""
    check_timeout_s: float = 30.0
    """How long a check may take, in seconds."""


@dataclass(frozen=True, slots=True)
class DataOptions:
    """The options that say so."""

    setup: str | None = option(name, None, LOAD, "SQL that makes the database of each trial.", metavar="FILE")
    database: str | None = option(
        name,
        None,
        LOAD,
        "A database of yours: each trial gets a copy, the original is only read.",
        metavar="FILE",
    )
    check: tuple[str, ...] = option(
        names,
        (),
        TRUST,
        "Queries that must return no rows (SQL), or FILE.py:FUNCTION that must not raise; before, during and "
        "after the load; may be repeated.",
        metavar="FILE",
        multiple=True,
    )
    check_timeout_s: float = option(
        duration(0.01),
        "30s",
        TRUST,
        "How long a check may take.",
        name="check-timeout",
        metavar="TIME",
    )


NO_DATA, NO_OPTIONS = Data(), DataOptions()
DATA = chosen(options_of(DataOptions), "setup", "database")
CHECKS = chosen(options_of(DataOptions), "check", "check-timeout")


def read(asked: DataOptions, dialect: Dialect = SQLITE) -> Data:
    """Return what the options name, read. Raises UsageError, with the place in the file."""
    setup = ""
    if asked.setup is not None:
        setup = setup_text(asked.setup)
        # What can't be split or run is told before anything is made.
        for one in split(asked.setup, setup, dialect=dialect):
            refuse(asked.setup, setup, one, dialect)
    found = tuple(one for file in asked.check for one in _invariants(file, dialect))
    if len(found) > MOST_INVARIANTS:
        raise UsageError(f"--check: these are more than {MOST_INVARIANTS} checks.")
    return Data(
        asked.setup or "",
        digest(setup) if asked.setup else "",
        asked.database or "",
        found,
        asked.check_timeout_s,
    )


def setup_text(file: str) -> str:
    """Return the SQL of a setup. Raises UsageError."""
    return text_of(file, MOST_SETUP)


def _invariants(file: str, dialect: Dialect) -> Iterator[Invariant]:
    if found := _PYTHON.fullmatch(file):
        if not Path(found[1]).is_file():
            raise UsageError(f"--check {file!r:.200}: there is no such file.")
        yield Invariant(found[2], file)
        return
    yield from invariants(file, text_of(file, MOST_CHECKS), dialect)


def invariants(file: str, text: str, dialect: Dialect = SQLITE) -> Iterator[Invariant]:
    """Yield the checks of a text of SQL. Raises UsageError for what is no query."""
    number = 0
    for number, one in enumerate(split(file, text, dialect=dialect), 1):
        place = place_of(file, text, one.start)
        refuse(file, text, one, dialect)
        if not one.reads:
            raise place.error("a check is a query: SELECT, WITH, VALUES or PRAGMA")
        if one.parameters:
            raise place.error(f"a check has no variables: {one.parameters[0].text} has no value")
        yield Invariant(one.comment[:60] or f"check {number}", _line(place), one.text)
    if not number:
        raise UsageError(f"{file!r:.200} holds no check.")


def _line(place: Place) -> str:
    return f"{place.file}:{place.line}"
