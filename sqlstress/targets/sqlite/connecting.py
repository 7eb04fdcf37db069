"""A worker's connection to a database file, and how it waits for locks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.sqlite.drivers import Connection, Waiting, explain, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas

if TYPE_CHECKING:
    from sqlstress.report.case import Case


def waiting_of(case: Case, worker: int) -> Waiting:
    """Return the waits of one worker; its number seeds their jitter."""
    return Waiting(case.concurrency, case.settings.busy_timeout_ms / 1000, f"{case.seed}:waiting:{worker}")


def connect(case: Case, path: Path, waiting: Waiting) -> Connection:
    """Open a file with the case's settings. Raises EnvironmentFailure, with SQLite's code."""
    settings, driver = case.settings, load_driver(case.driver)
    try:
        connection = driver.connect(
            path, settings.busy_timeout_ms, waiting if settings.busy == "fair" else None
        )
        # Whoever opens a WAL that nobody holds sets it up, and the others wait for it.
        apply = waiting.retried(
            lambda _: pragmas.apply(connection, settings), driver.result_code, connection.rollback
        )
        try:
            apply(None)
        except BaseException:
            connection.close()
            raise
    except Exception as error:
        raise EnvironmentFailure(f"cannot open {path.name}: {explain(case.driver, error)}") from error
    return connection


def waits_outside(case: Case) -> bool:
    """Return whether a busy handler of ours is wanted and can't run inside SQLite: operations are retried."""
    return case.settings.busy == "fair" and not load_driver(case.driver).HANDLES_BUSY
