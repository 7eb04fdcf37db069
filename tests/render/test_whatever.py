"""Whatever a report says, every format keeps its rules; it is drawn once for all, which takes the time."""

from __future__ import annotations

from hypothesis import given, settings

from sqlstress.report import Report
from sqlstress.show.page.html_file import report_html
from tests.drawing import examples
from tests.render.ci.test_github import kinds
from tests.render.ci.test_junit import check_rules
from tests.render.ci.test_names import check_names
from tests.render.ci.test_trackers import WRITERS, parsed
from tests.render.page.test_document import check_markup
from tests.render.test_csvfile import check_numbers
from tests.render.test_markdown import check_no_markup, check_tables
from tests.render.test_text import check_lines
from tests.strategies import reports

CHECKS = (check_lines, check_tables, check_no_markup, check_numbers, check_rules, check_names, kinds)


@settings(max_examples=examples(1.5))
@given(reports)
def test_whatever_the_report_every_format_keeps_its_rules(report: Report) -> None:
    for check in CHECKS:
        check(report)
    for write in WRITERS:
        parsed(write(report))


@settings(max_examples=examples(0.25))
@given(reports)
def test_whatever_the_report_the_page_is_made_of_our_own_markup(report: Report) -> None:
    check_markup(report_html(report))
