"""When the processes beside the workers do something, and which of it counts."""

from __future__ import annotations

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.experiments.kv.companions import Timing
from sqlstress.experiments.kv.experiment import Checkpointing, Load
from sqlstress.report.case import Case
from tests.experiments.kv.beside.conftest import Time

MS = 1_000_000
CASE = Case(spec=Load(checkpointing=Checkpointing("passive", 0.05)))


def half_a_second_from(opens_ns: int) -> Window:
    return Window(0, opens_ns, opens_ns + 500 * MS)


def test_rounds_have_the_interval_between_them_and_end_when_the_trial_does(moments: Time) -> None:
    begun = []
    for _ in Timing(CASE, half_a_second_from(0), moments.over(300 * MS)).rounds():
        begun.append(moments.now_ns // MS)
        moments.now_ns += 10 * MS
    assert begun == [0, 60, 120, 180, 240]
    assert moments.now_ns == 300 * MS


def test_a_trial_that_is_over_has_no_round(moments: Time) -> None:
    assert list(Timing(CASE, half_a_second_from(0), moments.over(0)).rounds()) == []


def test_the_window_closes_the_last_round(moments: Time) -> None:
    begun = [moments.now_ns // MS for _ in Timing(CASE, half_a_second_from(100 * MS), lambda: False).rounds()]
    assert begun == list(range(0, 600, 50))
    assert moments.now_ns == 600 * MS


def test_the_end_is_noticed_soon_also_in_a_long_pause(moments: Time) -> None:
    case = Case(spec=Load(checkpointing=Checkpointing("passive", 3600.0)))
    window = Window(0, 0, 9000 * MS)
    assert len(list(Timing(case, window, moments.over(100 * MS)).rounds())) == 1
    assert moments.now_ns == 100 * MS
    assert max(moments.sleeps) <= 0.02


def test_only_what_lies_within_the_window_has_a_time() -> None:
    timing = Timing(CASE, half_a_second_from(1000 * MS), lambda: False)
    assert [timing.within(at * MS) for at in (999, 1000, 1499, 1500)] == [None, 0, 499 * MS, None]


def test_a_fixed_number_of_operations_has_no_end_that_is_known_before() -> None:
    timing = Timing(CASE, Window(0, 1000 * MS, FOREVER_NS), lambda: False)
    assert [timing.within(at * MS) for at in (999, 1000, 10**6)] == [None, 0, (10**6 - 1000) * MS]
