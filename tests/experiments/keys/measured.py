"""A trial of real processes on a real file, whose data has not been looked at."""

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
from sqlstress.engine.trial import outcomes, plan_window
from sqlstress.experiments.keys.spec import Picks
from sqlstress.report import Check, Verdict
from sqlstress.report.case import Case, Settings
from sqlstress.targets import open_place
from sqlstress.targets.sqlite import files
from tests.halves import open_work
from tests.pulses import nothing

SALT = 7
FAST = Settings(synchronous="off", pragmas=(("foreign_keys", "on"),))


def case_of(schema: str, id_type: str, made_by: str = "python", **fields: Any) -> Case:
    load = Picks(schema, id_type, made_by, users=30, picks=10, items=60)
    return Case(**{"workload": "keys", "concurrency": 2, "settings": FAST, "spec": load, "seed": 3, **fields})


@dataclass
class Measured:
    """A trial whose workers have ended and whose data has not been looked at."""

    case: Case
    path: Path
    work: Work
    ended: Sequence[Ended]

    def verdict(self) -> Verdict:
        return self.work.verify(outcomes(self.ended), nothing)

    def rows(self, sql: str, *params: object) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(sql, params).fetchall()

    def execute(self, sql: str, *params: object) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            assert connection.execute(sql, params).rowcount > 0


def measure(case: Case, folder: Path, during: Callable[[Pool], None] = lambda pool: None) -> Measured:
    work = open_work(case, folder, SALT, {})
    work.prepare(nothing)
    with Pool(case, open_place(case, folder), SALT, work.shared) as pool:
        pool.start(nothing)
        assert pool.wait_ready(60, nothing) == []
        pool.go(plan_window(case, time.perf_counter_ns()))
        during(pool)
        ended = pool.gather(60, nothing)
    return Measured(case, files.paths(case, folder)[0], work, ended)


def statuses(verdict: Verdict) -> dict[str, str]:
    return {check.name: check.status for check in verdict.checks}


def rejected(verdict: Verdict, name: str) -> Check:
    """Return the check of a name, which must have failed."""
    found = {check.name: check for check in verdict.checks}
    assert found[name].status == "failed", verdict
    return found[name]
