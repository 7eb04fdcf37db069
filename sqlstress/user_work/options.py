"""The database that the workers find, and what must hold of it: as options, and as part of a case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.experiment import Behaviour
from sqlstress.options.option import LOAD, TRUST, chosen, either, option, options_of
from sqlstress.options.parsing import duration
from sqlstress.options.sql_text import SQLITE, Dialect
from sqlstress.plan import AT_A_RATE, Request, check_locking, check_rate, is_exclusive
from sqlstress.report.case import SETTINGS, Case, Settings, common
from sqlstress.report.server import ISOLATIONS, Server, anyway_option, target_option
from sqlstress.target import AS_SET, for_programs, target_names
from sqlstress.targets import options as target_options
from sqlstress.targets import target_of
from sqlstress.user_work.files import digest, text_of
from sqlstress.user_work.statements import Place, place_of, refuse, split

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


def read(request: DataOptions, dialect: Dialect = SQLITE) -> Data:
    """Return what the options name, read. Raises UsageError, with the place in the file."""
    setup = ""
    if request.setup is not None:
        setup = setup_text(request.setup)
        # What can't be split or run is told before anything is made.
        for one in split(request.setup, setup, dialect=dialect):
            refuse(request.setup, setup, one, dialect)
    found = tuple(one for file in request.check for one in _invariants(file, dialect))
    if len(found) > MOST_INVARIANTS:
        raise UsageError(f"--check: these are more than {MOST_INVARIANTS} checks.")
    return Data(
        request.setup or "",
        digest(setup) if request.setup else "",
        request.database or "",
        found,
        request.check_timeout_s,
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


# Options that say on which targets programs of the user's are run.


_UNSAID = Server()


@dataclass(frozen=True, slots=True)
class Where:
    """What they say."""

    target: tuple[str, ...] | None = target_option(target_names(for_programs()))
    anyway: bool = anyway_option()
    server: Server = _UNSAID
    """What is said of a server."""


NOWHERE = Where()
_OTHERWISE: dict[str, dict[str, Any]] = {
    "isolation": {
        "default": None,
        "help": f"What transactions begin with: {either(ISOLATIONS)}; as your server has it if not given.",
    }
}
"""What options mean here, where others connect."""
WHERE = (
    *chosen(options_of(Where), "target"),
    *(replace(one, **_OTHERWISE.get(one.name, {})) for one in chosen(options_of(Server))),
    *chosen(options_of(Where), "anyway"),
)


# On which targets programs of the user's are run, which open what they are told of themselves.


def drivers(request: Request[Any, Any], where: Where) -> tuple[str, ...]:
    """Return the drivers that our own look goes through, one of each target. Raises UsageError."""
    known = for_programs()
    found = target_options.drivers(request, where.target, known)
    target_options.check_options(request, found, SETTINGS, any)
    target_options.check_options(request, found, ("database",), all)
    target_options.check_servers(request, found, known)
    return found


def on_target(request: Request[Any, Any], case: Case, driver: str, where: Where) -> Case:
    """Return a case as it is carried out on the target of a driver. Raises UsageError."""
    server = where.server if "isolation" in request.given else replace(where.server, isolation=AS_SET)
    return target_of(driver).checked(replace(case, driver=driver), server, where.anyway)


# What a database file says of itself in its first bytes, read without SQLite.


_HEADER = b"SQLite format 3\0"
_READ_VERSION = 19
"""Place in the file of what says that it has a WAL: 2. Source: https://www.sqlite.org/fileformat2.html"""


def journal_mode_apart(name: str) -> str:
    """Return the same, read by another process. Raises UsageError, or EnvironmentFailure where none starts.

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
            raise UsageError(f"--database {name!r:.200}: there is no such file.")
        with path.open("rb") as file:
            header = file.read(_READ_VERSION + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name!r:.200}: {error.strerror or error}.") from error
    if not header:
        raise UsageError(f"{name!r:.200} is empty: there is nothing to copy. Leave out --database.")
    if not header.startswith(_HEADER):
        raise UsageError(f"{name!r:.200} is no SQLite database, or an encrypted one.")
    return "wal" if header[_READ_VERSION:] == b"\2" else "delete"


# What all experiments with the user's own work say.


SWEPT = common("concurrency", "duration", "warmup", "ops", *AT_A_RATE, "repeat")
CONNECTED = common(*SETTINGS)
SEED = common("seed")
ITS_OWN = {"driver": "what is run here opens the database itself. --target says which one it is"}
"""Options that there are not where the user's own code opens the database, and why."""


BEHAVIOUR = Behaviour(sweeps=True, many_files=False, windowed=True)
COMPANIONS = {"checker": "sqlstress.user_work.checker:Checker"}


def settings_of(request: Request[Any, Any], data: Data) -> Settings:
    """Return the settings: a copy keeps the journal mode of its original, unless another one is asked for."""
    if data.database and "journal-mode" not in request.given:
        # Help loads the faces, and needs no SQLite.
        return request.with_settings(journal_mode=journal_mode_apart(data.database))
    return request.settings


def check_together(request: Request[Any, Any], data: Data) -> Case:
    """Return the case as far as all of this kind have it. Raises UsageError for contradictions."""
    case = request.case
    for name in ("duration", "warmup"):
        if case.ops is not None and name in request.given:
            raise UsageError(f"--ops takes the place of a window: leave out --ops or --{name}.")
    check_rate(request)
    check_locking(request)
    if data.checks and is_exclusive(request.settings):
        raise UsageError("--check needs a process of its own, and locking_mode=exclusive lets one in.")
    if "check-timeout" in request.given and not data.checks:
        raise UsageError("--check-timeout is of checks: add --check, or leave it out.")
    return case
