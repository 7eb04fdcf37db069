"""What each cycle cost."""

from __future__ import annotations

from sqlstress.experiments.cycles.moves import BEGIN, CHECKPOINT, COMMIT, DELETE, INSERT
from sqlstress.experiments.cycles.times import CycleTimes
from sqlstress.statistics.series_names import BEGIN_AND_COMMIT, STATEMENTS


def test_statements_are_counted_apart_from_begin_and_commit() -> None:
    times = CycleTimes()
    times.add([BEGIN, INSERT, DELETE, INSERT, COMMIT], [100, 101, 111, 131, 161, 561])
    times.end_cycle()
    assert times.series() == [(STATEMENTS, "ns", [60]), (BEGIN_AND_COMMIT, "ns", [401])]


def test_a_cycle_may_come_in_several_chunks() -> None:
    times = CycleTimes()
    times.add([INSERT, INSERT], [0, 1, 3])
    times.add([DELETE], [1000, 1007])
    times.end_cycle()
    times.add([INSERT], [2000, 2001])
    times.end_cycle()
    assert times.cycles == 2
    assert times.series() == [(STATEMENTS, "ns", [10, 1])]


def test_neither_a_cycle_that_has_not_ended_nor_the_closing_checkpoint_is_in_any_cycle() -> None:
    times = CycleTimes()
    times.add([INSERT], [0, 1])
    times.end_cycle()
    times.add([CHECKPOINT], [5, 5000])
    times.add([INSERT], [6000, 6001])
    assert times.cycles == 1
    assert times.series() == [(STATEMENTS, "ns", [1])]
