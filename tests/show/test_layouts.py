"""Buckets, in tables, sentences and plots; no buckets for an experiment with a single bucket."""

from dataclasses import replace

import pytest

from sqlstress.report.case import Server
from sqlstress.show.page.html_file import report_html
from sqlstress.show.text import report_text
from tests.experiments.sql.test_shown import HELD
from tests.experiments.sql.test_shown import run as of_scripts
from tests.show.variants import EXAMPLE, with_case


@pytest.mark.parametrize("driver", ["sqlite3", "psycopg"])
def test_buckets_have_one_name_whatever_they_are(driver: str) -> None:
    server = Server() if driver == "psycopg" else None
    report = with_case(driver=driver, server=server)
    text, page = " ".join(report_text(report).split()), report_html(report)
    assert "buckets: database files, or tables on a server" in text and "on 20 buckets" in text
    assert "on 1 bucket" in page and "20 buckets, ideal" in page


@pytest.mark.parametrize("form", ["text", "html"])
def test_user_work_has_no_buckets(form: str) -> None:
    runs = (of_scripts(1, 900.0, HELD), of_scripts(4, 1500.0, HELD))
    report = replace(EXAMPLE, runs=runs, planned=2)
    shown = report_text(report) if form == "text" else report_html(report)
    assert "1 bucket" not in shown and " buckets" not in shown.partition("<script")[0]
