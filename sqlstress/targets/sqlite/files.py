"""The files of a place, as the parent handles them: create, open, remove."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlstress.errors import EnvironmentFailure
from sqlstress.report.case import Case
from sqlstress.system import files as system_files
from sqlstress.system.pulse import Pulse
from sqlstress.targets.sqlite.drivers import Connection, Row, codes, explain, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.place import file_names
from sqlstress.targets.watched import run_watched

SUFFIXES = ("", "-wal", "-shm", "-journal")


def paths(case: Case, folder: Path) -> list[Path]:
    """Return the database files of a case, by bucket."""
    return [folder / name for name in file_names(case.buckets)]


def remove(case: Case, folder: Path) -> None:
    """Delete the database files of a case and what SQLite puts beside them."""
    for path in paths(case, folder):
        for suffix in SUFFIXES:
            system_files.remove(path.with_name(path.name + suffix))


@contextmanager
def opened(case: Case, path: Path) -> Iterator[Connection]:
    """Open one file with the case's driver, SQLite's own busy handler and its default settings.

    Raises EnvironmentFailure for what SQLite lacks there, such as space: that says nothing of the data.
    """
    driver = load_driver(case.driver)
    try:
        connection = driver.connect(path, case.settings.busy_timeout_ms, None)
        try:
            yield connection
        finally:
            connection.close()
    except Exception as error:
        if codes.is_lack(driver.result_code(error)):
            raise EnvironmentFailure(f"cannot use {path.name}: {explain(case.driver, error)}.") from error
        raise


def create_tables(case: Case, path: Path, definitions: Iterable[str]) -> None:
    """Create a file with the case's settings and these tables, and see that the settings were taken."""
    with opened(case, path) as connection:
        pragmas.apply(connection, case.settings)
        connection.rows("BEGIN IMMEDIATE")
        for definition in definitions:
            connection.rows(definition)
        connection.rows("COMMIT")
        pragmas.check(case.settings, pragmas.read_back(connection, case.settings))


def first_write(case: Case, path: Path) -> dict[str, str]:
    """Open one file as a worker does, commit once, and return the settings read back after it."""
    with opened(case, path) as connection:
        pragmas.apply(connection, case.settings)
        connection.rows("PRAGMA user_version=1")
        answers = pragmas.read_back(connection, case.settings)
        pragmas.check(case.settings, answers)
        return answers


def watched(connection: Connection, sql: str, pulse: Pulse) -> list[Row]:
    """Return the rows of a statement that may take long; it is interrupted when `pulse` raises."""
    return run_watched(connection, lambda: connection.rows(sql), pulse)
