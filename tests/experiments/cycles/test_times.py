"""What each cycle cost."""

from __future__ import annotations

from sqlstress.engine.loop import back_to_back
from sqlstress.engine.protocols import Stamps
from sqlstress.experiments.cycles.moves import (
    BEGIN,
    BEGIN_AND_COMMIT,
    CHECKPOINT,
    COMMIT,
    DELETE,
    INSERT,
    STATEMENTS,
)
from sqlstress.experiments.cycles.worker import CycleTimes


def test_statements_are_counted_apart_from_begin_and_commit() -> None:
    times = CycleTimes()
    times.add([BEGIN, INSERT, DELETE, INSERT, COMMIT], back_to_back(100, [101, 111, 131, 161, 561]))
    times.end_cycle()
    assert times.series() == [(STATEMENTS, "ns", [60]), (BEGIN_AND_COMMIT, "ns", [401])]


def test_idle_time_between_steps_is_in_no_cycle() -> None:
    times = CycleTimes()
    times.add([BEGIN, INSERT, COMMIT], Stamps([100, 700, 1500], [101, 710, 1900]))
    times.end_cycle()
    assert times.series() == [(STATEMENTS, "ns", [10]), (BEGIN_AND_COMMIT, "ns", [401])]


def test_a_cycle_may_come_in_several_chunks() -> None:
    times = CycleTimes()
    times.add([INSERT, INSERT], back_to_back(0, [1, 3]))
    times.add([DELETE], back_to_back(1000, [1007]))
    times.end_cycle()
    times.add([INSERT], back_to_back(2000, [2001]))
    times.end_cycle()
    assert times.cycles == 2
    assert times.series() == [(STATEMENTS, "ns", [10, 1])]


def test_neither_a_cycle_that_has_not_ended_nor_the_closing_checkpoint_is_in_any_cycle() -> None:
    times = CycleTimes()
    times.add([INSERT], back_to_back(0, [1]))
    times.end_cycle()
    times.add([CHECKPOINT], back_to_back(5, [5000]))
    times.add([INSERT], back_to_back(6000, [6001]))
    assert times.cycles == 1
    assert times.series() == [(STATEMENTS, "ns", [1])]
