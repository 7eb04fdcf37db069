"""Warning about an SQLite library that waits for locks in steps of a second."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from sqlstress.report import Warning
from sqlstress.targets.sqlite.busy_wait import COARSE_S, HELD_S, measure_wait
from sqlstress.targets.sqlite.drivers import DRIVERS

TRIES = 3


def wait_warnings(drivers: Iterable[str], folder: Path) -> Iterator[Warning]:
    """Yield a warning for each SQLite driver that waits in steps of a second. Takes up to 3 s per driver.

    This process must have no connection to a measured database.
    """
    for driver in drivers:
        waited_s = _shortest_wait_s(driver, folder) if driver in DRIVERS else 0.0
        if waited_s >= COARSE_S:
            text = (
                f"The SQLite of {driver} waits for locks in steps of a second: a lock held for {HELD_S:g} s "
                f"was taken after {waited_s:.2f} s. It was built without usleep. A busy timeout below 1 s "
                "has no effect."
            )
            yield Warning("coarse-busy-wait", text, True)


def _shortest_wait_s(driver: str, folder: Path) -> float:
    waited_s = math.inf
    try:
        for _ in range(TRIES):
            waited_s = min(waited_s, measure_wait(driver, folder))
            if waited_s < COARSE_S:
                break
        return waited_s
    except Exception:  # Not measurable. The drivers' libraries have no common class of errors.
        return 0.0
