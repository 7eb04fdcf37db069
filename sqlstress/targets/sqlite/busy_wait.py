"""Measurement of the time that SQLite's busy handler waits for a lock that is soon free.

A library built without HAVE_USLEEP sleeps whole seconds, and its compile options do not show this.

Source: https://www.sqlite.org/c3ref/busy_timeout.html, and sqliteDefaultBusyCallback in SQLite's main.c
"""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from sqlstress.targets.sqlite.drivers import load_driver

if TYPE_CHECKING:
    from sqlstress.targets.sqlite.drivers import Connection

HELD_S = 0.05
"""Time for which a connection holds a lock while another connection waits, in seconds."""
COARSE_S = 0.5
"""Minimum wait, in seconds, that proves that the busy handler slept for a whole second."""
_TIMEOUT_MS = 3000


def measure_wait(driver: str, folder: Path) -> float:
    """Return the wait, in s, of a writer for a lock held for HELD_S, in a temporary file in `folder`."""
    path, connect = folder / "wait.db", load_driver(driver).connect
    try:
        with closing(connect(path, _TIMEOUT_MS)) as holder, closing(connect(path, _TIMEOUT_MS)) as waiter:
            return time_wait(holder, waiter)
    finally:
        path.unlink(missing_ok=True)


def time_wait(holder: Connection, waiter: Connection) -> float:
    """Return the time that `waiter` waited for the lock that `holder` held for HELD_S, in seconds."""
    waited_s = 0.0

    def wait() -> None:
        nonlocal waited_s
        begun = time.perf_counter()
        waiter.rows("BEGIN IMMEDIATE")
        waited_s = time.perf_counter() - begun
        waiter.rollback()

    holder.rows("BEGIN IMMEDIATE")
    thread = Thread(target=wait)
    thread.start()
    time.sleep(HELD_S)
    holder.rollback()
    thread.join()
    return waited_s
