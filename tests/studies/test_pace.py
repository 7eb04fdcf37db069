"""Tests of how far a sweep has come: what is told of it, and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sqlstress.engine.study import Progress
from sqlstress.report.case import Case
from sqlstress.studies.sweep import Pace, expected_s, turns
from tests.studies.watching import Watching

CASES = (Case(concurrency=1), Case(concurrency=16, buckets=20))


class Going(Watching):
    """A pace, its clock, and what it told."""

    def __init__(self, cases: tuple[Case, ...] = CASES) -> None:
        super().__init__()
        self.now = 100.0
        self.heard: list[str] = []
        self.pace = Pace(cases, list(turns(cases)), self, lambda: self.now)

    def phase(self, name: str) -> None:
        self.heard.append(name)

    def waiting(self) -> None:
        self.heard.append("waiting")

    def tick(self, operations: int) -> None:
        self.heard.append(f"{operations} done")

    @property
    def last(self) -> Progress:
        return self.told[-1]


@pytest.fixture
def going() -> Iterator[Going]:
    going = Going()
    yield going
    assert all(progress.total == 1 for progress in going.told)


def test_a_case_is_named_with_its_number(going: Going) -> None:
    going.pace.begin(1)
    going.pace.phase("preparing")
    assert (going.last.label, going.last.note) == ("[2/2] 20 files, 16 processes", "preparing")


def test_of_several_passes_it_is_told_which_one_it_is() -> None:
    going = Going(tuple(replace(case, repeat=3) for case in CASES))
    going.pace.begin(4)
    going.pace.phase("preparing")
    assert going.last.label == "[pass 3/3] 1 file, 1 process"


def test_the_widths_that_are_to_come_are_known_from_the_beginning(going: Going) -> None:
    going.pace.phase("starting")
    assert going.last.label_width == len("[2/2] 20 files, 16 processes")
    assert going.last.note_width == len("1,234,567 TPS")


def test_the_tps_of_the_moment_follows_what_was_done_in_the_last_second(going: Going) -> None:
    going.pace.phase("measuring")
    for step in range(60):
        going.pace.tick(step * 100 if step < 30 else 3000 + (step - 30) * 50)
        going.now += 0.1
    assert going.last.note == "500 TPS"


def test_before_anything_was_done_the_phase_is_told(going: Going) -> None:
    going.pace.phase("measuring")
    going.pace.tick(0)
    going.now += 0.1
    going.pace.tick(0)
    assert going.last.note == "measuring"


def test_the_published_script_counts_pairs() -> None:
    going = Going((Case(workload="classic", ops=5000),))
    going.pace.tick(0)
    going.now += 1.0
    going.pace.tick(2000)
    assert going.last.note == "1,000 TPS"


def test_time_that_is_left_runs_down_while_a_case_is_measured(going: Going) -> None:
    whole = going.pace.left_s()
    assert whole == pytest.approx(sum(map(expected_s, CASES)))
    going.now += 0.5
    assert going.pace.left_s() == pytest.approx(whole - 0.5)


def test_a_case_that_takes_longer_than_expected_leaves_the_others_time_alone(going: Going) -> None:
    going.now += 500.0
    assert going.pace.left_s() == pytest.approx(expected_s(CASES[1]))


def test_finished_cases_teach_how_long_the_others_take(going: Going) -> None:
    going.pace.phase("measuring")
    going.now += 3 * expected_s(CASES[0])
    going.pace.tick(0)
    going.pace.begin(1)
    going.pace.phase("preparing")
    assert going.last.left_s == pytest.approx(3 * expected_s(CASES[1]))


def test_what_was_said_to_be_done_stays_so_when_the_others_are_expected_to_take_longer(going: Going) -> None:
    going.now += 0.9 * expected_s(CASES[0])
    going.pace.waiting()
    before = going.last.done
    going.now += 10 * expected_s(CASES[0])
    going.pace.begin(1)
    going.pace.waiting()
    assert going.last.done >= before


def test_while_something_is_waited_for_the_time_runs_on(going: Going) -> None:
    going.pace.phase("verifying")
    left = going.last.left_s
    going.now += 0.5
    going.pace.waiting()
    assert going.last.note == "verifying"
    assert going.last.left_s == pytest.approx(left - 0.5)


def test_what_is_told_of_trials_is_handed_on(going: Going) -> None:
    going.pace.phase("starting")
    going.pace.waiting()
    going.pace.tick(7)
    assert going.heard == ["starting", "waiting", "7 done"]
