"""Tests of how far a sweep has come: what is told of it, and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sqlstress.engine.study import Progress
from sqlstress.experiments.classics.methods import Method
from sqlstress.plan import cases_of
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.studies.sweep import LONGER_S, Pace, best_so_far, expected_s, longer_turn, turns
from tests.analysis.hand_made import run, trial
from tests.studies.made_up import Watching

CASES = (Case(concurrency=1), Case(concurrency=16, buckets=20))


class Going(Watching):
    """A pace, its clock, and what it told."""

    def __init__(self, cases: tuple[Case, ...] = CASES) -> None:
        super().__init__()
        self.now = 100.0
        self.heard: list[str] = []
        self.pace = Pace(cases, [*turns(cases), *longer_turn(cases)], self, lambda: self.now)

    def phase(self, name: str) -> None:
        self.heard.append(name)

    def waiting(self) -> None:
        self.heard.append("waiting")

    def tick(self, operations: int) -> None:
        self.heard.append(f"{operations} done")

    @property
    def last(self) -> Progress:
        return self.told[-1]


def test_the_longer_window_is_none_of_the_passes_and_its_time_counts() -> None:
    case = cases_of({"concurrency": 4, "repeat": 10})[0]
    going = Going((case,))
    going.now += 10 * expected_s(case)  # the passes took as long as it was expected
    going.pace.begin(10)
    going.pace.phase("measuring")
    assert going.last.label == "[waits] 1 bucket, 4 processes"
    assert going.pace.left_s() == pytest.approx(expected_s(replace(case, duration_s=LONGER_S)))


@pytest.fixture
def going() -> Iterator[Going]:
    going = Going()
    yield going
    assert all(progress.total == 1 for progress in going.told)


def test_a_case_is_named_with_its_number(going: Going) -> None:
    going.pace.begin(1)
    going.pace.phase("preparing")
    assert (going.last.label, going.last.note) == ("[2/2] 20 buckets, 16 processes", "preparing")

    assert going.last.label_width == len("[2/2] 20 buckets, 16 processes")
    assert going.last.note_width == len("1,234,567 TPS")
    several = Going(tuple(replace(case, repeat=3) for case in CASES))
    several.pace.begin(4)
    several.pace.phase("preparing")
    assert several.last.label == "[pass 3/3] 1 bucket, 1 process"


def test_the_tps_of_the_moment_follows_what_was_done_in_the_last_second(going: Going) -> None:
    going.pace.phase("measuring")
    for step in range(60):
        going.pace.tick(step * 100 if step < 30 else 3000 + (step - 30) * 50)
        going.now += 0.1
    assert going.last.note == "500 TPS"
    idle, pairs = Going(), Going((Case(workload="classic", ops=5000),))
    for watched, done, note in ((idle, 0, "measuring"), (pairs, 2000, "1,000 TPS")):
        watched.pace.phase("measuring")
        watched.pace.tick(0)
        watched.now += 1.0
        watched.pace.tick(done)
        assert watched.last.note == note


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
    going.pace.tick(7)
    assert going.heard == ["verifying", "waiting", "7 done"]


def test_the_answer_that_forms_is_told_instead_of_the_moment(going: Going) -> None:
    going.pace.best("best so far 5 TPS")
    going.pace.begin(1)
    going.pace.phase("preparing")
    going.pace.tick(7)
    assert going.last.note == "best so far 5 TPS"


def test_the_best_so_far_is_what_the_passes_tell_by_now() -> None:
    def measured(processes: int, *rates: float) -> Run:
        return run(1, processes, *(trial(tps=rate) for rate in rates))

    runs = measured(1, 10, 11, 10), measured(2, 200, 210, 205), measured(4, 202, 208, 204)
    assert best_so_far(runs) == "best so far 205 TPS ±6% with 2 and 4 processes on 1 bucket"
    assert best_so_far([measured(1, 10, 11, 10), measured(2, 200, 210)]) == ""  # too few passes
    assert best_so_far(runs[:1]) == ""
    assert best_so_far([]) == ""


# The guess of how long a case takes.


def test_a_journal_a_transaction_and_a_time_out_change_how_long_cycles_are_expected_to_take() -> None:
    usual = delete, delete_tx, wal, wal_tx, _ = [*map(expected_s, cases_of({}, "cycles"))]
    assert 2 < sum(usual) < 15
    assert delete > wal > wal_tx
    assert delete > delete_tx
    (short,) = cases_of({"settings": "delete", "cycles": 100_000, "timeout": "2s"}, "cycles")
    assert expected_s(short) == pytest.approx(2, abs=1)


def test_more_work_is_expected_to_take_longer() -> None:
    case = Case()
    for change in ({"duration_s": 9.0}, {"warmup_s": 9.0}, {"concurrency": 8}, {"buckets": 9}):
        assert expected_s(replace(case, **change)) > expected_s(case)
    assert expected_s(Case(ops=2000)) > expected_s(Case(ops=1000))
    assert expected_s(Case(workload="classic", ops=5000)) < 10


def test_the_guess_of_a_method_knows_what_a_row_costs_and_where_its_time_out_is() -> None:
    def cell(name: str, transaction: bool = False, scale: int = 1000, timeout_s: float = 60.0) -> Case:
        return Case(workload="methods", spec=Method("insert", name, transaction, scale, timeout_s))

    commits, rows, bulk = (expected_s(each) for each in (cell("1b1"), cell("1b1", True), cell("BLK")))
    assert commits > rows > bulk
    assert expected_s(cell("BLK", scale=100_000)) > bulk
    assert expected_s(cell("1b1", timeout_s=1.0)) < commits
