"""Tests of how studies end: which exit code, and what is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.report import Check, Report, Run, Verdict
from sqlstress.show.endings import Ending, endings, exit_code
from tests.ab_report import ab_report, around
from tests.crash_report import KILLS, crash_report, empty_report, lost_report
from tests.example_report import example_report
from tests.power_report import power_cuts, power_loss, power_report

EXAMPLE = example_report()
LOST = Verdict((Check("last write", "failed", 10, 1, ("key 5 is gone",)),))


def with_run(report: Report, place: int, run: Run) -> Report:
    """Return a report with another run at a place."""
    return replace(report, runs=(*report.runs[:place], run, *report.runs[place + 1 :]))


def wrong(report: Report = EXAMPLE) -> Report:
    """Return a report in which data is wrong."""
    run = report.runs[1]
    return with_run(report, 1, replace(run, trials=(replace(run.trials[0], verdict=LOST),)))


@pytest.mark.parametrize(
    "report",
    [
        EXAMPLE,
        ab_report([around(1.0, 10)]),
        crash_report(),
        power_report(power_loss()),
        power_report(power_loss(power_cuts())),
    ],
    ids=["cases", "ab", "crash", "matrix", "power"],
)
def test_of_what_is_well_nothing_is_said(report: Report) -> None:
    assert endings(report) == endings(report, strict=True) == ()
    assert exit_code(()) == 0


def test_an_interruption_is_said_first_and_hides_no_wrong_data_and_no_failure() -> None:
    report = replace(wrong(), interrupted=True, planned=20)
    failed = replace(report.runs[2], error="worker 1 was killed by SIGKILL.")
    found = endings(with_run(report, 2, failed), saved=["report.json", "report.md"])
    assert found == (
        Ending(130, "Stopped after 8 of 20 cases; what was measured is in report.json, report.md."),
        Ending(1, "Error: the data is wrong: key 5 is gone."),
        Ending(4, f"Error: {failed.case.label} could not be measured: worker 1 was killed by SIGKILL."),
    )
    assert exit_code(found) == 130


@pytest.mark.parametrize(("failed", "others"), [(1, ""), (2, " (and 1 more case)")])
def test_of_several_cases_that_failed_the_first_one_is_named(failed: int, others: str) -> None:
    runs = [
        replace(run, error="no space" if place < failed else None) for place, run in enumerate(EXAMPLE.runs)
    ]
    (found,) = endings(replace(EXAMPLE, runs=tuple(runs)))
    assert found == Ending(4, f"Error: {runs[0].case.label} could not be measured: no space{others}.")


def test_a_regression_exits_1_in_the_words_of_the_report() -> None:
    (found,) = endings(ab_report([around(0.8, 10)]))
    assert found.code == 1
    assert found.text.startswith("Error: FAIL: B is slower: TPS")


def test_what_cannot_be_told_is_not_well_where_that_is_asked_for() -> None:
    report = ab_report([around(0.9, 30)])
    assert report.ab and report.ab.verdict == "inconclusive"
    assert endings(report, strict=True) == (Ending(3),)
    assert endings(report) == ()
    stopped = replace(ab_report([around(0.8, 10)]), interrupted=True)
    assert endings(stopped) == (Ending(130, "Stopped after 20 slices."),)


def test_a_slice_that_cannot_be_measured_is_named_by_its_arm() -> None:
    report = ab_report([around(1.0, 10)])
    found = endings(with_run(report, 1, replace(report.runs[1], error="no space.")))
    assert found == (Ending(4, "Error: B, 1 file, 2 processes, could not be measured: no space."),)


def test_what_was_lost_exits_1_and_what_ended_early_is_said_after_it() -> None:
    report = lost_report()
    early = replace(report.results["crash"], error="no space.")
    found = endings(replace(report, results={"crash": early}))
    assert [ending.code for ending in found] == [1, 4]
    assert found[0].text == "", "the report says it, and once is enough"
    assert found[0].reason.startswith("Error: FAILED: after 300 kills")
    assert found[1].text == "Error: process death was not completed: no space."


def test_what_proves_nothing_exits_3_and_says_no_more_than_the_report() -> None:
    nothing = crash_report(replace(KILLS, acknowledged=0))
    assert endings(nothing) == (Ending(3),)
    early = crash_report(replace(KILLS, acknowledged=0, error="no space."))
    assert [ending.code for ending in endings(early)] == [4, 3]


def test_a_crash_test_that_is_stopped_says_how_far_it_came() -> None:
    (first, second) = endings(empty_report(), saved=["crash.json"])
    assert first == Ending(130, "Stopped after 1 of 100 rounds; what was proved is in crash.json.")
    assert second == Ending(3)
    (stopped,) = endings(power_report(power_loss(power_cuts()), interrupted=True))
    assert stopped == Ending(130, "Stopped after 2,000 of 2,000 images.")


@pytest.mark.parametrize(
    ("mode", "level"), [("wal", "normal"), ("delete", "full"), ("wal", "off"), ("memory", "full")]
)
def test_power_cuts_that_lose_what_sqlite_documents_are_no_failure(mode: str, level: str) -> None:
    assert endings(power_report(power_loss(power_cuts(mode, level)))) == ()


def test_power_cuts_that_do_worse_exit_1_alone_and_in_a_matrix() -> None:
    torn = replace(power_cuts("wal", "normal"), torn=1)
    for matrix in (False, True):
        (found,) = endings(power_report(replace(power_loss(torn), matrix=matrix)))
        assert (found.code, found.text) == (1, "")
        assert found.reason.startswith("Error: FAILED: worse than SQLite documents. WAL with NORMAL: of 2,")
