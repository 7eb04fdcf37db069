"""One trial of cycles by real processes, whose data has not been looked at yet."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlstress.engine.pool import Ended, Pool
from sqlstress.engine.protocols import Work
from sqlstress.engine.summary import told_series
from sqlstress.engine.trial import outcomes, plan_window
from sqlstress.experiments.cycles.spec import Cycling
from sqlstress.report import Verdict
from sqlstress.report.case import Case, Settings
from sqlstress.statistics.series import Series
from sqlstress.targets import open_place
from sqlstress.targets.sqlite import files
from tests.halves import open_work

SALT = 7


def nothing() -> None:
    pass


@dataclass
class Measured:
    """What is left of a trial."""

    case: Case
    folder: Path
    work: Work
    ended: Sequence[Ended]
    seen: Sequence[Series]
    """What the companions saw."""
    problem: str | None = None
    """What went wrong with them."""

    @property
    def path(self) -> Path:
        return files.paths(self.case, self.folder)[0]

    def verdict(self) -> Verdict:
        return self.work.verify(outcomes(self.ended), nothing)

    def values(self, table: str = "t1") -> list[str]:
        with closing(sqlite3.connect(self.path)) as connection:
            return [row[0] for row in connection.execute(f"SELECT value FROM {table} ORDER BY id")]

    def execute(self, sql: str, *params: object) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            assert connection.execute(sql, params).rowcount > 0

    def series(self, name: str, worker: int = 1) -> tuple[int, ...]:
        """Return the values of a worker's series; empty when there is none."""
        every = [*self.seen, *told_series(self.ended)]
        return next((one.values for one in every if (one.name, one.worker) == (name, worker)), ())


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


def measure(case: Case, folder: Path, during: Callable[[Pool], None] = lambda pool: None) -> Measured:
    """Run a trial; `during` may meddle with it."""
    work = open_work(case, folder, SALT, {})
    work.prepare(nothing)
    with Pool(case, open_place(case, folder), SALT, work.shared, work.companions) as pool:
        pool.start(nothing)
        assert pool.wait_ready(60, nothing) == []
        pool.go(plan_window(case, time.perf_counter_ns()))
        during(pool)
        ended = pool.gather(60, nothing)
        seen, problem = pool.dismiss(60, nothing)
    return Measured(case, folder, work, ended, seen, problem)
