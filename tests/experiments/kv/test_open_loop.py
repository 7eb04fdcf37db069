"""kv at a rate, with real processes and a real lock: what a closed loop hides."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.observer import Nobody
from sqlstress.experiments.kv.spec import Load
from sqlstress.report import Trial
from sqlstress.report.arrivals import Arrivals
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_MS
from tests.engine.benches import bench

HELD_S = 0.5
RATE = 200


class Holder(Nobody):
    """Holds the write lock of the only database for a while, in the middle of the window."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.folder, self.after_s = folder, 0.25 * case.duration_s + case.warmup_s
        self.thread = threading.Thread(target=self._hold)
        self.held = False

    def phase(self, name: str) -> None:
        if name == "measuring" and not self.thread.ident:
            self.thread.start()

    def _hold(self) -> None:
        (database,) = self.folder.rglob("*.db")
        time.sleep(self.after_s)
        with closing(sqlite3.connect(database, isolation_level=None, timeout=5)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(HELD_S)
            connection.execute("COMMIT")
        self.held = True


CASE = Case(concurrency=2, duration_s=1.2, warmup_s=0.2, spec=Load(read_ratio=0.0, key_space=1000), seed=3)


def measured(case: Case, folder: Path) -> Trial:
    """Return a trial meanwhile of which the lock was held."""
    holder = Holder(folder, case)
    trial = bench(folder, observer=holder).runner._flawless(case, 0)
    holder.thread.join()
    assert holder.held
    return trial


@pytest.fixture(scope="module")
def at_a_rate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    case = replace(CASE, arrivals=Arrivals(RATE, "even"))
    yield measured(case, tmp_path_factory.mktemp("open"))


def slower_than(trial: Trial, ms: float) -> float:
    """Return the share of the operations that took longer, from the moment they were due if they were."""
    latency = trial.arrived.whole if trial.arrived else trial.latency["replace"]
    assert latency
    from sqlstress.statistics.histogram import bucket_floor

    slow = sum(number for index, number in latency.buckets if bucket_floor(index) > ms * NS_PER_MS)
    return slow / latency.count


def test_a_lock_that_is_held_for_half_a_second_meets_all_who_come_meanwhile(at_a_rate: Trial) -> None:
    # 100 of 240 came while it was held; those of the last 100 ms waited less than that.
    assert slower_than(at_a_rate, 100) > 0.25
    assert at_a_rate.arrived and at_a_rate.arrived.due == 240
    assert (at_a_rate.longest_wait_ns or 0) > 400 * NS_PER_MS


def test_a_closed_loop_sees_the_same_once_for_each_process(tmp_path: Path) -> None:
    trial = measured(CASE, tmp_path)
    slow = round(slower_than(trial, 400) * trial.latency["replace"].count)
    assert 1 <= slow <= CASE.concurrency


def test_the_service_time_of_an_open_loop_hides_it_too(at_a_rate: Trial) -> None:
    service = at_a_rate.latency["replace"]
    slow = replace(at_a_rate, arrived=None)
    assert round(slower_than(slow, 400) * service.count) <= CASE.concurrency


def test_what_was_acknowledged_at_a_rate_is_proved(at_a_rate: Trial) -> None:
    assert at_a_rate.error is None
    assert at_a_rate.verdict.status == "ok"
    checked = {check.name: check.checked for check in at_a_rate.verdict.checks}
    assert checked["last write"] == CASE.spec.key_space
