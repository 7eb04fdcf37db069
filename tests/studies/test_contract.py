"""Behaviour required of every study: saving, interruption, failure and progress."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure, Interrupted
from sqlstress.report import Report, from_json, to_json
from sqlstress.show.endings import endings, exit_code
from sqlstress.studies.sweep import run_on_bench
from tests.studies.made_up import STUDIES, Trouble, Watching

MEASUREMENTS = 4
STOP = Interrupted("stopped by SIGINT")
FULL = EnvironmentFailure("the disk is full.")


@dataclass(frozen=True)
class Outcome:
    """The end of a study, and its saved reports and progress."""

    report: Report
    saved: list[Report]
    watching: Watching
    measured: Callable[[Report], int]


Run = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Return a function that runs a study by its name; saving takes no time."""

    def run_study(name: str, trouble: Trouble | None = None) -> Outcome:
        saved, watching = list[Report](), Watching()
        made_up = STUDIES[name](monkeypatch, tmp_path, watching, trouble or Trouble())
        report = run_on_bench(made_up.study, made_up.bench, saved.append, lambda: 0.0)
        return Outcome(report, saved, watching, made_up.measured)

    return run_study


EACH = pytest.mark.parametrize("name", STUDIES)
EACH_MEASUREMENT = pytest.mark.parametrize("done", range(MEASUREMENTS))


@EACH
def test_study_returns_the_last_saved_report(run: Run, name: str) -> None:
    outcome = run(name)
    assert outcome.measured(outcome.report) == MEASUREMENTS
    assert endings(outcome.report) == ()
    assert not outcome.report.interrupted
    assert outcome.saved[-1] == outcome.report
    assert from_json(to_json(outcome.report)) == outcome.report
    # It is saved after every measurement.
    saved = list(dict.fromkeys(to_json(report) for report in outcome.saved))
    assert len(saved) >= MEASUREMENTS
    assert len(outcome.saved) == len(saved)  # and nothing is saved twice


@EACH
@EACH_MEASUREMENT
def test_interruption_keeps_all_measurements_and_exits_130(run: Run, name: str, done: int) -> None:
    outcome = run(name, Trouble(STOP, done))
    assert outcome.report.interrupted
    assert outcome.measured(outcome.report) == done
    assert outcome.saved[-1:] == [outcome.report] * outcome.report.holds_something
    assert exit_code(endings(outcome.report)) == 130
    assert endings(outcome.report)[0].text.startswith("Stopped after ")


@EACH
@EACH_MEASUREMENT
def test_problem_is_raised_first_and_later_kept_in_the_report(run: Run, name: str, done: int) -> None:
    if not done:
        with pytest.raises(EnvironmentFailure, match="the disk is full"):
            run(name, Trouble(FULL, done))
        return
    outcome = run(name, Trouble(FULL, done))
    assert outcome.measured(outcome.report) >= done
    assert outcome.saved[-1] == outcome.report
    assert not outcome.report.interrupted
    assert exit_code(endings(outcome.report)) == 4
    assert "the disk is full" in endings(outcome.report)[0].text


@EACH
def test_unexpected_problem_asks_to_be_reported(run: Run, name: str) -> None:
    outcome = run(name, Trouble(KeyError("x"), 2))
    assert "KeyError: 'x' (unexpected: please report it" in endings(outcome.report)[0].text


@EACH
def test_progress_of_a_study_never_goes_backwards(run: Run, name: str) -> None:
    progress = run(name).watching.told  # each is checked against the previous one
    assert len(progress) >= MEASUREMENTS - 1
    # Windows' clock advances every 16 ms, and made-up measurements take less.
    assert progress[-1].done > progress[0].done or time.get_clock_info("monotonic").resolution > 0.01
