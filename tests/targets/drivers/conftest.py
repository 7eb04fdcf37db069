"""Fixtures: each test with a driver or connections runs once per driver. A fake clock for waits."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sqlstress.targets.sqlite.busy import BusyRetries
from sqlstress.targets.sqlite.drivers import DRIVERS, Connection, Driver, load_driver

Connect = Callable[..., Connection]


@pytest.fixture(params=sorted(DRIVERS))
def driver(request: pytest.FixtureRequest) -> Driver:
    pytest.importorskip(request.param)
    return load_driver(request.param)


@pytest.fixture
def connect(driver: Driver, tmp_path: Path) -> Iterator[Connect]:
    """Yield a function that opens connections to a file; by default they never wait for a lock."""
    with ExitStack() as opened:

        def connect(busy_timeout_ms: int = 0) -> Connection:
            connection = driver.connect(tmp_path / "contract.db", busy_timeout_ms)
            opened.callback(connection.close)
            return connection

        yield connect


class FakeTime:
    """A clock, and a sleep that moves it and then calls `meanwhile` with the number of sleeps so far."""

    def __init__(self, meanwhile: Callable[[int], None] = lambda sleeps: None) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self._meanwhile = meanwhile

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)
        self._meanwhile(len(self.slept))

    def waiting(self, workers: int = 8, timeout_s: float = 60.0, seed: str = "") -> BusyRetries:
        return BusyRetries(workers, timeout_s, seed, self.sleep, self.clock)
