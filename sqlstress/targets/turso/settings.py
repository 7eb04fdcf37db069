"""What of a case's settings means something to Turso, and to SQLite where that works on its files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlstress.target import DEFAULT
from sqlstress.targets.sqlite.drivers import settings as pragmas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from sqlstress.report.case import Case, Settings
    from sqlstress.targets.turso.connections import TursoConnection


TAKEN = ("page_size", "synchronous", "cache_size")
"""What a worker sets where it is asked for; `page_size` is that of the file, and is only read back."""


def as_sqlite(case: Case) -> Case:
    """Return the case by which SQLite makes and reads the files: in WAL mode, the only one of Turso's."""
    settings = case.settings
    given: dict[str, Any] = {name: getattr(settings, name) for name in TAKEN}
    # It leaves no WAL behind, which would have to be as long as a worker's: 0 is for none.
    own = type(settings)(journal_mode="wal", wal_autocheckpoint=0, **given)
    return replace(case, driver=DEFAULT, settings=own)


def wanted(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield (PRAGMA, value) for what was asked for."""
    for name in TAKEN:
        if (value := getattr(settings, name)) is not None:
            yield name, str(value)


def apply(connection: TursoConnection, settings: Settings) -> None:
    """Set every PRAGMA that was asked for."""
    for name, value in wanted(settings):
        connection.rows(f"PRAGMA {name}={value}")


def read_back(connection: TursoConnection) -> dict[str, str]:
    """Return the settings that Turso answers for. It is silent about others, and they are not vouched for."""
    answers = {name: pragmas.answer(connection, name) for name in pragmas.REPORTED}
    return {name: answer for name, answer in answers.items() if answer}


def differences(case: Case, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (PRAGMA, value asked for, answer) where another value was read back."""
    for name, asked in wanted(case.settings):
        if (answer := effective.get(name)) not in (None, asked):
            yield name, asked, answer
