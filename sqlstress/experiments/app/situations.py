"""States of a database's files before the calls of @connect in `app --start`."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlstress.errors import UsageError
from sqlstress.experiments.app import user_file
from sqlstress.experiments.app.spec import CRASHED_WAL, NO_FILE, ROLLBACK
from sqlstress.system.processes import Died, call_in_subprocess
from sqlstress.user_work.loading import CONNECT

if TYPE_CHECKING:
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import SqlPlace


def prepare_files(situation: str, place: SqlPlace, seed: str, pulse: Pulse) -> None:
    """Bring the database's files into a state such as "WAL". Raises UsageError if @connect fails.

    For NO_FILE, remove the database. For other states, a single process calls @connect first, so that the
    file is like one that an earlier start of the application has left.
    """
    if situation == NO_FILE:
        place.clear()
        return
    user_file.call_once(CONNECT, place, seed, pulse)
    path = str(place.directions().address)
    if not Path(path).exists():
        raise UsageError(f"{place.case.spec.file}: connect opened no database at the path that it got.")
    # A child process converts the file: when it closes the file, no other connection may have the file open.
    # For CRASHED_WAL, the process ends without closing the file.
    with suppress(Died):
        call_in_subprocess(pulse, convert, path, situation)


def convert(path: str, situation: str) -> None:
    """Set the journal mode of a database. For CRASHED_WAL, end this process with the database open."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {'DELETE' if situation == ROLLBACK else 'WAL'}").fetchone()
        if situation == CRASHED_WAL:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            connection.execute(f"PRAGMA user_version = {version}")
            os._exit(0)
