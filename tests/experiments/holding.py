"""Trials during which a thread holds the write lock for half a second: a wait that a closed loop hides."""

import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from tempfile import mkdtemp

from sqlstress.engine.study import Observer
from sqlstress.report import Latency, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.histogram import bin_floor
from sqlstress.statistics.units import NS_PER_MS
from tests.engine.benches import bench

HELD_S = 0.5
SLOW_MS = 100
ATTEMPTS = 8
MARGIN_S = 0.1


class Holder(Observer):
    """Holder of the only database's write lock, for HELD_S in the middle of the window."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.folder, self.after_s = folder, 0.25 * case.duration_s + case.warmup_s
        self.threads: list[threading.Thread] = []
        self.latest_s = case.warmup_s + case.duration_s - HELD_S - MARGIN_S
        self.held = 0
        self.in_time = False
        """Whether the last hold of the lock lies fully in the window."""
        self._due = False

    def phase(self, name: str) -> None:
        """Hold the lock in every attempt: on a busy machine the first one may not be valid."""
        self._due = name == "measuring"

    def tick(self, operations: int) -> None:
        """Begin to wait with the first operation: the window may be announced long before."""
        if self._due and operations:
            self._due = False
            self.threads.append(threading.Thread(target=self._hold))
            self.threads[-1].start()

    def _hold(self) -> None:
        (database,) = self.folder.rglob("*.db")
        begun = time.monotonic()
        time.sleep(self.after_s)
        with closing(sqlite3.connect(database, isolation_level=None, timeout=0)) as connection:
            self._begin(connection)
            self.in_time = time.monotonic() - begun <= self.latest_s
            time.sleep(HELD_S)
            connection.execute("COMMIT")
        self.held += 1

    @staticmethod
    def _begin(connection: sqlite3.Connection) -> None:
        """Retry until the lock is held, without sleeping: the writers would starve a thread that sleeps."""
        while not connection.in_transaction:
            with suppress(sqlite3.OperationalError):
                connection.execute("BEGIN IMMEDIATE")


def measured(case: Case, folder: Path) -> Trial:
    """Return a trial during which the lock was held. Retry, because a busy machine may delay the lock."""
    for _ in range(ATTEMPTS):
        place = Path(mkdtemp(dir=folder))
        holder = Holder(place, case)
        trial = bench(place, observer=holder).runner.run_valid(case, 0)
        for thread in holder.threads:
            thread.join()
        assert holder.held == len(holder.threads) > 0
        if holder.in_time:
            return trial
    raise AssertionError(f"the lock was got too late, {ATTEMPTS} times")


def slow(latency: Latency | None) -> int:
    """Return the number of operations that took longer than SLOW_MS."""
    assert latency
    return sum(n for index, n in latency.buckets if bin_floor(index) > SLOW_MS * NS_PER_MS)
