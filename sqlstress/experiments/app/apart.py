"""What is done with the user's file in processes that do nothing else: look at it, and set a database up."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from sqlstress.errors import UsageError, plainly
from sqlstress.experiments.app.declared import called, declared
from sqlstress.experiments.app.forks import end_forks_with_us
from sqlstress.own.loading import prepare_process
from sqlstress.system.processes import Died, call_apart
from sqlstress.system.pulse import Pulse

IMPORT_S = 30.0
"""How long an import may take."""
SETUP_S = 600.0


class Seen(NamedTuple):
    """What a file declares, as it can be sent."""

    weights: dict[str, int]
    checks: tuple[str, ...]


def look(file: str) -> Seen:
    """Return what a file declares. Raises UsageError for one that can't be used, whatever it does."""
    with tempfile.TemporaryDirectory(prefix="sqlstress-", ignore_cleanup_errors=True) as folder:
        limit = _Limit(f"{file} takes longer than {IMPORT_S:g} s to import", IMPORT_S, lambda: None)
        try:
            return call_apart(limit.pulse, look_apart, file, Path(folder) / "app.db")
        except Died as error:
            raise UsageError(f"{file} ends the process that imports it: {error}") from error


def look_apart(file: str, database: Path) -> Seen:
    """Do so in this process."""
    end_forks_with_us()
    prepare_process(database, file)
    found = declared(file)
    return Seen(found.weights, found.checks)


def set_up(file: str, database: Path, original: str, seed: str, pulse: Pulse) -> None:
    """Let a file make its database. Raises UsageError."""
    limit = _Limit(f"the setup of {file} takes longer than {SETUP_S:g} s", SETUP_S, pulse)
    try:
        call_apart(limit.pulse, set_up_apart, file, database.absolute(), original, seed)
    except Died as error:
        raise UsageError(f"the setup of {file} ends its process: {error}") from error


def set_up_apart(file: str, database: Path, original: str, seed: str) -> None:
    """Do so in this process, and connect once: what that sets is no stranger's work."""
    from sqlstress.experiments.app.watch import protect

    end_forks_with_us()
    prepare_process(database, seed)
    protect(original)
    found = declared(file)
    for what, function in (("setup", found.setup), ("connect", found.connect)):
        try:
            if function:
                called(function, str(database))()
        except (Exception, SystemExit) as error:
            raise UsageError(f"{file}: its {what} failed: {plainly(error)[:300]}.") from error
    if found.setup and not (database.is_file() and database.stat().st_size):
        raise UsageError(
            f"{file}: its setup made nothing in the database that it was given: open that path, which "
            "SQLSTRESS_DATABASE has too."
        )


class _Limit:
    """A pulse that ends after a while."""

    def __init__(self, told: str, seconds: float, pulse: Pulse) -> None:
        self._told, self._until, self._pulse = told, time.monotonic() + seconds, pulse

    def pulse(self) -> None:
        self._pulse()
        if time.monotonic() > self._until:
            raise UsageError(f"{self._told}: does it wait for something?")
