"""The reports that are kept in reports/: beside the JSON of each stands what is shown of it today."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.report import read
from sqlstress.show.markdown import report_markdown

REPORTS = sorted((Path(__file__).parents[2] / "reports").glob("*.json"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_the_markdown_beside_a_kept_report_is_what_is_shown_of_it(path: Path) -> None:
    kept = path.with_suffix(".md").read_text(encoding="utf-8")
    stale = f"stale: sqlstress report {path.name} -o {path.stem}.md"
    assert kept.rstrip("\n") == report_markdown(read(path)).rstrip("\n"), stale
