"""The reports that are kept in reports/: the Markdown next to each JSON is the present output."""

from pathlib import Path

import pytest

from sqlstress.report import read
from sqlstress.show.markdown import report_markdown

REPORTS = sorted((Path(__file__).parents[2] / "reports").glob("*.json"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_markdown_of_a_kept_report_equals_the_output(path: Path) -> None:
    kept = path.with_suffix(".md").read_text(encoding="utf-8")
    stale = f"stale: sqlstress report {path.name} -o {path.stem}.md"
    assert kept.rstrip("\n") == report_markdown(read(path)).rstrip("\n"), stale
