"""Cases of cycles, and the rows that they leave."""

from __future__ import annotations

from typing import Any

from sqlstress.experiments.classics.spec import Cycling
from sqlstress.report.case import Case, Settings
from tests.experiments.measured import Measured


def case_of(
    settings: Settings | None = None, *, concurrency: int = 1, driver: str = "sqlite3", **cycling: Any
) -> Case:
    """Return a case of cycles that syncs as little as it can, unless its settings say so."""
    return Case(
        workload="cycles",
        driver=driver,
        concurrency=concurrency,
        duration_s=0,
        warmup_s=0,
        settings=settings or Settings(synchronous="off"),
        spec=Cycling(**{"cycles": 6, "rows": 3, **cycling}),
    )


def values(done: Measured) -> list[str]:
    """Return the values in the table, by id."""
    return [value for (value,) in done.rows("SELECT value FROM t1 ORDER BY id")]
