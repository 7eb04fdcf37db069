"""Tests of how power cuts are shown, in every format."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from sqlstress.experiments.power_loss.experiment import PowerLoss
from sqlstress.show.github import workflow_commands
from sqlstress.show.junit import report_junit
from sqlstress.show.markdown import report_markdown
from sqlstress.show.page.html_file import report_html
from sqlstress.show.text import report_text
from tests.example_report import assert_golden
from tests.power_report import CONTROL, power_cuts, power_loss, power_report

LOST = power_report(power_loss(power_cuts("wal", "normal")))


def test_what_is_shown_is_the_golden_one() -> None:
    assert_golden("crash-matrix.txt", report_text(power_report(power_loss())))
    assert_golden("crash-matrix.md", report_markdown(power_report(power_loss())))
    assert_golden("crash-power-lost.txt", report_text(LOST))


WORSE = power_loss(replace(power_cuts("wal", "normal"), torn=1))


def test_the_page_shows_how_many_images_there_were_and_what_was_found() -> None:
    page = report_html(LOST)
    assert "2,000" in page
    assert "as documented" in page and "FAILED" not in page
    assert "FAILED" in report_html(power_report(WORSE))


def test_what_is_worse_than_documented_is_a_failure_in_ci_and_what_is_not_passes() -> None:
    def outcomes(loss: PowerLoss) -> list[str]:
        (test,) = ElementTree.fromstring(report_junit(power_report(loss))).iter("testcase")
        return [element.tag for element in test]

    assert outcomes(WORSE) == ["failure"]
    assert outcomes(power_loss(power_cuts("wal", "normal"))) == []
    assert outcomes(power_loss(power_cuts())) == []
    assert outcomes(replace(power_loss(power_cuts()), control=replace(CONTROL, torn=0))) == ["failure"]
    assert outcomes(replace(power_loss(), configurations=(), control=None)) == ["skipped"]
    (command,) = [one for one in workflow_commands(power_report(WORSE)) if one.startswith("::error")]
    assert command.startswith("::error title=Crash test%3A power cuts::FAILED")
