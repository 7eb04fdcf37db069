"""Fixtures: each test with a case, or its views, runs once for each driver and layout."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

from sqlstress.experiments.kv.acks import COUNTERS
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Server, Settings
from sqlstress.targets import open_place
from sqlstress.targets.sqlite.drivers import DRIVERS
from sqlstress.targets.views import Store
from tests.drivers import WHOLE
from tests.pulses import nothing

QUICK = Settings(synchronous="off", wal_autocheckpoint=8, busy_timeout_ms=0)


DAILY = {("apsw", 5), ("peewee", 1), ("sqlite3", 1), ("sqlite3", 5)}


def layouts(drivers: Iterable[str]) -> list[Any]:
    """Return test parameters: a driver and a number of files."""
    return [
        pytest.param(
            layout, id=f"{layout[0]}-{layout[1]}", marks=[] if layout in DAILY else [pytest.mark.thorough]
        )
        for layout in product(drivers, (1, 5))
    ]


@pytest.fixture(params=layouts(WHOLE))
def case(request: pytest.FixtureRequest) -> Case:
    return case_of(*request.param)


def case_of(driver: str, buckets: int) -> Case:
    """Return a case whose operations give up at once; skip the test if its driver is not installed."""
    pytest.importorskip(driver)
    return Case(driver=driver, buckets=buckets, settings=QUICK, spec=Load(key_space=30, update_ratio=0.1))


def any_case(driver: str, request: pytest.FixtureRequest, buckets: int) -> Case:
    """Return such a case for any driver, on our server if it needs one."""
    case = case_of(driver, buckets)
    if driver in DRIVERS:
        return case
    request.getfixturevalue("our_server")
    return replace(case, server=Server())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.db"


Open = Callable[..., Store]


@pytest.fixture
def open_view(case: Case, tmp_path: Path) -> Iterator[Open]:
    """Open views of a store, each as another worker. Each bucket has the keys 0 to 29."""
    workers = count(1)
    place = open_place(case, tmp_path)
    table = place.table("int", 8, COUNTERS)
    assert table
    table.fill([[(key, -key) for key in range(30)]] * case.buckets, nothing)
    with ExitStack() as opened:
        opened.callback(place.discard)

        def open_view(begin: str = "immediate", isolation: str | None = None, **settings: Any) -> Store:
            server = Server(isolation=isolation) if isolation else case.server
            own_case = replace(case, settings=replace(case.settings, **settings), server=server)
            store = open_place(own_case, tmp_path).keyvalue(next(workers), begin, None)
            opened.callback(store.close)
            return store

        yield open_view
        table.release()
