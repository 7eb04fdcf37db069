"""A worker's connection waits for the others already when it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.report.case import Case, Settings
from sqlstress.targets.sqlite.connections import connect
from sqlstress.targets.sqlite.drivers import DRIVERS, Connection, load_driver
from tests.targets.drivers.fake_time import FakeTime


@pytest.fixture(params=sorted(DRIVERS))
def case(request: pytest.FixtureRequest) -> Case:
    pytest.importorskip(request.param)
    return Case(driver=request.param, settings=Settings(busy="fair"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shared.db"


def holder(case: Case, path: Path) -> Connection:
    """Return a connection that lets nobody else in."""
    connection = load_driver(case.driver).connect(path, 0, None)
    connection.rows("PRAGMA locking_mode=exclusive")
    connection.rows("PRAGMA journal_mode=wal")
    connection.rows("CREATE TABLE t (a)")
    return connection


def test_a_file_that_is_locked_while_it_is_opened_is_waited_for(case: Case, path: Path) -> None:
    first = holder(case, path)
    time = FakeTime(lambda sleeps: first.close() if sleeps == 3 else None)
    second = connect(case, path, time.waiting())
    try:
        assert second.rows("PRAGMA journal_mode") == [("wal",)]
        assert len(time.slept) == 3
    finally:
        second.close()


def test_a_file_that_stays_locked_is_given_up_with_sqlites_name_for_it_and_closed(
    case: Case, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = holder(case, path)
    time, driver = FakeTime(), load_driver(case.driver)
    opened: list[Any] = []
    closed: list[Any] = []

    def connecting(*arguments: Any) -> Any:
        connection: Any = open_it(*arguments)
        close = connection.close

        def closing() -> None:
            closed.append(connection)
            close()

        monkeypatch.setattr(connection, "close", closing)
        opened.append(connection)
        return connection

    open_it = driver.connect
    monkeypatch.setattr(driver, "connect", connecting)
    try:
        with pytest.raises(EnvironmentFailure, match=r"cannot open shared.db: SQLITE_BUSY"):
            connect(case, path, time.waiting(timeout_s=0.5))
        assert 0.5 <= time.now < 0.7
        assert len(opened) == 1 and closed == opened
    finally:
        first.close()
