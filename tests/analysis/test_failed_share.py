"""Operations that were given up: which share is too much, and who says so."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.show.blocks import NOT_ALL, verified_cell
from sqlstress.show.endings import endings
from sqlstress.show.github import workflow_commands
from sqlstress.show.junit import report_junit
from sqlstress.show.page.document import report_html
from tests.analysis.hand_made import EXAMPLE, run, trial

LOCKED = "the database was locked for longer than --busy-timeout"
OUT_OF_DATE = "others had changed what they had read (BUSY_SNAPSHOT)"


def failing(failed: int, done: int = 1000, max_failed: float = 0.01) -> Run:
    return run(1, 4, trial(failed=failed, transactions=done), case=Case(max_failed=max_failed))


@pytest.mark.parametrize(
    ("one", "share"),
    [(failing(0), 0.0), (failing(1000), 0.5), (failing(5, 0), 1.0), (failing(1, 99), 0.01)],
)
def test_the_share_is_that_of_all_operations_that_ended(one: Run, share: float) -> None:
    assert one.failed_share() == pytest.approx(share)


@pytest.mark.parametrize(
    ("failed", "max_failed", "too_many"), [(10, 0.01, False), (11, 0.01, True), (900, 1, False)]
)
def test_more_than_may_fail_is_no_success(failed: int, max_failed: float, too_many: bool) -> None:
    report = replace(EXAMPLE, runs=(failing(failed, 1000, max_failed),), planned=1)
    codes = [ending.code for ending in endings(report)]
    assert codes == [1] * too_many
    assert (verified_cell(report.runs[0]) == NOT_ALL) is too_many
    assert ("given-up" in report_junit(report)) is too_many
    assert any("Too many operations failed" in line for line in workflow_commands(report)) is too_many
    tile = re.search(r'class="tile (\w+)"><strong>[\d.]+% failed', report_html(report))
    assert (tile is not None) is too_many
    assert not tile or tile[1] == "failed"


def test_the_worst_case_is_named_with_what_may_fail() -> None:
    report = replace(
        EXAMPLE, runs=(failing(20), run(20, 8, trial(failed=4000, transactions=1000))), planned=2
    )
    (ending,) = endings(report)
    assert ending.text == (
        "Error: 80% of the operations failed at 8 processes on 20 files: the database was locked for longer "
        "than --busy-timeout. At most 1% may (--max-failed)."
    )


@pytest.mark.parametrize(
    ("busy", "out_of_date", "why"),
    [
        (5, 0, LOCKED),
        (0, 5, OUT_OF_DATE),
        (5, 5, f"{LOCKED}, or {OUT_OF_DATE}"),
    ],
)
def test_why_they_failed_is_what_the_database_answered(busy: int, out_of_date: int, why: str) -> None:
    refused = trial(failed=50, transactions=100, busy=busy, busy_snapshot=out_of_date)
    fine = trial(transactions=100, busy=1, busy_snapshot=1)
    died = trial(failed=50, busy=1, busy_snapshot=1, error="worker 1 died")
    report = replace(EXAMPLE, runs=(run(1, 4, refused, fine, died),), planned=1)
    ending = endings(report)[0]
    assert f": {why}. At most" in ending.text


def test_trials_that_do_not_count_do_not_count_here() -> None:
    one = run(
        1, 2, trial(failed=900, error="worker 1 died"), trial(failed=9, outcome="limit"), trial(failed=0)
    )
    assert one.failed_share() == 0
