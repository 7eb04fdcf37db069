"""What a bucket is called: a file, a table on a server, and nothing where an experiment has but one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.report import Report
from sqlstress.report.case import Server
from sqlstress.show.page.html_file import report_html
from sqlstress.show.text import report_text
from tests.example_report import example_report
from tests.experiments.sql.test_shown import HELD
from tests.experiments.sql.test_shown import run as of_scripts
from tests.show.test_side_by_side import compared

EXAMPLE = example_report()


def on_a_server(report: Report, *drivers: str) -> Report:
    """Return a report of which the runs of these drivers were PostgreSQL's."""
    runs = tuple(
        replace(one, case=replace(one.case, driver="psycopg", server=Server()))
        if one.case.driver in drivers
        else one
        for one in report.runs
    )
    return replace(report, runs=runs)


def test_on_a_server_buckets_are_tables_in_text_and_plots() -> None:
    report = on_a_server(EXAMPLE, *{run.case.driver for run in EXAMPLE.runs})
    text, page = report_text(report), report_html(report)
    assert "tables" in text and "on 20 tables" in " ".join(text.split())
    assert "on 1 table" in page and "20 tables, ideal" in page
    for shown in (text, page):
        assert "1 file" not in shown and "20 files" not in shown


def test_beside_files_they_share_a_column() -> None:
    text = report_text(on_a_server(compared(), "lmdb"))
    assert " buckets " in text
    assert "1 file" in text and "1 table" in text


@pytest.mark.parametrize("form", ["text", "html"])
def test_of_your_own_work_no_files_are_counted(form: str) -> None:
    runs = (of_scripts(1, 900.0, HELD), of_scripts(4, 1500.0, HELD))
    report = replace(EXAMPLE, runs=runs, planned=2)
    shown = report_text(report) if form == "text" else report_html(report)
    assert "1 file" not in shown and " files" not in shown.partition("<script")[0]
