"""What all work of the user's own says: the database, what must hold of it, and on which target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.options.option import LOAD, TRUST, chosen, option, options_of
from sqlstress.options.parsing import duration, either, shown, switch
from sqlstress.options.sql_text import SQLITE, Dialect
from sqlstress.report.case import (
    ISOLATIONS,
    SETTINGS,
    Case,
    Server,
    Settings,
    anyway_option,
    common,
    target_option,
)
from sqlstress.request import (
    AT_A_RATE,
    Request,
    check_locking,
    check_options,
    check_servers,
    check_window,
    drivers_of,
    is_exclusive,
)
from sqlstress.system.files import read_text
from sqlstress.target import AS_SET, Known, for_programs, target_names
from sqlstress.targets import target_of
from sqlstress.user_work import MOST_WEIGHT
from sqlstress.user_work.statements import split

MOST_SETUP = 64 << 20
MOST_CHECKS = 64 << 10
"""Bytes of a file: the checks stand in every case of a report, the setup does not."""
MOST_INVARIANTS = 50
_WEIGHTED = re.compile(r"(.+?)@(\d{1,9})", re.DOTALL)
_PYTHON = re.compile(r"(.+\.py):([A-Za-z_]\w*)")


def names(value: Any) -> tuple[str, ...]:
    """Read one name or several."""
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(one, str) and one for one in found):
        raise ValueError("a name must not be empty")
    return found


def name(value: Any) -> str:
    """Read a name."""
    (found,) = names([value])
    return found


def weighted(word: str) -> tuple[str, int]:
    """Return a name and its weight: "transfer.sql@3"; without one it is 1. Raises UsageError."""
    match = _WEIGHTED.fullmatch(word)
    if not match:
        return word, 1
    weight = int(match[2])
    if not 1 <= weight <= MOST_WEIGHT:
        raise UsageError(f"{shown(word)}: the weight must be a whole number from 1 to {MOST_WEIGHT:,}.")
    return match[1], weight


def text_of(name: str, most: int) -> str:
    """Return the text of a file of so many bytes at most. Raises UsageError."""
    path = Path(name)
    try:
        # What is no file, such as a pipe, may have no end, or never begin.
        if path.exists() and not path.is_file():
            raise UsageError(f"{name!r:.200} is not a file.")
        return read_text(path, most)
    except OSError as error:
        raise UsageError(f"cannot read {name!r:.200}: {error.strerror or error}.") from error
    except ValueError as error:
        raise UsageError(f"cannot read {name!r:.200}: {error}.") from error


def digest(text: str) -> str:
    """Return what tells a text from any other: the SHA-256 of its UTF-8, in hexadecimal digits."""
    return sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Invariant:
    """What must hold of the data: a query that returns no rows, or a function that does not raise."""

    name: str
    """What it is called."""
    where: str
    """The file, and the line or the function."""
    sql: str = ""
    """The query; empty: it is a function."""
    at_end: bool = False
    """Whether it runs only when all processes have ended: a function that is given notes, or the database."""


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

    setup: str | None = option(
        name, None, LOAD, "SQL file that creates the database of each trial.", metavar="FILE"
    )
    database: str | None = option(
        name,
        None,
        LOAD,
        "Your database. Each trial uses a copy; the original is only read.",
        metavar="FILE",
    )
    check: tuple[str, ...] = option(
        names,
        (),
        TRUST,
        "SQL file of queries that must return no rows, or FILE.py:FUNCTION that must not raise. It runs "
        "before, during and after the load. May be repeated.",
        metavar="FILE",
        multiple=True,
    )
    check_timeout_s: float = option(
        duration(0.01),
        "30s",
        TRUST,
        "Time limit of a check.",
        name="check-timeout",
        metavar="TIME",
    )


NO_DATA, NO_OPTIONS = Data(), DataOptions()
DATA = chosen(options_of(DataOptions), "setup", "database")
CHECKS = chosen(options_of(DataOptions), "check", "check-timeout")


def strict_option() -> Any:
    """Return the option of what can be rehearsed; only in its own command: studies have one of that name."""
    return option(
        switch,
        False,
        TRUST,
        "Exit 3 if the statements of a transaction are suspicious.",
        flag=True,
        meaning="Whether a suspicion is to be seen in the exit code.",
    )


def where_option() -> Any:
    """Return the option to look from outside who holds the write lock."""
    return option(
        switch,
        False,
        TRUST,
        "Show which programs held the write lock, and for how long (Linux and macOS).",
        name="where",
        flag=True,
        meaning="Whether the report shows which programs held the write lock.",
    )


def read(request: DataOptions, dialect: Dialect = SQLITE) -> Data:
    """Return what the options name, read. Raises UsageError, with the place in the file."""
    setup_digest = ""
    if request.setup is not None:
        setup = setup_text(request.setup)
        setup_digest = digest(setup) if request.setup else ""
        for _ in split(request.setup, setup, dialect=dialect):
            pass  # what can't be split or run is told before anything is made
    checks = tuple(one for file in request.check for one in _invariants(file, dialect))
    if len(checks) > MOST_INVARIANTS:
        raise UsageError(f"--check: there are more than {MOST_INVARIANTS} checks. Remove some.")
    return Data(request.setup or "", setup_digest, request.database or "", checks, request.check_timeout_s)


def setup_text(file: str) -> str:
    """Return the SQL of a setup. Raises UsageError."""
    return text_of(file, MOST_SETUP)


def _invariants(file: str, dialect: Dialect) -> Iterator[Invariant]:
    if function := _PYTHON.fullmatch(file):
        if not Path(function[1]).is_file():
            raise UsageError(f"--check: no such file: {file!r:.200}.")
        yield Invariant(function[2], file)
    else:
        yield from invariants(file, text_of(file, MOST_CHECKS), dialect)


def invariants(file: str, text: str, dialect: Dialect = SQLITE) -> Iterator[Invariant]:
    """Yield the checks of a text of SQL. Raises UsageError for what is no query."""
    number = 0
    for number, one in enumerate(split(file, text, dialect=dialect), 1):
        if not one.reads:
            raise one.place.error("a check must be a query: SELECT, WITH, VALUES or PRAGMA")
        if one.parameters:
            raise one.place.error(f"a check cannot use variables, and {one.parameters[0].text} is one")
        yield Invariant(one.comment[:60] or f"check {number}", f"{file}:{one.place.line}", one.text)
    if not number:
        raise UsageError(f"{file!r:.200} has no check. Add a query to it.")


# On which targets it is run.


_UNSAID = Server()


@dataclass(frozen=True, slots=True)
class Where:
    """On which targets it is run."""

    target: tuple[str, ...] | None = target_option(target_names(for_programs()))
    anyway: bool = anyway_option()
    server: Server = _UNSAID
    """What is said of a server."""


NOWHERE = Where()
_OF_SERVERS = dict(options_of(Server))
_ISOLATION = (
    f"Isolation level that transactions begin with: {either(ISOLATIONS)}. Default: that of your server."
)
_OF_SERVERS["isolation"] = replace(_OF_SERVERS["isolation"], default=None, help=_ISOLATION)
WHERE = (
    *chosen(options_of(Where), "target"),
    *_OF_SERVERS.values(),
    *chosen(options_of(Where), "anyway"),
)
"""Of programs of the user's, which connect themselves."""


def drivers(
    request: Request[Any, Any], targets: Sequence[str] | None, known: Mapping[str, Known]
) -> tuple[str, ...]:
    """Return the drivers that are asked for, one of each target. Raises UsageError."""
    found = drivers_of(request, targets, known)
    check_options(request, found, SETTINGS, any)
    check_options(request, found, ("database",), all)
    check_servers(request, found, known)
    return found


def on_target(request: Request[Any, Any], case: Case, driver: str, where: Where) -> Case:
    """Return a case of a program as it is carried out on the target of a driver. Raises UsageError."""
    server = where.server if "isolation" in request.given else replace(where.server, isolation=AS_SET)
    target = target_of(driver)
    if getattr(case.spec, "where", False) and (problem := target.unseen()):
        raise UsageError(f"--where is not available: {problem}. Leave it out.")
    return target.checked(replace(case, driver=driver), server, where.anyway)


# What a database file says of itself in its first bytes, read without SQLite.


_HEADER = b"SQLite format 3\0"
_READ_VERSION = 19
"""Place in the file of what says that it has a WAL: 2. Source: https://www.sqlite.org/fileformat2.html"""


def journal_mode_apart(name: str) -> str:
    """Do the same in another process. Raises UsageError, or EnvironmentFailure where none starts.

    Who closes a file gives up all locks that his process has on it: those of a test, or of a program, that
    measures a copy of the database on which it works itself.
    """
    # Help loads this, and needs no processes.
    from sqlstress.system.processes import call_apart

    return call_apart(lambda: None, journal_mode, name)


def journal_mode(name: str) -> str:
    """Return the journal mode that a database has: wal, or delete for any other. Raises UsageError.

    To be called where nobody works on it: see `journal_mode_apart`.
    """
    path = Path(name)
    try:
        if not path.is_file():
            raise UsageError(f"--database: no such file: {name!r:.200}.")
        with path.open("rb") as file:
            header = file.read(_READ_VERSION + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name!r:.200}: {error.strerror or error}.") from error
    if not header:
        raise UsageError(f"{name!r:.200} is empty. Leave out --database.")
    if not header.startswith(_HEADER):
        raise UsageError(f"{name!r:.200} is not a SQLite database, or is encrypted.")
    return "wal" if header[_READ_VERSION:] == b"\2" else "delete"


# Options and checks that sql, app and exec share.


SWEPT = common("concurrency", "duration", "warmup", "ops", *AT_A_RATE, "repeat")
CONNECTED = common(*SETTINGS)
SEED = common("seed")
ITS_OWN = {"driver": "your code opens the database itself. Choose the store with --target"}
"""Options that there are not where the user's own code opens the database, and why."""


def settings_of(request: Request[Any, Any], data: Data) -> Settings:
    """Return the settings: a copy keeps the journal mode of its original, unless another one is asked for."""
    if data.database and "journal-mode" not in request.given:
        # Help loads the experiments, and needs no SQLite.
        return request.with_settings(journal_mode=journal_mode_apart(data.database))
    return request.settings


def check_together(request: Request[Any, Any], data: Data) -> Case:
    """Return the case as far as all of this kind have it. Raises UsageError for contradictions."""
    case = request.case
    check_window(request)
    check_locking(request)
    if data.checks and is_exclusive(request.settings):
        raise UsageError(
            "--check needs a further process, but locking_mode=exclusive allows one only. Leave one of "
            "them out.",
        )
    if "check-timeout" in request.given and not data.checks:
        raise UsageError("--check-timeout needs --check. Add it, or leave out --check-timeout.")
    return case
