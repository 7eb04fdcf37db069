"""Every test of this folder that asks for a case runs once for each driver and layout."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

from sqlstress.experiments.kv.experiment import Load
from sqlstress.report.case import Case, Settings
from tests.drivers import WHOLE

QUICK = Settings(synchronous="off", wal_autocheckpoint=8, busy_timeout_ms=0)


DAILY = {("apsw", 5), ("peewee", 1), ("sqlite3", 1), ("sqlite3", 5)}


def layouts(drivers: Iterable[str]) -> list[Any]:
    """Return rows of a driver and a number of files."""
    return [
        pytest.param(one, id=f"{one[0]}-{one[1]}", marks=[] if one in DAILY else [pytest.mark.thorough])
        for one in product(drivers, (1, 5))
    ]


@pytest.fixture(params=layouts(WHOLE))
def case(request: pytest.FixtureRequest) -> Case:
    return case_of(*request.param)


def case_of(driver: str, buckets: int) -> Case:
    """Return a case; it is skipped where its driver is not installed."""
    pytest.importorskip(driver)
    return Case(driver=driver, buckets=buckets, settings=QUICK, spec=Load(key_space=30, update_ratio=0.1))
