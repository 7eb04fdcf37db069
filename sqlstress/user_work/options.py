"""Options shared by sql, app and exec: the database, the checks of its data, and the target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.options.option import LOAD, TRUST, option, options_of, select_options
from sqlstress.options.parsing import abbreviate, duration, join_alternatives, switch
from sqlstress.options.sql_text import SQLITE, Dialect
from sqlstress.recording import MAX_WEIGHT
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
    OPEN_LOOP_OPTIONS,
    Request,
    check_locking,
    check_options,
    check_servers,
    check_window,
    drivers_of,
    is_exclusive,
)
from sqlstress.system.files import read_text
from sqlstress.target import AS_SET, DriverInfo, program_drivers, target_names
from sqlstress.targets import target_of
from sqlstress.user_work.statements import split_statements

MAX_SETUP_BYTES = 64 << 20
MAX_CHECKS_BYTES = 64 << 10
"""Maximum size of an SQL file with checks, in bytes; MAX_SETUP_BYTES is that of a setup file.

The limit for checks is smaller, because each case in a report contains its checks.
"""
MAX_CHECKS = 50
_WEIGHTED = re.compile(r"(.+?)@(\d{1,9})", re.DOTALL)
_FUNCTION = re.compile(r"(.+\.py):([A-Za-z_]\w*)")


def names(value: Any) -> tuple[str, ...]:
    """Return a tuple of names, from a single name or a list. Raises ValueError for an empty name."""
    result = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(text, str) and text for text in result):
        raise ValueError("a name must not be empty")
    return result


def name(value: Any) -> str:
    """Return the name `value`. Raises ValueError if it is empty."""
    (result,) = names([value])
    return result


def parse_weighted(word: str) -> tuple[str, int]:
    """Return name and weight (default 1) from a text such as "transfer.sql@3". Raises UsageError."""
    match = _WEIGHTED.fullmatch(word)
    if not match:
        return word, 1
    weight = int(match[2])
    if not 1 <= weight <= MAX_WEIGHT:
        raise UsageError(f"{abbreviate(word)}: the weight must be a whole number from 1 to {MAX_WEIGHT:,}.")
    return match[1], weight


def read_text_of(name: str, most: int) -> str:
    """Return the text of a file of at most `most` bytes. Raises UsageError."""
    path = Path(name)
    try:
        # Read regular files only: a pipe, for example, may have no end, or block before the first byte.
        if path.exists() and not path.is_file():
            raise UsageError(f"{name!r:.200} is not a file.")
        return read_text(path, most)
    except OSError as error:
        raise UsageError(f"cannot read {name!r:.200}: {error.strerror or error}.") from error
    except ValueError as error:
        raise UsageError(f"cannot read {name!r:.200}: {error}.") from error


def digest(text: str) -> str:
    """Return the SHA-256 of a text as hexadecimal digits."""
    return sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Invariant:
    """Check by the user: a query that must return no rows, or a function that must not raise."""

    name: str
    """Name of the check."""
    where: str
    """File, with the query's line or the function's name: "checks.sql:3" or "checks.py:money"."""
    sql: str = ""
    """SQL of the query; empty for a function."""
    at_end: bool = False
    """Whether the check runs only after all processes have ended.

    True for a function with a parameter `notes` or `database`.
    """


@dataclass(frozen=True, slots=True)
class Data:
    """Database at the start of a trial, and the checks of its data."""

    setup: str = ""
    """SQL file that creates the database; empty if there is none."""
    setup_digest: str = ""
    """SHA-256 of the setup file, in hexadecimal digits; empty if there is none."""
    database: str = ""
    """Database file that each trial copies; empty if trials start with an empty database."""
    checks: tuple[Invariant, ...] = ()
    """Checks that must hold before, during and after the load; with `at_end`, only after it."""
    check_timeout_s: float = 30.0
    """Time limit of a check, in seconds."""


@dataclass(frozen=True, slots=True)
class DataOptions:
    """Options for the database and its checks."""

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
DATA = select_options(options_of(DataOptions), "setup", "database")
CHECKS = select_options(options_of(DataOptions), "check", "check-timeout")


def strict_option() -> Any:
    """Return the option --strict: exit code 3 after possible races.

    Studies such as `ab` define their own option --strict.
    """
    return option(
        switch,
        False,
        TRUST,
        "Exit 3 if the statements of a transaction are suspicious.",
        flag=True,
        meaning="Whether a suspicion is to be seen in the exit code.",
    )


def lock_watch_option() -> Any:
    """Return the option --where, which reports the programs that held the write lock."""
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
    """Return the database and checks that the options describe. Raises UsageError."""
    setup_digest = ""
    if request.setup is not None:
        setup = setup_text(request.setup)
        setup_digest = digest(setup) if request.setup else ""
        for _ in split_statements(request.setup, setup, dialect=dialect):
            pass  # Splitting raises an error for a setup that cannot run, before a database is made.
    checks = tuple(invariant for file in request.check for invariant in _invariants(file, dialect))
    if len(checks) > MAX_CHECKS:
        raise UsageError(f"--check: there are more than {MAX_CHECKS} checks. Remove some.")
    return Data(request.setup or "", setup_digest, request.database or "", checks, request.check_timeout_s)


def setup_text(file: str) -> str:
    """Return the SQL of a setup file. Raises UsageError."""
    return read_text_of(file, MAX_SETUP_BYTES)


def _invariants(file: str, dialect: Dialect) -> Iterator[Invariant]:
    if function := _FUNCTION.fullmatch(file):
        if not Path(function[1]).is_file():
            raise UsageError(f"--check: no such file: {file!r:.200}.")
        yield Invariant(function[2], file)
    else:
        yield from invariants(file, read_text_of(file, MAX_CHECKS_BYTES), dialect)


def invariants(file: str, text: str, dialect: Dialect = SQLITE) -> Iterator[Invariant]:
    """Yield a check for each statement in `text`, the content of the SQL file `file`.

    Raises UsageError if there is no statement, or if a statement is not a query or has parameters.
    """
    number = 0
    for number, statement in enumerate(split_statements(file, text, dialect=dialect), 1):
        if not statement.reads:
            raise statement.place.error("a check must be a query: SELECT, WITH, VALUES or PRAGMA")
        if statement.parameters:
            raise statement.place.error(
                f"a check cannot use variables, and {statement.parameters[0].text} is one"
            )
        yield Invariant(
            statement.comment[:60] or f"check {number}", f"{file}:{statement.place.line}", statement.text
        )
    if not number:
        raise UsageError(f"{file!r:.200} has no check. Add a query to it.")


# Targets of the user's programs. A target is a database product, such as SQLite or PostgreSQL.


_DEFAULT_SERVER = Server()


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Options that select the targets."""

    target: tuple[str, ...] | None = target_option(target_names(program_drivers()))
    anyway: bool = anyway_option()
    server: Server = _DEFAULT_SERVER
    """Options for targets that are database servers."""


NO_TARGETS = TargetOptions()
_SERVER_OPTIONS = dict(options_of(Server))
_ISOLATION = (
    f"Isolation level that transactions begin with: {join_alternatives(ISOLATIONS)}. "
    "Default: that of your server."
)
_SERVER_OPTIONS["isolation"] = replace(_SERVER_OPTIONS["isolation"], default=None, help=_ISOLATION)
WHERE = (
    *select_options(options_of(TargetOptions), "target"),
    *_SERVER_OPTIONS.values(),
    *select_options(options_of(TargetOptions), "anyway"),
)
"""Options that select the target (database product), for programs that open their own connections."""


def drivers(
    request: Request[Any, Any], targets: Sequence[str] | None, known: Mapping[str, DriverInfo]
) -> tuple[str, ...]:
    """Return a driver for each target in `targets`. Raises UsageError for unsupported options."""
    selected = drivers_of(request, targets, known)
    check_options(request, selected, SETTINGS, any)
    check_options(request, selected, ("database",), all)
    check_servers(request, selected, known)
    return selected


def on_target(request: Request[Any, Any], case: Case, driver: str, where: TargetOptions) -> Case:
    """Return the case with `driver` and the server's options in `where`.

    Raises UsageError for options that the driver's target does not have.
    """
    server = where.server if "isolation" in request.given else replace(where.server, isolation=AS_SET)
    target = target_of(driver)
    if getattr(case.spec, "where", False) and (problem := target.unseen()):
        raise UsageError(f"--where is not available: {problem}. Leave it out.")
    return target.checked(replace(case, driver=driver), server, where.anyway)


# Reading the journal mode from the first bytes of a database file, without SQLite.


_HEADER = b"SQLite format 3\0"
_READ_VERSION_OFFSET = 19
"""Offset of the byte "read version", 2 in WAL mode. Source: https://www.sqlite.org/fileformat2.html"""


def journal_mode_in_subprocess(name: str) -> str:
    """Call `journal_mode` in another process. Raises UsageError or EnvironmentFailure.

    This process may have the database open. On POSIX, reading and closing the file would drop its locks.
    """
    # Imported here, because --help loads this module, and does not need to start processes.
    from sqlstress.system.processes import call_in_subprocess

    return call_in_subprocess(lambda: None, journal_mode, name)


def journal_mode(name: str) -> str:
    """Return the journal mode of a database file: "wal", or "delete" for any other mode.

    Raises UsageError for a file that is not a SQLite database. Call it only in a process that does not use
    the database: on POSIX, closing the file drops the locks.
    """
    path = Path(name)
    try:
        if not path.is_file():
            raise UsageError(f"--database: no such file: {name!r:.200}.")
        with path.open("rb") as file:
            header = file.read(_READ_VERSION_OFFSET + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name!r:.200}: {error.strerror or error}.") from error
    if not header:
        raise UsageError(f"{name!r:.200} is empty. Leave out --database.")
    if not header.startswith(_HEADER):
        raise UsageError(f"{name!r:.200} is not a SQLite database, or is encrypted.")
    return "wal" if header[_READ_VERSION_OFFSET:] == b"\2" else "delete"


# Options shared by sql, app and exec, and checks that these options agree.


SWEPT = common("concurrency", "duration", "warmup", "ops", *OPEN_LOOP_OPTIONS, "repeat")
CONNECTED = common(*SETTINGS)
SEED = common("seed")
UNSUPPORTED_OPTIONS = {"driver": "your code opens the database itself. Choose the store with --target"}
"""Options that do not apply if the user's code opens the database, with the reason."""


def settings_of(request: Request[Any, Any], data: Data) -> Settings:
    """Return the requested settings. A copied database keeps its journal mode by default."""
    if data.database and "journal-mode" not in request.given:
        # The copy keeps the journal mode of the original. A reader of the file's header is enough to find it:
        # --help loads this module, which should not have to load SQLite.
        return request.with_settings(journal_mode=journal_mode_in_subprocess(data.database))
    return request.settings


def check_together(request: Request[Any, Any], data: Data) -> Case:
    """Return the requested case. Raises UsageError if options contradict each other."""
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
