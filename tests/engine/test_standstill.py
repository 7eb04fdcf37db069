"""Tests of how it is noticed that nothing ran."""

from __future__ import annotations

from sqlstress.engine.trial import NOTICED_S, Standstill, seconds_asleep


class Clock:
    """Seconds that pass only when somebody says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def looked(*pauses: float, slept: float = 0.0) -> float:
    """Return what is noticed of looks with these pauses before them, and of sleep that another clock saw."""
    clock, asleep = Clock(), Clock()
    standstill = Standstill(clock, asleep)
    for pause in pauses:
        clock.now += pause
        standstill.look()
    asleep.now += slept
    return standstill.seconds()


def test_looks_that_come_in_time_notice_nothing() -> None:
    assert looked(*[0.1] * 600) == 0.0


def test_a_busy_machine_is_not_taken_for_one_that_slept() -> None:
    assert looked(0.1, NOTICED_S, 0.1) == 0.0


def test_a_look_that_comes_late_says_how_long_nothing_ran() -> None:
    assert looked(0.1, 2.0, 0.1, 3.5, 0.1) == 3.5


def test_a_sleep_that_the_clock_did_not_count_is_noticed() -> None:
    assert looked(0.1, 0.1, slept=30.0) == 30.0


def test_a_machine_that_is_awake_has_not_slept_meanwhile() -> None:
    before = seconds_asleep()
    assert abs(seconds_asleep() - before) < 0.1
