"""A driver that is slower by a known share: after each operation it waits, busily, in proportion to it.

What an operation takes changes on a shared disk from one minute to the next. A wait in proportion makes
the share exact whatever the disk does, with one process: several would use each other's waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlstress import target
from sqlstress.targets.sqlite.busy import Waiting
from sqlstress.targets.sqlite.drivers import DRIVERS, Row, sqlite3_driver
from sqlstress.targets.sqlite.drivers.sqlite3_driver import (
    HANDLES_BUSY,
    result_code,
    versions,
)

NAME = "slowed"

__all__ = ["HANDLES_BUSY", "Slowed", "connect", "result_code", "versions"]

_share = 0.0


class Slowed(str):
    """The driver's name, with the share of the throughput that it takes away, 0 to under 1.

    A process that makes one, or is sent one, knows the driver and the share.
    """

    share: float

    def __new__(cls, share: float) -> Slowed:
        global _share
        DRIVERS[NAME] = __name__
        target.DRIVERS[NAME] = target.Known("sqlite", __name__, "slower by a known share", everywhere=False)
        found = super().__new__(cls, NAME)
        found.share = _share = share
        return found

    def __reduce__(self) -> tuple[type[Slowed], tuple[float]]:
        return Slowed, (self.share,)


def waiting_after(call: Callable[[Row], Any], share: float) -> Callable[[Row], Any]:
    """Return a function that does what `call` does and takes 1 / (1 - share) times as long.

    A share of 0 costs what any other does, but for the wait.
    """
    factor, now = share / (1 - share), time.perf_counter_ns

    def run(params: Row) -> Any:
        began = now()
        result = call(params)
        ended = now()
        until = ended + (ended - began) * factor
        while now() < until:
            pass
        return result

    return run


class SlowedConnection(sqlite3_driver.StdlibConnection):
    """A connection of the standard library that waits after what workers do."""

    def scalar(self, sql: str) -> Callable[[Row], Any]:
        return waiting_after(super().scalar(sql), _share)

    def writer(self, sql: str) -> Callable[[Row], Any]:
        return waiting_after(super().writer(sql), _share)


def connect(path: Path, busy_timeout_ms: int, waiting: Waiting | None) -> SlowedConnection:
    """Open a database as the standard library's driver does."""
    return SlowedConnection(path, 0 if waiting else busy_timeout_ms / 1000)
