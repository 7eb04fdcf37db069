"""Outputs of all formats and views for made-up reports, compared with golden files."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import sqlstress.show.page as page_room
from sqlstress.report import Report, read
from sqlstress.show.csv_file import report_csv
from sqlstress.show.doctor_view import doctor_text
from sqlstress.show.github import workflow_commands
from sqlstress.show.junit import report_junit
from sqlstress.show.markdown import comparison_markdown, report_markdown
from sqlstress.show.page.html_file import report_html, script
from sqlstress.show.text import comparison_text, report_text
from sqlstress.show.trackers import bencher_json, latency_json, throughput_json
from tests.ab_report import ab_report, around
from tests.example_report import CORPUS, assert_golden, corpus_report, example_report, failed_report
from tests.show import variants
from tests.show.page.test_html_file import hashed
from tests.show.test_comparison_view import VARIANTS
from tests.show.test_doctor_view import SERIOUS
from tests.show.test_side_by_side import targets_report

PAGE = Path(page_room.__file__).parent
REPORTS: dict[str, Callable[[], Report]] = {
    "report": example_report,
    "ab": lambda: ab_report([around(0.8, 20), around(1.02, 20)]),
    "sides": targets_report,
    "exec": lambda: read(CORPUS / "own-exec.json"),
}
"""Reports by the name of their golden files; all others have that name in the corpus."""
TEXTS = (
    "report failed passes classic troubled updates beside widest rate limit ab sides "
    "app exec crash crash-lost cycles keys methods where"
)


def page_of(report: Report) -> str:
    """Return a page without its style and its script, in lines."""
    page = report_html(report)
    page = page.replace((PAGE / "page.css").read_text(encoding="utf-8"), "page.css")
    page = page.replace(script(), "the script").replace(hashed(script()), "sha256-of-the-script")
    return page.replace("><", ">\n<")


SHOWN: dict[str, tuple[Callable[[Report], str], str]] = {
    "txt": (report_text, TEXTS),
    "md": (report_markdown, "report"),
    "csv": (report_csv, "report"),
    "xml": (report_junit, "report failed"),
    "html": (page_of, "report"),
    "throughput.json": (throughput_json, "report"),
    "latency.json": (latency_json, "report"),
    "bmf.json": (bencher_json, "updates"),
}
"""Writer by suffix, with the names of its golden reports. tests/corpus has digests of all other formats."""


@pytest.mark.parametrize(
    ("name", "suffix"), [(name, suffix) for suffix, (_, names) in SHOWN.items() for name in names.split()]
)
def test_report_matches_its_golden_file(name: str, suffix: str) -> None:
    report = REPORTS.get(name, partial(corpus_report, name))()
    assert_golden(f"{name}.{suffix}", SHOWN[suffix][0](report))


@pytest.mark.parametrize("name", VARIANTS)
def test_comparison_matches_its_golden_file(name: str) -> None:
    assert_golden(f"compare-{name}.txt", comparison_text(VARIANTS[name]))


def test_comparison_in_markdown_is_shown_as_kept() -> None:
    assert_golden("compare-machines.md", comparison_markdown(VARIANTS["machines"]))


def test_environment_and_annotations_match_the_golden_files() -> None:
    environment = example_report().environment
    serious = replace(environment, warnings=(*environment.warnings, SERIOUS))
    assert_golden("doctor.txt", doctor_text(serious, "native"))
    lines = (*workflow_commands(failed_report()), *workflow_commands(variants.troubled_report()))
    assert_golden("annotations.txt", "\n".join(lines) + "\n")
