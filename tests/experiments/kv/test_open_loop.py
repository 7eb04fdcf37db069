"""kv at a rate, with real processes and a real lock: delays that a closed loop hides."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.experiments.kv.spec import Load
from sqlstress.report import Trial
from sqlstress.report.case import Arrivals, Case
from sqlstress.statistics.units import NS_PER_MS
from tests.experiments.holding import SLOW_MS, measured, slow

RATE = 200


CASE = Case(concurrency=2, duration_s=1.2, warmup_s=0.2, spec=Load(read_ratio=0.0, key_space=1000), seed=3)


@pytest.fixture(scope="module")
def open_loop_trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    case = replace(CASE, arrivals=Arrivals(RATE, "even"))
    yield measured(case, tmp_path_factory.mktemp("open"))


MOST_SLOW = round(CASE.concurrency * (CASE.warmup_s + CASE.duration_s) * 1000 / SLOW_MS)
"""Number of operations slower than SLOW_MS that the processes can do one after the other, on any machine."""


@pytest.mark.thorough
def test_lock_of_half_a_second_delays_all_operations_due_in_it(open_loop_trial: Trial) -> None:
    # 100 of 240 operations were due while it was held; those of the last 100 ms waited less than SLOW_MS.
    assert open_loop_trial.arrived and open_loop_trial.arrived.due == 240
    assert slow(open_loop_trial.arrived.all_kinds) >= 75 > 2 * MOST_SLOW
    assert (open_loop_trial.longest_wait_ns or 0) > 400 * NS_PER_MS


@pytest.mark.thorough
def test_closed_loop_is_delayed_once_per_process(tmp_path: Path) -> None:
    # If other programs used the processors all the time, no process may have met the lock.
    tries = (slow(measured(CASE, tmp_path).latency["replace"]) for _ in range(3))
    assert 1 <= next(filter(None, tries), 0) <= MOST_SLOW


@pytest.mark.thorough
def test_service_time_of_an_open_loop_hides_the_delay(open_loop_trial: Trial) -> None:
    assert 1 <= slow(open_loop_trial.latency["replace"]) <= MOST_SLOW


def test_acknowledged_writes_at_a_rate_are_proved(open_loop_trial: Trial) -> None:
    assert open_loop_trial.error is None
    assert open_loop_trial.verdict.status == "ok"
    checked = {check.name: check.checked for check in open_loop_trial.verdict.checks}
    assert checked["last write"] == CASE.spec.key_space
