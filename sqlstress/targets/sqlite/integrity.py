"""Whether database files are sound, as SQLite sees them, and define what they should; and where not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlstress.errors import SqlstressError, message_of
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.report.results import Tally
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import call_apart
from sqlstress.targets import run_watched
from sqlstress.targets.place import Definition, redefinitions
from sqlstress.targets.sqlite import pages
from sqlstress.targets.sqlite.drivers import Connection, Row
from sqlstress.targets.sqlite.files import opened
from sqlstress.targets.sqlite.pages import MAGIC, SCHEMA
from sqlstress.targets.sqlite.space import trees_of

MALFORMED = "database disk image is malformed"
_COLUMNS = "rowid type name tbl_name sql"
_AT_ONCE = 4 << 20
"""Bytes of a file that is looked at in a few hundredths of a second."""
_HEADING = "*** in database main ***"
"""Stands above what SQLite complains of, in the same row as the first complaint."""


def integrity_check(case: Case, paths: Sequence[Path], level: str, pulse: Pulse) -> Check:
    """Run quick_check, or integrity_check at the level "full", on every file."""
    tally = Tally("integrity_check" if level == "full" else "quick_check")
    for path in paths:
        pulse()
        tally.checked += 1
        complaints = integrity(case, path, tally.name, pulse) if path.exists() else ["the file is gone"]
        for complaint in complaints:
            tally.problem(f"{path.name}: {complaint}")
    return tally.check()


def integrity(case: Case, path: Path, pragma: str, pulse: Pulse) -> list[str]:
    """Return what a PRAGMA complains of: quick_check or integrity_check.

    If it was an error that ended it, the file is read without SQLite too: to name what can't be read.
    """
    complaints, error = _complaints_and_error(case, path, pragma, pulse)
    if error and not complaints:
        # A binding may lose the row before an error; for a single complaint SQLite does not go that far.
        complaints, _ = _complaints_and_error(case, path, f"{pragma}(1)", pulse)
    if error and error not in complaints:
        complaints.append(error)
    # Of what it meets in the rows, when all pages have been looked at, SQLite tells in these words only.
    if error or MALFORMED in complaints:
        complaints += _unreadable(case, path, pulse)
    return complaints


def _complaints_and_error(case: Case, path: Path, pragma: str, pulse: Pulse) -> tuple[list[str], str]:
    """Return what a check complains of, and the error with which it ended, if it did."""
    rows: list[Row] = []
    error = ""
    try:
        with opened(case, path) as connection:

            def ask() -> None:
                rows.extend(connection.iterate(f"PRAGMA {pragma}"))

            if path.stat().st_size < _AT_ONCE:
                ask()  # a thread would take longer than the answer
            else:
                run_watched(connection, ask, pulse)
    except (SqlstressError, OSError, MemoryError):
        raise
    except Exception as problem:
        error = message_of(problem)
    lines = [line for row in rows for line in str(row[0]).splitlines()]
    return [line for line in lines if line not in ("ok", _HEADING)], error


def _unreadable(case: Case, path: Path, pulse: Pulse) -> list[str]:
    """Return what is wrong with the pages and records of a file, as far as we see it."""
    complaints = []
    try:
        with opened(case, path) as connection:
            trees = trees_of(connection)
    except (SqlstressError, OSError, MemoryError):
        raise
    except Exception:
        trees, complaints = (SCHEMA,), ["its schema can't be read"]
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size:
        return complaints  # what the file itself holds may be an older state
    return complaints + call_apart(pulse, pages.complaints, path, trees)


def schema_check(case: Case, paths: Sequence[Path], created: Sequence[Definition], pulse: Pulse) -> Check:
    """See that every file defines what was created when the trial began, and nothing else.

    SQLite compares no definition with anything: one that has been changed is only another one.
    """
    tally = Tally("schema")
    for path in paths:
        pulse()
        tally.checked += len(created)
        for complaint in redefinitions(created, schema(case, path)):
            tally.problem(f"the schema of {path.name} {complaint}")
    return tally.check()


def schema(case: Case, path: Path) -> list[Definition]:
    """Return what is defined in a file: see `definitions`."""
    with opened(case, path) as connection:
        return definitions(connection)


def definitions(connection: Connection) -> list[Definition]:
    """Return what is defined, the oldest first: number, type, name and table; and the SQL."""
    # As bytes: what is damaged need not be text any more.
    columns = ", ".join(f"CAST({name} AS BLOB)" for name in _COLUMNS.split())
    rows = connection.rows(f"SELECT {columns} FROM sqlite_schema ORDER BY rowid")
    texts = [[(blob or b"").decode(errors="backslashreplace") for blob in row] for row in rows]
    return [
        (f"definition {number}, the {kind} {name} of {table}", sql)
        for number, kind, name, table, sql in texts
    ]


# The folder that programs of the user's have to themselves in a trial: all that lies in it belongs to it.


def databases_in(folder: Path, without: Sequence[Path]) -> list[Path]:
    """Return the databases in a folder and below, as far as their first bytes say that they are."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in found if path not in without and _is_database(path)]


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
