"""Tests of a report in a notebook: rows for a data frame, and its display."""

import json
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from sqlstress import Report
from sqlstress.report import Report as Document
from sqlstress.show.blocks import FIRST_FINDINGS
from sqlstress.show.csv_file import case_rows
from sqlstress.show.page.html_file import report_fragment
from tests.ab_report import ab_report
from tests.crash_report import crash_report
from tests.cycles_report import cycles_report
from tests.example_keys import keys_report
from tests.example_methods import methods_report
from tests.example_report import example_report, failed_report
from tests.limit_report import limit_report
from tests.rate_report import rate_report
from tests.show.variants import EXAMPLE, each_trial, troubled_report, with_one

REPORTS: dict[str, Callable[[], Document]] = {
    "kv": example_report,
    "failed": failed_report,
    "troubled": troubled_report,
    "keys": keys_report,
    "methods": methods_report,
    "cycles": cycles_report,
    "rate": rate_report,
    "limit": limit_report,
    "ab": lambda: ab_report([[1.0, 2.0] * 5]),
    "crash": crash_report,
}
each_report = pytest.mark.parametrize("made", REPORTS.values(), ids=REPORTS)


class Tags(HTMLParser):
    """The elements of a piece of HTML; fails where one is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


@each_report
def test_case_is_one_flat_row_and_a_column_has_one_type(made: Callable[[], Document]) -> None:
    document = made()
    rows = Report(document).to_rows()
    assert len(rows) == len(document.runs)
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    for column in {name for row in rows for name in row}:
        values = [row[column] for row in rows]  # every row has every column
        assert len({isinstance(value, str) for value in values if value is not None}) <= 1, column


def test_row_has_the_figures_of_its_case() -> None:
    report = Report(example_report())
    for row, figure in zip(report.to_rows(), report.figures, strict=True):
        assert (row["buckets"], row["concurrency"]) == (figure.case.buckets, figure.case.concurrency)
        assert (row["tps"], row["fairness_jain"]) == (figure.tps, figure.fairness)
        assert (row["longest_wait_ns"], row["verdict"]) == (figure.longest_wait_ns, figure.verified)
        assert row["replace_p99_ns"] == figure.latency["replace"].p99_ns


def test_figures_of_all_trials_together_are_those_of_the_table() -> None:
    run = EXAMPLE.runs[0]
    trials = tuple(
        replace(run.trials[0], index=number, tps=tps, longest_wait_ns=wait)
        for number, (tps, wait) in enumerate([(100.0, 5), (300.0, 9), (200.0, 7)], 1)
    )
    (row,) = case_rows(replace(EXAMPLE, runs=(replace(run, trials=trials),)))
    assert (row["trials"], row["tps"], row["longest_wait_ns"]) == (3, 200.0, 9)
    assert row["get_count"] == 3 * trials[0].latency["get"].count
    assert "worker" not in row and "trial" not in row


def test_unmeasured_case_keeps_its_error_and_has_no_figures() -> None:
    (row, *_) = case_rows(with_one(replace(EXAMPLE.runs[0], trials=(), error="no room")))
    assert (row["case_error"], row["trials"], row["tps"]) == ("no room", 0, None)
    invalid = each_trial(lambda trial: replace(trial, error="a worker died"))
    assert {(row["tps"], row["get_p99_ns"], row["transactions"]) for row in case_rows(invalid)} == {
        (None, None, None)
    }


@each_report
def test_notebook_shows_tables_and_a_few_conclusions_without_a_script(made: Callable[[], Document]) -> None:
    html = Report(made())._repr_html_()
    tags = Tags(html).names
    assert tags[0] == "article"
    assert not {"script", "style", "link", "img", "button", "html"} & {*tags}
    assert "table" in tags
    assert all(part.count("<li>") <= FIRST_FINDINGS for part in html.split('<ul class="findings">')[1:])


def test_failures_are_the_first_conclusion() -> None:
    html = report_fragment(failed_report())
    assert "FAILED" in html.split("<li>")[1]


def test_strings_from_elsewhere_are_escaped() -> None:
    host = replace(EXAMPLE.environment.host, release="<script>alert(1)</script>")
    html = report_fragment(replace(EXAMPLE, environment=replace(EXAMPLE.environment, host=host)))
    assert "script" not in Tags(html).names and "&lt;script&gt;" in html
