"""What a terminal shows at first, and what --details adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.analysis.finding import Finding
from sqlstress.report import read
from sqlstress.show.blocks import AT_FIRST, conclusions
from sqlstress.show.text import BRIEF, coloured, report_text
from tests.example_report import assert_golden, example_report
from tests.render.test_text import VARIANTS

REPORTS = Path(__file__).parents[2] / "reports"
MOST_LINES = 28
"""With a warning of two lines."""


def shown_at_first(*codes: str) -> int:
    block = conclusions(list(map(Finding, codes)))
    assert block.first is not None
    assert len(block.later) == len(codes) - block.first
    return block.first


def test_three_conclusions_come_first_and_none_that_is_aside() -> None:
    assert shown_at_first("best", "plateau", "layouts", "starvation", "spread") == AT_FIRST
    assert shown_at_first("best", "spread", "harness-cost") == 1
    assert shown_at_first("spread") == 0


def test_what_is_grave_is_shown_first_however_much_it_is() -> None:
    grave = ("data-wrong", "data-wrong-elsewhere", "case-failed", "case-incomplete", "proof-unknown")
    assert shown_at_first("best", *grave) == len(grave)
    wrong = conclusions([Finding("best"), Finding("data-wrong")]).texts
    assert wrong[0].startswith("FAILED")


@pytest.mark.parametrize("name", VARIANTS)
def test_details_only_add(name: str) -> None:
    report = VARIANTS[name]()
    brief, full = BRIEF.report(report).splitlines(), report_text(report).splitlines()
    *lines, closing = brief
    assert [line for line in lines if line not in full] == []
    assert closing.startswith("Add --details") and len(brief) < len(full)


def test_the_example_is_shown_at_first_as_kept() -> None:
    assert_golden("report-at-first.txt", BRIEF.report(example_report()))


def test_a_run_of_eight_rows_fills_a_screen_at_most() -> None:
    text = BRIEF.report(read(REPORTS / "linux-20-files.json"))
    assert len(text.splitlines()) <= MOST_LINES


def test_a_terminal_has_verdicts_and_warnings_in_colours() -> None:
    text = coloured("Warning: slow.\n 1 process ok\n 2 processes FAILED\n- it is ok so\n")
    assert text.count("\033[0m") == 3
    assert coloured("nothing to see\n") == "nothing to see\n"
