"""kv at a rate, with real processes and a real lock: what a closed loop hides."""

from __future__ import annotations

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
def at_a_rate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    case = replace(CASE, arrivals=Arrivals(RATE, "even"))
    yield measured(case, tmp_path_factory.mktemp("open"))


MOST_SLOW = round(CASE.concurrency * (CASE.warmup_s + CASE.duration_s) * 1000 / SLOW_MS)
"""For so many operations slower than that processes have time, one after the other, on any machine."""


@pytest.mark.thorough
def test_a_lock_that_is_held_for_half_a_second_meets_all_who_come_meanwhile(at_a_rate: Trial) -> None:
    # 100 of 240 came while it was held, of which those of the last 100 ms waited less than that.
    assert at_a_rate.arrived and at_a_rate.arrived.due == 240
    assert slow(at_a_rate.arrived.whole) >= 75 > 2 * MOST_SLOW
    assert (at_a_rate.longest_wait_ns or 0) > 400 * NS_PER_MS


@pytest.mark.thorough
def test_a_closed_loop_sees_the_same_once_for_each_process(tmp_path: Path) -> None:
    # Where others took the processors all the while, nobody may have met the lock.
    tries = (slow(measured(CASE, tmp_path).latency["replace"]) for _ in range(3))
    assert 1 <= next(filter(None, tries), 0) <= MOST_SLOW


@pytest.mark.thorough
def test_the_service_time_of_an_open_loop_hides_it_too(at_a_rate: Trial) -> None:
    assert 1 <= slow(at_a_rate.latency["replace"]) <= MOST_SLOW


def test_what_was_acknowledged_at_a_rate_is_proved(at_a_rate: Trial) -> None:
    assert at_a_rate.error is None
    assert at_a_rate.verdict.status == "ok"
    checked = {check.name: check.checked for check in at_a_rate.verdict.checks}
    assert checked["last write"] == CASE.spec.key_space
