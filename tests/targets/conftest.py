"""Every test of this folder that asks for a case runs once for each driver and layout."""

from __future__ import annotations

import pytest

from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Settings
from sqlstress.targets.sqlite.drivers import DRIVERS

QUICK = Settings(synchronous="off", wal_autocheckpoint=8, busy_timeout_ms=0)


LAYOUTS = [(driver, buckets) for driver in sorted(DRIVERS) for buckets in (1, 5)]
DAILY = {("apsw", 5), ("peewee", 1), ("sqlite3", 1), ("sqlite3", 5)}


@pytest.fixture(
    params=[
        pytest.param(one, id=f"{one[0]}-{one[1]}", marks=[] if one in DAILY else [pytest.mark.thorough])
        for one in LAYOUTS
    ]
)
def case(request: pytest.FixtureRequest) -> Case:
    driver, buckets = request.param
    pytest.importorskip(driver)
    return Case(driver=driver, buckets=buckets, settings=QUICK, spec=Load(key_space=30, update_ratio=0.1))
