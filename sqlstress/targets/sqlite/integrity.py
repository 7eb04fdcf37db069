"""Checks of database files with SQLite's integrity check, and functions that read a schema."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlstress.errors import SqlstressError, error_message
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.report.results import CheckCounter
from sqlstress.system.interrupt import Pulse
from sqlstress.targets import run_watched
from sqlstress.targets.place import Definition
from sqlstress.targets.sqlite.drivers import Connection, Row
from sqlstress.targets.sqlite.files import opened

_MAGIC = b"SQLite format 3\0"
_COLUMNS = "rowid type name tbl_name sql"
_MIN_THREAD_BYTES = 4 << 20
"""Minimum size of a file that is checked in a separate thread, in bytes."""
_HEADING = "*** in database main ***"
"""First line of SQLite's result of integrity_check or quick_check if a file has problems. Not shown."""


def integrity_check(case: Case, paths: Sequence[Path], level: str, pulse: Pulse) -> Check:
    """Run PRAGMA integrity_check on every file if `level` is "full", else PRAGMA quick_check."""
    tally = CheckCounter("integrity_check" if level == "full" else "quick_check")
    for path in paths:
        pulse()
        tally.checked += 1
        complaints = integrity(case, path, tally.name, pulse) if path.exists() else ["the file is gone"]
        for complaint in complaints:
            tally.problem(f"{path.name}: {complaint}")
    return tally.check()


def integrity(case: Case, path: Path, pragma: str, pulse: Pulse) -> list[str]:
    """Return the problems that `pragma` (quick_check or integrity_check) reports.

    If the pragma itself fails, the last item is the message of the error.
    """
    complaints, error = _complaints_and_error(case, path, pragma, pulse)
    if error and not complaints:
        # If an error follows the first problem, the driver may not return this problem. With the limit 1, the
        # pragma ends before the error.
        complaints, _ = _complaints_and_error(case, path, f"{pragma}(1)", pulse)
    if error and error not in complaints:
        complaints.append(error)
    return complaints


def _complaints_and_error(case: Case, path: Path, pragma: str, pulse: Pulse) -> tuple[list[str], str]:
    rows: list[Row] = []
    error = ""
    try:
        with opened(case, path) as connection:

            def run_check() -> None:
                rows.extend(connection.iterate(f"PRAGMA {pragma}"))

            if path.stat().st_size < _MIN_THREAD_BYTES:
                run_check()  # Starting a thread would take longer than the check.
            else:
                run_watched(connection, run_check, pulse)
    except (SqlstressError, OSError, MemoryError):
        raise
    except Exception as problem:
        error = error_message(problem)
    lines = [line for row in rows for line in str(row[0]).splitlines()]
    return [line for line in lines if line not in ("ok", _HEADING)], error


def schema(case: Case, path: Path) -> list[Definition]:
    """Return the `definitions` of the schema in a file: tables, indexes and other objects."""
    with opened(case, path) as connection:
        return definitions(connection)


def definitions(connection: Connection) -> list[Definition]:
    """Return (label, SQL) for each row of sqlite_schema.

    An example is ("definition 2, the index by_name of users", "CREATE INDEX …").
    """
    # Read the columns as bytes, because a damaged value may not be valid text.
    columns = ", ".join(f"CAST({name} AS BLOB)" for name in _COLUMNS.split())
    rows = connection.rows(f"SELECT {columns} FROM sqlite_schema ORDER BY rowid")
    texts = [[(blob or b"").decode(errors="backslashreplace") for blob in row] for row in rows]
    return [
        (f"definition {number}, the {kind} {name} of {table}", sql)
        for number, kind, name, table, sql in texts
    ]


def databases_in(folder: Path, without: Sequence[Path]) -> list[Path]:
    """Return the database files in a folder and its subfolders, except for `without`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if path not in without and _is_database(path)]


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False
