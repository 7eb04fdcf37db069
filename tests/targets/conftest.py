"""Every test of this folder that asks for a case runs once for each driver and layout."""

from __future__ import annotations

import itertools

import pytest

from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Settings
from sqlstress.targets.sqlite.drivers import DRIVERS

QUICK = Settings(synchronous="off", wal_autocheckpoint=8, busy_timeout_ms=0)


@pytest.fixture(params=itertools.product(sorted(DRIVERS), (1, 5)), ids=lambda param: f"{param[0]}-{param[1]}")
def case(request: pytest.FixtureRequest) -> Case:
    driver, buckets = request.param
    pytest.importorskip(driver)
    return Case(driver=driver, buckets=buckets, settings=QUICK, spec=Load(key_space=30, update_ratio=0.1))
