"""A worker's connection waits for locks of others even while it is opened."""

from pathlib import Path
from typing import Any

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.report.case import Case, Settings
from sqlstress.targets.sqlite.busy import BusyRetries
from sqlstress.targets.sqlite.connections import SqliteClient
from sqlstress.targets.sqlite.drivers import DRIVERS, Connection, load_driver
from tests.targets.drivers.conftest import FakeTime


@pytest.fixture(params=sorted(DRIVERS))
def case(request: pytest.FixtureRequest) -> Case:
    pytest.importorskip(request.param)
    return Case(driver=request.param, settings=Settings(busy_timeout_ms=0))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shared.db"


def holder(case: Case, path: Path) -> Connection:
    """Return a connection that locks all others out."""
    connection = load_driver(case.driver).connect(path, 0)
    connection.rows("PRAGMA locking_mode=exclusive")
    connection.rows("PRAGMA journal_mode=wal")
    connection.rows("CREATE TABLE t (a)")
    return connection


def client_of(case: Case, path: Path, waiting: BusyRetries) -> SqliteClient:
    client = SqliteClient(case, [path], 1)
    client.waiting = waiting
    return client


def test_file_locked_while_opened_is_waited_for(case: Case, path: Path) -> None:
    first = holder(case, path)
    time = FakeTime(lambda sleeps: first.close() if sleeps == 3 else None)
    client = client_of(case, path, time.waiting())
    try:
        assert client.connect(0).rows("PRAGMA journal_mode") == [("wal",)]
        assert len(time.slept) == 3
    finally:
        client.close()


def test_file_that_stays_locked_fails_and_is_closed(
    case: Case, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = holder(case, path)
    time, driver = FakeTime(), load_driver(case.driver)
    closed: list[Any] = []

    def connecting(*arguments: Any) -> Any:
        connection: Any = connect(*arguments)
        monkeypatch.setattr(connection, "close", lambda: closed.append(connection))
        return connection

    connect = driver.connect
    monkeypatch.setattr(driver, "connect", connecting)
    try:
        with pytest.raises(EnvironmentFailure, match=r"cannot open shared.db: SQLITE_BUSY"):
            client_of(case, path, time.waiting(timeout_s=0.5)).connect(0)
        assert 0.5 <= time.now < 0.7
        assert len(closed) == 1
    finally:
        monkeypatch.undo()
        for connection in (first, *closed):
            connection.close()
