"""Tests of the presentation of a crash test, in every format."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sqlstress.errors import UsageError
from sqlstress.experiments.crash.spec import Kills
from sqlstress.report import Report, read
from sqlstress.show.formats import DOCUMENTS, FORMATS
from sqlstress.show.github import workflow_commands
from sqlstress.show.junit import report_junit
from sqlstress.show.page.html_file import report_html
from tests.crash_report import KILLS, crash_report, empty_report, lost_report
from tests.example_report import example_report

ROOT = Path(__file__).parents[3]
ENDED = crash_report(replace(KILLS, rounds=7, error="worker 1: SQLITE_FULL: disk full"))


@pytest.mark.parametrize("form", sorted(FORMATS.keys() - set(DOCUMENTS)))
def test_formats_for_figures_of_cases_refuse_a_crash_test(form: str) -> None:
    with pytest.raises(UsageError, match=f"{form} holds the figures of cases, and a crash test has none"):
        FORMATS[form](example_report(), crash_report())


@pytest.mark.parametrize(
    ("report", "outcome"),
    [(crash_report(), None), (lost_report(), "failure"), (ENDED, "error"), (empty_report(), "skipped")],
    ids=["proved", "lost", "ended", "nothing"],
)
def test_junit_has_a_test_for_the_crash_test(report: Report, outcome: str | None) -> None:
    (test, *others) = ElementTree.fromstring(report_junit(report)).iter("testcase")
    assert (test.get("classname"), test.get("name")) == ("sqlstress.crash", "process death")
    assert [child.tag for child in test] == ([outcome] if outcome else [])
    assert len(others) == report.interrupted


def test_page_and_github_begin_with_the_verdict_on_losses() -> None:
    assert "<strong>nothing lost</strong><span>process death</span>" in report_html(crash_report())
    page = report_html(lost_report())
    assert "<strong>FAILED</strong><span>process death</span>" in page
    assert "<strong>300</strong><span>writers killed</span>" in page
    (lost,) = (line for line in workflow_commands(lost_report()) if line.startswith("::error"))
    assert lost.startswith(
        "::error title=Crash test%3A process death::FAILED: after 300 kills, 2 transactions"
    )
    assert any("Nothing is proved" in line for line in workflow_commands(empty_report()))
    assert not any(line.startswith("::error") for line in workflow_commands(crash_report()))
    assert any("disk full" in line for line in workflow_commands(ENDED))


def row(name: str, settings: str) -> str:
    """Return the row of a saved report on the page about crash tests."""
    kills = read(ROOT / "reports" / f"{name}.json").results["crash"]
    assert isinstance(kills, Kills)
    recovered = kills.wals + kills.hot_journals
    counts = (
        kills.kills,
        kills.acknowledged,
        kills.finished,
        kills.undone,
        recovered,
        kills.lost_count,
        kills.torn_count,
    )
    return f"| [{settings}](../reports/{name}.md) | {' | '.join(f'{count:,}' for count in counts)} |"


def test_page_has_the_figures_of_the_saved_reports() -> None:
    page = (ROOT / "docs" / "crash.md").read_text(encoding="utf-8")
    for name, settings in (
        ("linux-crash-kills", "WAL, FULL"),
        ("linux-crash-kills-4-files", "WAL, FULL, 4 buckets"),
        ("linux-crash-kills-off", "WAL, OFF"),
        ("linux-crash-kills-delete", "DELETE, FULL"),
    ):
        assert row(name, settings) in page
