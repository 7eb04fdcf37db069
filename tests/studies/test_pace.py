"""The progress of a sweep: its label, note and remaining time."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sqlstress.engine.study import Progress
from sqlstress.experiments.kv.experiment import PASSES
from sqlstress.plan import cases_of
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.studies.sweep import (
    LONGER_S,
    SweepProgress,
    best_so_far,
    expected_trial_s,
    longer_turn,
    plan_turns,
)
from tests.analysis.hand_made import run, trial
from tests.studies.made_up import Watching

CASES = (Case(concurrency=1), Case(concurrency=16, buckets=20))


class Going(Watching):
    """A pace, its clock, and the progress that it reported."""

    def __init__(self, cases: tuple[Case, ...] = CASES) -> None:
        super().__init__()
        self.now = 100.0
        self.heard: list[str] = []
        self.pace = SweepProgress(cases, [*plan_turns(cases), *longer_turn(cases)], self, lambda: self.now)

    def phase(self, name: str) -> None:
        self.heard.append(name)

    def waiting(self) -> None:
        self.heard.append("waiting")

    def tick(self, operations: int) -> None:
        self.heard.append(f"{operations} done")

    @property
    def last(self) -> Progress:
        return self.told[-1]


def test_longer_window_is_separate_from_passes_and_its_time_counts() -> None:
    case = cases_of({"concurrency": 4, "repeat": PASSES})[0]
    going = Going((case,))
    going.now += PASSES * expected_trial_s(case)  # the passes took the expected time
    going.pace.begin(PASSES)
    going.pace.phase("measuring")
    assert going.last.label == "[longer] 1 bucket, 4 processes"
    assert going.pace.left_s() == pytest.approx(expected_trial_s(replace(case, duration_s=LONGER_S)))


@pytest.fixture
def going() -> Iterator[Going]:
    going = Going()
    yield going
    assert all(progress.total == 1 for progress in going.told)


def test_label_has_the_number_of_the_case(going: Going) -> None:
    going.pace.begin(1)
    going.pace.phase("preparing")
    assert (going.last.label, going.last.note) == ("[2/2] 20 buckets, 16 processes", "preparing")

    assert going.last.label_width == len("[2/2] 20 buckets, 16 processes")
    assert going.last.note_width == len("1,234,567 TPS")
    several = Going(tuple(replace(case, repeat=3) for case in CASES))
    several.pace.begin(4)
    several.pace.phase("preparing")
    assert several.last.label == "[pass 3/3] 1 bucket, 1 process"


def test_current_tps_follows_the_last_second(going: Going) -> None:
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


def test_remaining_time_runs_down_during_a_case(going: Going) -> None:
    whole = going.pace.left_s()
    assert whole == pytest.approx(sum(map(expected_trial_s, CASES)))
    going.now += 0.5
    assert going.pace.left_s() == pytest.approx(whole - 0.5)


def test_overrun_of_a_case_does_not_change_the_others_time(going: Going) -> None:
    going.now += 500.0
    assert going.pace.left_s() == pytest.approx(expected_trial_s(CASES[1]))


def test_finished_cases_correct_the_expected_time_of_others(going: Going) -> None:
    going.pace.phase("measuring")
    going.now += 3 * expected_trial_s(CASES[0])
    going.pace.tick(0)
    going.pace.begin(1)
    going.pace.phase("preparing")
    assert going.last.left_s == pytest.approx(3 * expected_trial_s(CASES[1]))


def test_progress_stays_when_expected_times_grow(going: Going) -> None:
    going.now += 0.9 * expected_trial_s(CASES[0])
    going.pace.waiting()
    before = going.last.done
    going.now += 10 * expected_trial_s(CASES[0])
    going.pace.begin(1)
    going.pace.waiting()
    assert going.last.done >= before


def test_remaining_time_runs_down_while_waiting(going: Going) -> None:
    going.pace.phase("verifying")
    left = going.last.left_s
    going.now += 0.5
    going.pace.waiting()
    assert going.last.note == "verifying"
    assert going.last.left_s == pytest.approx(left - 0.5)
    going.pace.tick(7)
    assert going.heard == ["verifying", "waiting", "7 done"]


def test_best_result_so_far_replaces_the_current_note(going: Going) -> None:
    going.pace.best("best so far 5 TPS")
    going.pace.begin(1)
    going.pace.phase("preparing")
    going.pace.tick(7)
    assert going.last.note == "best so far 5 TPS"


def test_best_so_far_follows_from_the_passes() -> None:
    def measured(processes: int, *rates: float) -> Run:
        return run(1, processes, *(trial(tps=rate) for rate in rates))

    runs = measured(1, 10, 11, 10), measured(2, 200, 210, 205), measured(4, 202, 208, 204)
    assert best_so_far(runs) == "best so far 205 TPS ±6% with 2 and 4 processes on 1 bucket"
    assert best_so_far([measured(1, 10, 11, 10), measured(2, 200, 210)]) == ""  # too few passes
    assert best_so_far(runs[:1]) == ""
    assert best_so_far([]) == ""


# The estimated time of a case.


def test_expected_time_grows_with_the_work() -> None:
    case = Case()
    for change in ({"duration_s": 9.0}, {"warmup_s": 9.0}, {"concurrency": 8}, {"buckets": 9}):
        assert expected_trial_s(replace(case, **change)) > expected_trial_s(case)
    assert expected_trial_s(Case(ops=2000)) > expected_trial_s(Case(ops=1000))
    assert expected_trial_s(Case(workload="classic", ops=5000)) < 10
