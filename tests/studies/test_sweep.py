"""Tests of a sweep: what is saved when, and what stops it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine.failure import HUNG
from sqlstress.engine.pool import WorkerFailure
from sqlstress.engine.trial import TrialRunner
from sqlstress.errors import EnvironmentFailure, Interrupted, SqlstressError, UsageError
from sqlstress.report import Report, Trial, WorkerResult
from sqlstress.report.case import Case
from sqlstress.studies import sweep
from sqlstress.studies.sweep import Sweep, follow
from sqlstress.system.interrupt import Pulse, StopSignals
from tests.engine.benches import BLANK, bench
from tests.example_report import example_report

TRIAL = example_report().runs[0].trials[0]
ONE, TWO, FOUR = (Case(concurrency=processes) for processes in (1, 2, 4))

Script = Callable[[Case, int], Trial]
Measure = Callable[..., tuple[Report, list[Report]]]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Measure:
    """Measure cases whose trials come from a function, or raise."""

    def cost(case: Case, pulse: Pulse) -> float:
        return 100.0 * case.concurrency

    def measure(script: Script, *cases: Case, harness: Any = cost) -> tuple[Report, list[Report]]:
        monkeypatch.setattr(TrialRunner, "run", lambda runner, case, index: script(case, index))
        monkeypatch.setattr(sweep, "harness_ns", harness)
        saved: list[Report] = []
        with StopSignals() as signals:
            report = follow(Sweep(cases), bench(tmp_path, signals=signals), saved.append)
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


def test_the_report_is_saved_after_every_case(scripted: Measure) -> None:
    report, saved = scripted(always, ONE, TWO, FOUR)
    assert [len(each.runs) for each in saved] == [1, 2, 3]
    assert [run.case for run in report.runs] == [ONE, TWO, FOUR]
    assert saved[-1] == report
    assert (report.planned, report.interrupted) == (3, False)


def test_every_trial_of_a_case_is_kept_with_the_harness_cost(scripted: Measure) -> None:
    report, _ = scripted(always, Case(concurrency=3, repeat=4))
    assert len(report.runs[0].trials) == 4
    assert report.runs[0].harness_ns == 300.0


def test_an_interruption_keeps_the_finished_cases_and_saves_them(scripted: Measure) -> None:
    report, saved = scripted(raising_at(2, Interrupted("stopped by SIGINT")), ONE, TWO, FOUR)
    assert [run.case for run in report.runs] == [ONE]
    assert report.interrupted
    assert saved[-1] == report


def test_an_interruption_keeps_the_finished_trials_of_its_case(scripted: Measure) -> None:
    script = raising_at(2, Interrupted("stopped by SIGINT"), trial=2)
    report, saved = scripted(script, Case(concurrency=2, repeat=3), FOUR)
    assert [len(run.trials) for run in report.runs] == [2, 1]
    assert saved[-1] == report


def test_the_passes_go_over_all_cases_there_and_back(scripted: Measure) -> None:
    went: list[tuple[int, int]] = []

    def script(case: Case, index: int) -> Trial:
        went.append((index, case.concurrency))
        return replace(TRIAL, index=index)

    report, saved = scripted(script, *(Case(concurrency=processes, repeat=2) for processes in (1, 2, 3)))
    assert went == [(0, 1), (0, 2), (0, 3), (1, 3), (1, 2), (1, 1)]
    assert [[trial.index for trial in run.trials] for run in report.runs] == [[0, 1]] * 3
    assert len(saved) == 6


def test_a_case_that_failed_is_left_out_of_the_later_passes(scripted: Measure) -> None:
    script = raising_at(2, EnvironmentFailure("no space"), trial=0)
    report, _ = scripted(script, *(Case(concurrency=processes, repeat=3) for processes in (1, 2)))
    assert [(len(run.trials), run.error) for run in report.runs] == [(3, None), (0, "no space")]


@pytest.mark.skipif(sys.platform != "linux", reason="what was measured before is the call of Linux")
def test_the_cost_of_a_sync_is_looked_at_again_when_all_is_measured(scripted: Measure) -> None:
    report, _ = scripted(always, ONE)
    after = report.environment.sync_after
    assert after and after.primitive == BLANK.environment.sync.primitive and after.samples >= 8  # type: ignore[union-attr]


def test_an_interruption_before_anything_was_measured_saves_nothing(scripted: Measure) -> None:
    report, saved = scripted(raising_at(1, Interrupted("stopped by SIGTERM")), ONE, TWO)
    assert (report.runs, report.interrupted, saved) == ((), True, [])


def test_a_signal_during_the_last_trial_is_answered_and_the_trial_kept(scripted: Measure) -> None:
    def script(case: Case, index: int) -> Trial:
        signal.raise_signal(signal.SIGTERM)
        return TRIAL

    report, saved = scripted(script, ONE)
    assert report.interrupted
    assert [len(run.trials) for run in report.runs] == [1]
    assert saved == [report]


def test_a_signal_while_the_harness_is_measured_begins_no_trial(scripted: Measure) -> None:
    def struck(case: Case, pulse: Pulse) -> float:
        signal.raise_signal(signal.SIGTERM)
        pulse()
        return 1.0

    report, saved = scripted(always, ONE, harness=struck)
    assert (report.runs, report.interrupted, saved) == ((), True, [])


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UsageError("PRAGMA nonsense"), UsageError),
        (EnvironmentFailure("no WAL here"), EnvironmentFailure),
        (OSError(28, "No space left on device"), EnvironmentFailure),
    ],
)
def test_what_stops_the_first_case_stops_everything(
    scripted: Measure, error: Exception, expected: type[SqlstressError]
) -> None:
    with pytest.raises(expected) as caught:
        scripted(raising_at(1, error), ONE, TWO)
    assert "unexpected" not in str(caught.value)


def test_an_unexpected_error_asks_to_be_reported(scripted: Measure) -> None:
    with pytest.raises(
        EnvironmentFailure, match=r"KeyError: 'x' \(unexpected: please report it, with Python 3"
    ):
        scripted(raising_at(1, KeyError("x")), ONE)


@pytest.mark.parametrize("error", [EnvironmentFailure("no space"), WorkerFailure("no space")])
def test_what_stops_a_later_case_is_kept_with_it_and_the_sweep_goes_on(
    scripted: Measure, error: Exception
) -> None:
    report, saved = scripted(raising_at(2, error), ONE, TWO, FOUR)
    assert [(run.case, len(run.trials), run.error) for run in report.runs] == [
        (ONE, 1, None),
        (TWO, 0, "no space"),
        (FOUR, 1, None),
    ]
    assert len(saved) == 3


def test_a_worker_that_fails_in_the_first_case_does_not_stop_the_sweep(scripted: Measure) -> None:
    script = raising_at(1, WorkerFailure("worker 1 could not start: was killed by SIGKILL"))
    report, _ = scripted(script, ONE, TWO)
    assert [run.error for run in report.runs] == ["worker 1 could not start: was killed by SIGKILL", None]


def test_a_trial_that_is_not_valid_is_its_cases_error(scripted: Measure) -> None:
    report, _ = scripted(lambda case, index: replace(TRIAL, error="worker 1 was killed by SIGKILL"), ONE)
    assert report.runs[0].error == "worker 1 was killed by SIGKILL"
    assert len(report.runs[0].trials) == 1


def test_what_hangs_is_not_tried_in_a_second_pass(scripted: Measure) -> None:
    hung = WorkerResult(1, 0, 0, 1.0, error=f"{HUNG} within the time-out, and was ended")
    error = "worker 1 hung within the time-out, and was ended"
    asked = []

    def script(case: Case, index: int) -> Trial:
        asked.append((case.concurrency, index))
        return replace(TRIAL, workers=(hung,), error=error) if case.concurrency == 2 else TRIAL

    report, _ = scripted(script, replace(ONE, repeat=3), replace(TWO, repeat=3))
    assert sorted(asked) == [(1, 0), (1, 1), (1, 2), (2, 0)]
    assert [run.error for run in report.runs] == [None, error]
