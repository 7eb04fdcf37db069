"""What is done with the user's file in processes that do nothing else: look at it, and set a database up."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.errors import UsageError, plainly
from sqlstress.experiments.app.declared import Declared, called, declared
from sqlstress.experiments.app.leftovers import end_forks_with_us
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import Died, call_apart
from sqlstress.targets import stand_in
from sqlstress.user_work.loading import DATABASE, prepare_process

if TYPE_CHECKING:
    from sqlstress.targets.directions import Directions
    from sqlstress.targets.place import SqlPlace

IMPORT_S = 30.0
"""How long an import may take."""
SETUP_S = 600.0


class Seen(NamedTuple):
    """What a file declares, as it can be sent."""

    weights: dict[str, int]
    checks: tuple[str, ...]


def look(file: str, driver: str) -> Seen:
    """Return what a file declares. Raises UsageError for one that can't be used, whatever it does.

    It is told a database that is not there, of the kind that the driver is for.
    """
    with tempfile.TemporaryDirectory(prefix="sqlstress-", ignore_cleanup_errors=True) as folder:
        limit = _Limit(f"{file} takes longer than {IMPORT_S:g} s to import", IMPORT_S, lambda: None)
        try:
            nowhere = stand_in(driver, Path(folder))
            return call_apart(limit.pulse, look_apart, file, nowhere)
        except Died as error:
            raise UsageError(f"{file} ends the process that imports it: {error}") from error


def look_apart(file: str, directions: Directions) -> Seen:
    """Do so in this process."""
    end_forks_with_us()
    prepare_process(directions, file)
    found = declared(file)
    return Seen(found.weights, found.checks)


def set_up(place: SqlPlace, seed: str, pulse: Pulse) -> None:
    """Let the file of a place's case make its database. Raises UsageError."""
    file, original = place.case.spec.file, place.case.spec.data.database
    limit = _Limit(f"the setup of {file} takes longer than {SETUP_S:g} s", SETUP_S, pulse)
    try:
        has_setup, connects = call_apart(limit.pulse, set_up_apart, file, place.directions(), original, seed)
        if connects:
            # As in a worker's process, which has had no setup: a mapper refuses to be bound twice.
            call_apart(limit.pulse, connect_apart, file, place.directions(), original, seed)
    except Died as error:
        raise UsageError(f"{file}: its setup or its connect ends the process: {error}") from error
    if has_setup and not place.is_filled():
        raise UsageError(
            f"{file}: its setup left nothing in the database that it was given: open what {DATABASE} says, "
            "which it is given too."
        )
    place.settle(pulse)


def set_up_apart(file: str, directions: Directions, original: str, seed: str) -> tuple[bool, bool]:
    """Do so in this process. Returns whether the file has a setup, and a connect."""
    found = _prepared(file, directions, original, seed)
    _call(file, "setup", found.setup, directions)
    return bool(found.setup), bool(found.connect)


def connect_apart(file: str, directions: Directions, original: str, seed: str) -> None:
    """Connect once in this process, as workers do: what that sets is no stranger's work."""
    _call(file, "connect", _prepared(file, directions, original, seed).connect, directions)


def _prepared(file: str, directions: Directions, original: str, seed: str) -> Declared:
    from sqlstress.experiments.app.watch import protect

    end_forks_with_us()
    prepare_process(directions, seed)
    protect(original)
    return declared(file)


def _call(file: str, what: str, function: Callable[..., Any] | None, directions: Directions) -> None:
    try:
        if function:
            called(function, directions.address)()
    except (Exception, SystemExit) as error:
        said = directions.hidden(plainly(error))[:300]
        raise UsageError(f"{file}: its {what} failed: {said}.") from error


class _Limit:
    """A pulse that ends after a while."""

    def __init__(self, told: str, seconds: float, pulse: Pulse) -> None:
        self._told, self._until, self._pulse = told, time.monotonic() + seconds, pulse

    def pulse(self) -> None:
        self._pulse()
        if time.monotonic() > self._until:
            raise UsageError(f"{self._told}: does it wait for something?")
