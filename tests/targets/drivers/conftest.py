"""Every test of this folder that asks for a driver or for connections runs once for each driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sqlstress.targets.sqlite.busy import Waiting
from sqlstress.targets.sqlite.drivers import DRIVERS, Connection, Driver, load_driver

Connect = Callable[..., Connection]


@pytest.fixture(params=sorted(DRIVERS))
def driver(request: pytest.FixtureRequest) -> Driver:
    pytest.importorskip(request.param)
    return load_driver(request.param)


@pytest.fixture
def connect(driver: Driver, tmp_path: Path) -> Iterator[Connect]:
    """Open connections to one file that never wait for a lock, unless told how."""
    with ExitStack() as opened:

        def connect(waiting: Waiting | None = None, busy_timeout_ms: int = 0) -> Connection:
            connection = driver.connect(tmp_path / "contract.db", busy_timeout_ms, waiting)
            opened.callback(connection.close)
            return connection

        yield connect
