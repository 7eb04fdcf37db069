"""kv at a rate, with real processes and a real lock: what a closed loop hides."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.observer import Nobody
from sqlstress.experiments.kv.spec import Load
from sqlstress.report import Latency, Trial
from sqlstress.report.arrivals import Arrivals
from sqlstress.report.case import Case
from sqlstress.statistics.histogram import bucket_floor
from sqlstress.statistics.units import NS_PER_MS
from tests.engine.benches import bench

HELD_S = 0.5
RATE = 200


class Holder(Nobody):
    """Holds the write lock of the only database for a while, in the middle of the window."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.folder, self.after_s = folder, 0.25 * case.duration_s + case.warmup_s
        self.threads: list[threading.Thread] = []
        self.held = 0

    def phase(self, name: str) -> None:
        """Hold the lock in every attempt: on a busy machine the first one may not be valid."""
        if name == "measuring":
            self.threads.append(threading.Thread(target=self._hold))
            self.threads[-1].start()

    def _hold(self) -> None:
        (database,) = self.folder.rglob("*.db")
        time.sleep(self.after_s)
        with closing(sqlite3.connect(database, isolation_level=None, timeout=0)) as connection:
            self._begin(connection)
            time.sleep(HELD_S)
            connection.execute("COMMIT")
        self.held += 1

    @staticmethod
    def _begin(connection: sqlite3.Connection) -> None:
        """Take the lock by asking for it over and over: who sleeps between is starved by those who write."""
        while not connection.in_transaction:
            with suppress(sqlite3.OperationalError):
                connection.execute("BEGIN IMMEDIATE")


CASE = Case(concurrency=2, duration_s=1.2, warmup_s=0.2, spec=Load(read_ratio=0.0, key_space=1000), seed=3)


def measured(case: Case, folder: Path) -> Trial:
    """Return a trial meanwhile of which the lock was held."""
    holder = Holder(folder, case)
    trial = bench(folder, observer=holder).runner._flawless(case, 0)
    for thread in holder.threads:
        thread.join()
    assert holder.held == len(holder.threads) > 0
    return trial


@pytest.fixture(scope="module")
def at_a_rate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    case = replace(CASE, arrivals=Arrivals(RATE, "even"))
    yield measured(case, tmp_path_factory.mktemp("open"))


SLOW_MS = 100
MOST_SLOW = round(CASE.concurrency * (CASE.warmup_s + CASE.duration_s) * 1000 / SLOW_MS)
"""For so many operations slower than that processes have time, one after the other, on any machine."""


def slow(latency: Latency | None) -> int:
    """Return how many operations took longer than SLOW_MS."""
    assert latency
    return sum(n for index, n in latency.buckets if bucket_floor(index) > SLOW_MS * NS_PER_MS)


def test_a_lock_that_is_held_for_half_a_second_meets_all_who_come_meanwhile(at_a_rate: Trial) -> None:
    # 100 of 240 came while it was held, of which those of the last 100 ms waited less than that.
    assert at_a_rate.arrived and at_a_rate.arrived.due == 240
    assert slow(at_a_rate.arrived.whole) >= 75 > 2 * MOST_SLOW
    assert (at_a_rate.longest_wait_ns or 0) > 400 * NS_PER_MS


@pytest.mark.thorough
def test_a_closed_loop_sees_the_same_once_for_each_process(tmp_path: Path) -> None:
    assert 1 <= slow(measured(CASE, tmp_path).latency["replace"]) <= MOST_SLOW


def test_the_service_time_of_an_open_loop_hides_it_too(at_a_rate: Trial) -> None:
    assert 1 <= slow(at_a_rate.latency["replace"]) <= MOST_SLOW


def test_what_was_acknowledged_at_a_rate_is_proved(at_a_rate: Trial) -> None:
    assert at_a_rate.error is None
    assert at_a_rate.verdict.status == "ok"
    checked = {check.name: check.checked for check in at_a_rate.verdict.checks}
    assert checked["last write"] == CASE.spec.key_space
