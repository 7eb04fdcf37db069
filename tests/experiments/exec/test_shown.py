"""How commands are shown: a report that was measured once, as text and as Markdown."""

from __future__ import annotations

from pathlib import Path

from sqlstress.report import read
from sqlstress.show.markdown import report_markdown
from sqlstress.show.text import report_text
from tests.example_report import assert_golden

REPORT = Path(__file__).parents[2] / "corpus" / "own-exec.json"


def test_the_report_is_shown_as_kept() -> None:
    assert_golden("exec.txt", report_text(read(REPORT)))
    assert_golden("exec.md", report_markdown(read(REPORT)))
