"""A sweep: the order of its trials, its saved reports, and its failures."""

import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.analysis.advice import missing
from sqlstress.engine.pool import HUNG, WorkerFailure
from sqlstress.engine.trial import TrialRunner
from sqlstress.errors import EnvironmentFailure, Interrupted, SqlstressError, UsageError
from sqlstress.experiments.app.spec import SITUATIONS
from sqlstress.plan import cases_of as cases_asked_for
from sqlstress.report import LEFT_OUT, Check, Report, Trial, Verdict, WorkerResult
from sqlstress.report.case import Case, Settings
from sqlstress.studies import sweep
from sqlstress.studies.sweep import LONGER_S, Sweep, Turn, longer_turn, plan_turns, run_on_bench
from sqlstress.system.interrupt import Pulse, StopSignals
from tests.engine.benches import BLANK, bench
from tests.example_report import example_report

TRIAL = example_report().runs[0].trials[0]
ONE, TWO, FOUR = (Case(concurrency=processes) for processes in (1, 2, 4))

Script = Callable[[Case, int], Trial]
Measure = Callable[..., tuple[Report, list[Report]]]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Measure:
    """Return a function that measures cases by a script, which returns trials or raises."""

    def cost(case: Case, carry: object, pulse: Pulse) -> float:
        return 100.0 * case.concurrency

    def measure(
        script: Script, *cases: Case, harness: Any = cost, keep_going: bool = False
    ) -> tuple[Report, list[Report]]:
        monkeypatch.setattr(TrialRunner, "run", lambda runner, case, index: script(case, index))
        monkeypatch.setattr(sweep, "harness_ns", harness)
        saved: list[Report] = []
        with StopSignals() as signals:
            report = run_on_bench(
                Sweep(cases, keep_going), bench(tmp_path, signals=signals), saved.append, lambda: 0.0
            )
        return report, saved

    return measure


def always(_case: Case, _index: int) -> Trial:
    return TRIAL


def raising_at(processes: int, error: Exception, trial: int = 0) -> Script:
    def script(case: Case, index: int) -> Trial:
        if case.concurrency == processes and index == trial:
            raise error
        return TRIAL

    return script


def test_interruption_keeps_the_finished_trials_of_its_case(scripted: Measure) -> None:
    script = raising_at(2, Interrupted("stopped by SIGINT"), trial=2)
    report, saved = scripted(script, Case(concurrency=2, repeat=3), FOUR)
    assert [len(run.trials) for run in report.runs] == [2, 1]
    assert saved[-1] == report


def test_passes_go_over_all_cases_forwards_and_backwards(scripted: Measure) -> None:
    order: list[tuple[int, int]] = []

    def script(case: Case, index: int) -> Trial:
        order.append((index, case.concurrency))
        return replace(TRIAL, index=index)

    report, saved = scripted(script, *(Case(concurrency=processes, repeat=2) for processes in (1, 2, 3)))
    assert order == [(0, 1), (0, 2), (0, 3), (1, 3), (1, 2), (1, 1)]
    assert [[trial.index for trial in run.trials] for run in report.runs] == [[0, 1]] * 3
    assert [run.harness_ns for run in report.runs] == [
        100.0
    ] * 3  # for one process, regardless of their number
    assert len(saved) == 6


def test_failed_case_is_left_out_of_later_passes(scripted: Measure) -> None:
    script = raising_at(2, EnvironmentFailure("no space"), trial=0)
    report, _ = scripted(script, *(Case(concurrency=processes, repeat=3) for processes in (1, 2)))
    assert [(len(run.trials), run.error) for run in report.runs] == [(3, None), (0, "no space")]


@pytest.mark.skipif(sys.platform != "linux", reason="what was measured before is the call of Linux")
def test_sync_cost_is_measured_again_after_the_sweep(scripted: Measure) -> None:
    report, _ = scripted(always, ONE)
    after = report.environment.sync_after
    assert after and after.primitive == BLANK.environment.sync.primitive and after.samples >= 8  # type: ignore[union-attr]


@pytest.mark.skipif(sys.platform != "linux", reason="the first cost is that of a call of Linux")
@pytest.mark.parametrize("factor", [1, 100])
def test_changed_sync_is_sampled_again(
    scripted: Measure, monkeypatch: pytest.MonkeyPatch, factor: int
) -> None:
    before = BLANK.environment.sync
    assert before
    slower = replace(before, overwrite_p50_ns=before.overwrite_p50_ns * factor)
    costs = iter([before, slower, slower])
    monkeypatch.setattr(sweep, "measure", lambda *_, **__: next(costs))
    report, _ = scripted(always, ONE)
    environment = report.environment
    assert (environment.sync_again, environment.sync_after) == (before, slower)
    assert environment.sync_after_again == (None if factor == 1 else slower)


def test_signal_during_the_last_trial_interrupts_and_keeps_it(scripted: Measure) -> None:
    def script(case: Case, index: int) -> Trial:
        signal.raise_signal(signal.SIGTERM)
        return TRIAL

    report, saved = scripted(script, ONE)
    assert report.interrupted
    assert [len(run.trials) for run in report.runs] == [1]
    assert saved == [report]


def test_signal_during_the_harness_measurement_starts_no_trial(scripted: Measure) -> None:
    def struck(case: Case, carry: object, pulse: Pulse) -> float:
        signal.raise_signal(signal.SIGTERM)
        pulse()
        return 1.0

    report, saved = scripted(always, ONE, harness=struck)
    assert (report.runs, report.interrupted, saved) == ((), True, [])


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UsageError("PRAGMA nonsense"), UsageError),
        (OSError(28, "No space left on device"), EnvironmentFailure),
    ],
)
def test_error_in_the_first_case_stops_the_sweep(
    scripted: Measure, error: Exception, expected: type[SqlstressError]
) -> None:
    with pytest.raises(expected) as caught:
        scripted(raising_at(1, error), ONE, TWO)
    assert "unexpected" not in str(caught.value)


@pytest.mark.parametrize("error", [EnvironmentFailure("no space"), WorkerFailure("no space")])
def test_error_in_a_later_case_is_kept_and_the_sweep_continues(scripted: Measure, error: Exception) -> None:
    report, saved = scripted(raising_at(2, error), ONE, TWO, FOUR)
    assert [(run.case, len(run.trials), run.error) for run in report.runs] == [
        (ONE, 1, None),
        (TWO, 0, "no space"),
        (FOUR, 1, None),
    ]
    assert len(saved) == 3


def test_worker_failure_or_invalid_trial_is_the_cases_error(scripted: Measure) -> None:
    killed = "worker 1 could not start: was killed by SIGKILL"
    report, _ = scripted(raising_at(1, WorkerFailure(killed)), ONE, TWO)
    assert [run.error for run in report.runs] == [killed, None]
    report, _ = scripted(lambda case, index: replace(TRIAL, error=killed), ONE)
    assert [(run.error, len(run.trials)) for run in report.runs] == [(killed, 1)]


def test_hung_case_is_not_repeated_in_a_second_pass(scripted: Measure) -> None:
    hung = WorkerResult(1, 0, 0, 1.0, error=f"{HUNG} within the time-out, and was ended")
    error = "worker 1 hung within the time-out, and was ended"
    measured = []

    def script(case: Case, index: int) -> Trial:
        measured.append((case.concurrency, index))
        return replace(TRIAL, workers=(hung,), error=error) if case.concurrency == 2 else TRIAL

    report, _ = scripted(script, replace(ONE, repeat=3), replace(TWO, repeat=3))
    assert sorted(measured) == [(1, 0), (1, 1), (1, 2), (2, 0)]
    assert [run.error for run in report.runs] == [None, error]


WRONG = replace(TRIAL, verdict=Verdict((Check("checks after the load", "failed", 1, 1, ("9930 instead",)),)))


def wrong_at_two(case: Case, _index: int) -> Trial:
    return WRONG if case.concurrency == 2 else TRIAL


def test_wrong_data_ends_the_sweep_and_lists_missing_cases(scripted: Measure) -> None:
    report, saved = scripted(wrong_at_two, *(replace(case, repeat=2) for case in (ONE, TWO, FOUR)))
    assert [(len(run.trials), run.skipped) for run in report.runs] == [(1, None), (1, None), (0, LEFT_OUT)]
    assert saved[-1] == report and not report.interrupted
    assert [(finding.code, finding.facts) for finding in missing(report)] == [
        ("stopped-at-wrong-data", {"trials": 2, "planned": 6, "left_out": "4 processes on 1 bucket"})
    ]


def test_wrong_data_of_the_last_case_leaves_out_the_later_passes(scripted: Measure) -> None:
    report, _ = scripted(wrong_at_two, ONE, replace(TWO, repeat=3))
    (finding,) = missing(report)
    assert (finding.facts["trials"], finding.facts["planned"], finding.facts["left_out"]) == (2, 4, None)


def test_sweep_with_keep_going_measures_all_cases(scripted: Measure) -> None:
    report, _ = scripted(wrong_at_two, ONE, TWO, FOUR, keep_going=True)
    assert [len(run.trials) for run in report.runs] == [1, 1, 1]
    assert missing(report) == ()


# The order of the trials: every case in every pass, and equal drift for all cases.


repeats = st.lists(st.integers(1, 6), min_size=1, max_size=12)


def cases_of(counts: list[int], seed: int = 0) -> list[Case]:
    return [Case(concurrency=place, repeat=count, seed=seed) for place, count in enumerate(counts, 1)]


@given(repeats, st.integers(0, 99))
def test_every_case_has_all_of_its_trials_in_ascending_passes(counts: list[int], seed: int) -> None:
    all_turns = list(plan_turns(cases_of(counts, seed)))
    assert sorted(all_turns) == [
        Turn(case, number) for case, count in enumerate(counts) for number in range(count)
    ]
    assert [turn.number for turn in all_turns] == sorted(turn.number for turn in all_turns)


def test_second_pass_reverses_the_first_and_later_ones_are_random() -> None:
    case_order = [turn.case for turn in plan_turns(cases_of([6] * 9, seed=3))]
    passes = [case_order[start : start + 9] for start in range(0, 54, 9)]
    assert passes[0] == list(range(9))
    assert passes[1] == passes[0][::-1]
    assert not any(passes[place + 1] == passes[place][::-1] for place in range(1, 5))
    assert len({tuple(cases_of_pass) for cases_of_pass in passes}) == 6
    assert case_order != [turn.case for turn in plan_turns(cases_of([6] * 9, seed=4))]


def test_linear_drift_is_equal_for_all_cases_in_two_passes() -> None:
    all_turns = list(plan_turns(cases_of([2] * 5)))
    mean_times = [
        fmean(position for position, turn in enumerate(all_turns) if turn.case == case) for case in range(5)
    ]
    assert len(set(mean_times)) == 1


def usual(processes: int, files: int = 1, **changes: Any) -> Case:
    """Return a case of kv with default options otherwise."""
    return replace(cases_asked_for({"concurrency": processes, "buckets": files})[0], **changes)


def test_most_contended_case_has_a_longer_window_after_the_passes(
    scripted: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [usual(processes, files) for files in (20, 1) for processes in (1, 4)]
    assert longer_turn(cases) == [Turn(3, cases[3].repeat, is_longer=True)]
    longer = replace(TRIAL, index=99)
    order: list[Case] = []

    def run_valid(runner: TrialRunner, case: Case, index: int) -> Trial:
        order.append(case)
        return longer

    monkeypatch.setattr(TrialRunner, "run_valid", run_valid)
    report, _ = scripted(always, *cases)
    assert order == [replace(cases[3], duration_s=LONGER_S)]
    assert [len(run.trials) for run in report.runs] == [cases[0].repeat] * 4
    assert [run.longer for run in report.runs] == [None] * 3 + [longer]
    longer = replace(TRIAL, error="worker 1 died", verdict=Verdict((Check("last write", "failed"),)))
    report, _ = scripted(always, *cases)
    assert (report.runs[3].error, report.runs[3].verdict.status) == ("worker 1 died", "failed")


@pytest.mark.parametrize(
    "case",
    [
        usual(1),
        usual(4, duration_s=2.0),
        usual(4, repeat=3),
        usual(4, ops=100),
        usual(4, driver="dry"),
        usual(4, settings=Settings(busy_timeout_ms=5000)),
        usual(4, spec=replace(usual(4).spec, read_ratio=1.0)),
        cases_asked_for({"concurrency": 4, "rate": 100})[0],
        cases_asked_for({}, "methods")[0],
    ],
    ids=["alone", "duration", "repeat", "ops", "no store", "usual time-out", "reads", "rate", "another"],
)
def test_custom_or_uncontended_case_has_no_longer_window(case: Case) -> None:
    assert not longer_turn([case])


def app(processes: int, **changes: Any) -> Case:
    """Return a case of app with default options otherwise."""
    options = {"file": "examples/app/bank.py", "concurrency": processes}
    return replace(cases_asked_for(options, "app")[0], **changes)


def test_only_a_default_case_of_app_with_several_processes_has_a_longer_window() -> None:
    cases = [app(1), app(4), app(2)]
    assert longer_turn(cases) == [Turn(1, cases[1].repeat, is_longer=True)]
    start = replace(app(4).spec, situation=SITUATIONS[0])
    at_rate = cases_asked_for({"file": "examples/app/bank.py", "concurrency": 4, "rate": 100}, "app")[0]
    other_windows = app(4, duration_s=0.4), app(4, repeat=2), app(4, ops=9)
    for case in (app(1), *other_windows, app(4, spec=start), at_rate):
        assert not longer_turn([case])


def test_published_script_is_measured_case_by_case() -> None:
    cases = [Case(workload="classic", ops=5, concurrency=processes, repeat=2) for processes in (1, 2)]
    assert [turn.case for turn in plan_turns(cases)] == [0, 0, 1, 1]
