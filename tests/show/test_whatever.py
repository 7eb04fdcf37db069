"""Every format keeps its rules for arbitrary reports; a report is drawn once for all formats, because drawing
is slow.
"""

import pytest
from hypothesis import given, settings

from sqlstress.report import Report
from sqlstress.show.markdown import report_markdown
from sqlstress.show.page.html_file import report_html
from tests.drawing import examples
from tests.show.page.test_html_file import check_markup
from tests.show.test_csv_file import check_numbers
from tests.show.test_github import kinds
from tests.show.test_junit import check_rules
from tests.show.test_markdown import check_markdown
from tests.show.test_text import check_lines
from tests.show.test_trackers import WRITERS, check_names, parse
from tests.strategies import reports

CHECKS = (check_lines, check_numbers, check_rules, check_names, kinds)


@pytest.mark.thorough
@settings(max_examples=examples(1.5))
@given(reports)
def test_every_format_keeps_its_rules_for_any_report(report: Report) -> None:
    for check in CHECKS:
        check(report)
    check_markdown(report_markdown(report))
    for write in WRITERS:
        parse(write(report))


@settings(max_examples=examples(0.25))
@given(reports)
def test_page_of_any_report_has_only_our_markup(report: Report) -> None:
    check_markup(report_html(report))
