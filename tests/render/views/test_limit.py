"""How a search for the highest rate is shown, in every format."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from sqlstress.report import LimitSearch, Promise, from_json, to_json
from sqlstress.report.json_schema import report_schema
from sqlstress.show.formats import FORMATS
from sqlstress.show.github import workflow_commands
from sqlstress.show.page.html_file import report_html
from sqlstress.show.study_view import limit_plots
from sqlstress.show.text import report_text
from tests.example_report import example_report
from tests.limit_report import SEARCH, limit_report

REPORT = limit_report()


def test_its_json_is_read_as_it_was_written_and_fits_the_schema() -> None:
    assert from_json(to_json(REPORT)) == REPORT
    jsonschema.Draft202012Validator(report_schema()).validate(json.loads(to_json(REPORT)))


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_it(form: str) -> None:
    assert FORMATS[form](REPORT)
    assert FORMATS[form](limit_report({}))


def test_the_page_has_a_mark_for_every_window_and_a_line_for_the_promise() -> None:
    (plot,) = limit_plots(REPORT)
    (view,) = plot.views
    kept, broke = view.data
    assert (len(kept["x"]), len(broke["x"])) == (9, 8)
    assert view.layout["shapes"][0]["y0"] == 2.0
    assert max(kept["y"]) < 2.0 < min(broke["y"])
    assert "Windows tried" in report_html(REPORT)
    assert not list(limit_plots(example_report()))


def test_each_thing_that_is_promised_has_a_view() -> None:
    search = LimitSearch(Promise(p99_s=0.002, max_s=1.0))
    (plot,) = limit_plots(limit_report(search=search))
    assert [view.label for view in plot.views] == ["p99", "max"]


def test_windows_that_span_no_checkpoint_are_warned_of() -> None:
    few = replace(
        REPORT,
        runs=tuple(
            replace(run, trials=tuple(replace(one, workers=one.workers[:1]) for one in run.trials))
            for run in REPORT.runs
        ),
    )
    assert "Near the answer, each window spans at least 1 checkpoint" in " ".join(report_text(REPORT).split())
    assert "may span no checkpoint" in report_text(few)


def test_an_answer_that_is_not_whole_is_a_skipped_test_and_an_annotation() -> None:
    part = limit_report({1_500: [True]})
    assert "<skipped" in FORMATS["xml"](part) and "<skipped" not in FORMATS["xml"](REPORT)
    assert any("Cannot tell which rate holds" in line for line in workflow_commands(part))
    assert not any("Not known" in line for line in workflow_commands(REPORT))


def test_an_interruption_is_said() -> None:
    assert "Interrupted" in report_text(replace(REPORT, interrupted=True, limit=SEARCH))
