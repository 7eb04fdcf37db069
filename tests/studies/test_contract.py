"""What holds for every study, whatever it measures: saved, stopped, failed and watched in one way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure, Interrupted
from sqlstress.report import Report, from_json, to_json
from sqlstress.show.endings import endings, exit_code
from sqlstress.studies.sweep import follow
from tests.studies.made_up import STUDIES, Trouble, Watching

MEASUREMENTS = 4
STOP = Interrupted("stopped by SIGINT")
FULL = EnvironmentFailure("the disk is full.")


@dataclass(frozen=True)
class Outcome:
    """How a study ended, and what was saved and told meanwhile."""

    report: Report
    saved: list[Report]
    watching: Watching
    measured: Callable[[Report], int]


Run = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Carry out a study by its name; saving takes no time."""

    def carried_out(name: str, trouble: Trouble | None = None) -> Outcome:
        saved, watching = list[Report](), Watching()
        made = STUDIES[name][0](monkeypatch, tmp_path, watching, trouble or Trouble())
        report = follow(made.study, made.bench, saved.append, lambda: 0.0)
        return Outcome(report, saved, watching, made.measured)

    return carried_out


EACH = pytest.mark.parametrize("name", STUDIES)
EACH_MEASUREMENT = pytest.mark.parametrize("done", range(MEASUREMENTS))


@EACH
def test_it_ends_well_and_the_last_report_that_was_saved_is_the_one_that_is_returned(
    run: Run, name: str
) -> None:
    found = run(name)
    assert found.measured(found.report) == MEASUREMENTS
    assert endings(found.report) == ()
    assert not found.report.interrupted
    assert found.saved[-1] == found.report
    assert from_json(to_json(found.report)) == found.report
    # After every measurement.
    saved = list(dict.fromkeys(to_json(report) for report in found.saved))
    assert len(saved) >= MEASUREMENTS
    assert len(found.saved) == len(saved)  # and nothing is saved twice


@EACH
@EACH_MEASUREMENT
def test_an_interruption_loses_nothing_and_exits_130(run: Run, name: str, done: int) -> None:
    found = run(name, Trouble(STOP, done))
    assert found.report.interrupted
    assert found.measured(found.report) == done
    assert found.saved[-1:] == [found.report] * found.report.holds_something
    assert exit_code(endings(found.report)) == 130
    assert endings(found.report)[0].text.startswith("Stopped after ")


@EACH
@EACH_MEASUREMENT
def test_a_problem_is_raised_as_long_as_there_is_nothing_to_keep_and_kept_with_it_after_that(
    run: Run, name: str, done: int
) -> None:
    if done < STUDIES[name][1]:
        with pytest.raises(EnvironmentFailure, match="the disk is full"):
            run(name, Trouble(FULL, done))
        return
    found = run(name, Trouble(FULL, done))
    assert found.measured(found.report) >= done
    assert found.saved[-1] == found.report
    assert not found.report.interrupted
    assert exit_code(endings(found.report)) == 4
    assert "the disk is full" in endings(found.report)[0].text


@EACH
def test_a_problem_that_nobody_expected_asks_to_be_reported(run: Run, name: str) -> None:
    found = run(name, Trouble(KeyError("x"), 2))
    assert "KeyError: 'x' (unexpected: please report it" in endings(found.report)[0].text


@EACH
def test_its_progress_never_goes_backwards(run: Run, name: str) -> None:
    told = run(name).watching.told  # each is held against the one before
    assert len(told) >= MEASUREMENTS - 1
    # Windows' clock goes on every 16 ms, and made-up measurements take less.
    assert told[-1].done > told[0].done or time.get_clock_info("monotonic").resolution > 0.01
