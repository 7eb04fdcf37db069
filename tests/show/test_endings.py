"""Tests of the endings of studies: exit codes and messages."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlstress.report import Check, Report, Run, Verdict
from sqlstress.show.endings import Ending, endings, exit_code
from tests.ab_report import ab_report, around
from tests.crash_report import KILLS, crash_report, empty_report, lost_report
from tests.example_report import assert_golden_texts, example_report
from tests.several import with_trials

EXAMPLE = example_report()
LOST = Verdict((Check("last write", "failed", 10, 1, ("key 5 is gone",)),))


def with_run(report: Report, place: int, run: Run) -> Report:
    """Return a report with the run at an index replaced."""
    return replace(report, runs=(*report.runs[:place], run, *report.runs[place + 1 :]))


def wrong(report: Report = EXAMPLE) -> Report:
    """Return a report with wrong data."""
    return with_run(report, 1, with_trials(report.runs[1], verdict=LOST))


def several_failed(count: int) -> Report:
    runs = (
        replace(run, error="no space" if place < count else None) for place, run in enumerate(EXAMPLE.runs)
    )
    return replace(EXAMPLE, runs=tuple(runs))


def with_crash_results(report: Report, **fields: Any) -> Report:
    """Return a crash test's report with changed fields of its results."""
    return replace(report, results={"crash": replace(report.results["crash"], **fields)})


STOPPED = replace(wrong(), interrupted=True, planned=20)
SURE, UNSURE = ab_report([around(1.0, 10)]), ab_report([around(0.9, 30)])
NOTHING = crash_report(replace(KILLS, acknowledged=0))
ENDED = {
    "cases": EXAMPLE,
    "an A/B test": SURE,
    "a crash test": crash_report(),
    "stopped, wrong and failed": with_run(
        STOPPED, 2, replace(STOPPED.runs[2], error="worker 1 was killed by SIGKILL.")
    ),
    "a case that failed": several_failed(1),
    "two cases that failed": several_failed(2),
    "a regression": ab_report([around(0.8, 10)]),
    "what cannot be told": UNSURE,
    "a regression, stopped": replace(ab_report([around(0.8, 10)]), interrupted=True),
    "a slice that failed": with_run(SURE, 1, replace(SURE.runs[1], error="no space.")),
    "lost by a crash": lost_report(),
    "lost by a crash, and ended early": with_crash_results(lost_report(), error="no space."),
    "a crash test of nothing": NOTHING,
    "a crash test of nothing, ended early": with_crash_results(NOTHING, error="no space."),
    "a crash test, stopped": empty_report(),
}


def lines(found: Sequence[Ending]) -> list[str]:
    """Return the exit code, then each ending; in brackets the facts that are already in the report."""
    return [str(exit_code(found)), *(f"{end.code} {end.text or f'({end.reason})'}" for end in found)]


def test_study_ends_with_the_gravest_code_and_each_message_once() -> None:
    assert_golden_texts("endings.txt", {name: lines(endings(report)) for name, report in ENDED.items()})


def test_inconclusive_study_fails_only_with_strict() -> None:
    strict = {name: lines(endings(report, strict=True)) for name, report in ENDED.items()}
    changed = {name: found for name, found in strict.items() if found != lines(endings(ENDED[name]))}
    assert changed == {"what cannot be told": ["3", "3 ()"]}


def test_interruption_names_the_saved_files() -> None:
    first, *_ = endings(STOPPED, saved=["report.json", "report.md"])
    assert first == Ending(
        130, "Stopped after 8 of 20 cases; what was measured is in report.json, report.md."
    )
    first, *_ = endings(empty_report(), saved=["crash.json"])
    assert first == Ending(130, "Stopped after 1 of 100 rounds; what was proved is in crash.json.")
