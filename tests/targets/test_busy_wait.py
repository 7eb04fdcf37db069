"""The wait for a lock is timed with each driver, and a handler that sleeps whole seconds is recognised."""

import time
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.targets.sqlite.busy_wait import COARSE_S, HELD_S, measure_wait, time_wait
from sqlstress.targets.sqlite.drivers import load_driver


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_waiter_waits_at_least_as_long_as_the_lock_is_held(driver: str, tmp_path: Path) -> None:
    assert measure_wait(driver, tmp_path) >= HELD_S / 2  # The waiter may start late.


def test_handler_that_sleeps_whole_seconds_is_recognised(tmp_path: Path) -> None:
    path, connect = tmp_path / "wait.db", load_driver("apsw").connect
    with closing(connect(path, 3000)) as holder, closing(connect(path, 3000)) as waiter:

        def handler(attempt: int) -> bool:
            time.sleep(1)
            return attempt < 3

        waiter._connection.set_busy_handler(handler)
        assert time_wait(holder, waiter) >= 1 > COARSE_S
