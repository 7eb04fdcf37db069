"""A trial of real processes on a real file, whose data is not yet verified, so that tests can change it."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlstress.engine.pool import Pool
from sqlstress.engine.protocols import Outcome
from sqlstress.engine.summary import outcomes, recorded_series
from sqlstress.report import Check, Verdict
from sqlstress.report.case import Case
from sqlstress.targets.sqlite import files
from tests.damage.trial import Worked, work_on
from tests.pulses import nothing

SALT = 7


class OnFiles:
    """Base of results with database files, which tests can read and change."""

    case: Case
    folder: Path

    @property
    def paths(self) -> list[Path]:
        """The database files, by bucket."""
        return files.paths(self.case, self.folder)

    @property
    def path(self) -> Path:
        """The first database file."""
        return self.paths[0]

    def rows(self, sql: str, *params: object, bucket: int = 0) -> list[Any]:
        with closing(sqlite3.connect(self.paths[bucket])) as connection:
            return connection.execute(sql, params).fetchall()

    def execute(self, sql: str, *params: object, bucket: int = 0) -> None:
        with closing(sqlite3.connect(self.paths[bucket])) as connection, connection:
            assert connection.execute(sql, params).rowcount > 0


@dataclass
class Measured(OnFiles, Worked):
    """A finished trial with its files, not yet verified."""

    case: Case
    folder: Path

    @property
    def outcomes(self) -> list[Outcome]:
        return list(outcomes(self.ended))

    def verdict(self) -> Verdict:
        return self.work.verify(self.outcomes, nothing)

    def series(self, name: str, worker: int = 1) -> tuple[int, ...]:
        """Return the values of a worker's series; empty if there is none."""
        every = [*self.seen, *recorded_series(self.ended)]
        return next((series.values for series in every if (series.name, series.worker) == (name, worker)), ())


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until `is_so` returns True, for a minute at most."""
    until = time.monotonic() + 60
    while not is_so() and time.monotonic() < until:
        time.sleep(0.001)


def measure(case: Case, folder: Path, during: Callable[[Pool], None] = lambda pool: None) -> Measured:
    """Run a trial; `during` may interfere with its processes."""
    worked = work_on(case, folder, SALT, {}, during)
    return Measured(**vars(worked), case=case, folder=folder)


def statuses(verdict: Verdict) -> dict[str, str]:
    return {check.name: check.status for check in verdict.checks}


def rejected(verdict: Verdict, name: str, *words: str) -> Check:
    """Return the check with this name, which must have failed and mention these words."""
    found = next(check for check in verdict.checks if check.name == name)
    assert (verdict.status, found.status) == ("failed", "failed"), verdict
    assert found.problems >= 1
    text = " ".join(found.counterexamples)
    assert [word for word in words if word not in text] == [], text
    return found
