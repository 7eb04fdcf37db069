"""The database of a trial: a copy of the user's, or an empty one, and then what the setup makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlstress.errors import EnvironmentFailure, SqlstressError, UsageError, said
from sqlstress.own.data import Data, setup_text
from sqlstress.own.files import digest
from sqlstress.own.original import copy
from sqlstress.own.statements import Place, Statement, place_of, split
from sqlstress.system.processes import call_apart
from sqlstress.targets.sqlite.drivers import Connection, codes, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.files import run_watched

if TYPE_CHECKING:
    from sqlstress.system.pulse import Pulse
    from sqlstress.targets.sqlite.place import SqlitePlace


def make(place: SqlitePlace, data: Data, own: Iterable[str], pulse: Pulse) -> None:
    """Make the file of a place anew, and see that the case's settings were taken.

    `own` are statements of ours, run after the user's setup. Raises UsageError, with the place in the file,
    for what the setup can't do.
    """
    place.discard()
    if data.database:
        call_apart(pulse, copy, data.database, place.paths[0])
    settings = place.case.settings
    with place.opened() as connection:
        pragmas.apply(connection, settings)
        # Nobody needs what is made here after a power failure: no sync is waited for.
        connection.rows("PRAGMA synchronous=OFF")
        if data.setup:
            _set_up(place, connection, data, pulse)
        for sql in own:
            run_watched(connection, lambda sql=sql: connection.rows(sql), pulse)  # type: ignore[misc]
        pragmas.apply(connection, settings)
        connection.rows(f"PRAGMA user_version={connection.rows('PRAGMA user_version')[0][0]}")
        pragmas.check(settings, pragmas.read_back(connection, settings))
        # The WAL keeps the size that it works with.
        connection.rows("PRAGMA wal_checkpoint(RESTART)")


def _set_up(place: SqlitePlace, connection: Connection, data: Data, pulse: Pulse) -> None:
    text = setup_text(data.setup)
    if digest(text) != data.setup_digest:
        raise EnvironmentFailure(f"{data.setup} changed while it was measured: measure again.")
    run_watched(connection, lambda: _run(place.case.driver, connection, data.setup, text), pulse)
    if connection.in_transaction():
        raise UsageError(f"{data.setup}: the transaction that it begins is never ended: add COMMIT.")


def _run(driver: str, connection: Connection, file: str, text: str) -> None:
    for one in split(file, text):
        try:
            connection.rows(one.text)
        except Exception as error:
            raise failed(driver, file, text, one, error) from error


def explained(driver: str, connection: Connection, place: Place, one: Statement) -> None:
    """See that SQLite can run a statement, without running it. Raises UsageError, with its place."""
    try:
        connection.reads(f"EXPLAIN {one.text}")({token.text[1:]: None for token in one.parameters})
    except Exception as error:
        if codes.is_lack(load_driver(driver).result_code(error)):
            raise
        raise place.error(said(error).removesuffix(".")) from error


def failed(driver: str, file: str, text: str, one: Statement, error: Exception) -> SqlstressError:
    """Return what went wrong with a statement of a file, with its place there."""
    code = load_driver(driver).result_code(error)
    if codes.is_lack(code):
        return EnvironmentFailure(
            f"{place_of(file, text, one.start)}: {said(error)} ({codes.advice(code or 0)})."
        )
    return place_of(file, text, one.start).error(said(error).removesuffix("."))
