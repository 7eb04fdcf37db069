"""Presentation of A/B tests and of searches for the highest rate."""

from dataclasses import replace

import pytest

from sqlstress.report import Arm, LimitSearch, Promise, Report, SqliteBuild
from sqlstress.show.formats import FORMATS
from sqlstress.show.github import workflow_commands
from sqlstress.show.page.html_file import report_html
from sqlstress.show.study_view import limit_plots
from sqlstress.show.text import WIDTH, report_text
from tests.ab_report import TEST, ab_report, around
from tests.example_report import example_report
from tests.limit_report import SEARCH, limit_report
from tests.show.variants import each_trial

TWO_CELLS = ab_report([around(0.8, 20), around(1.02, 20)])


BUILD = SqliteBuild("sqlite3", "3.14.0", "3.51.3", "", ())
OLD, NEW = (Arm(name, (), f"{name}/bin/python", "CPython 3.14.0", "0.2.0", (BUILD,)) for name in ("A", "B"))


@pytest.mark.parametrize(
    "report",
    [
        ab_report([around(0.9, 30)]),
        ab_report([around(9.0, 10)], replace(TEST, metric="p99", arms=(OLD, NEW))),
        ab_report([[1.0, 1.1]], decided=False),
        ab_report([[]], decided=False),
        replace(TWO_CELLS, interrupted=True, runs=TWO_CELLS.runs[:1]),
        replace(TWO_CELLS, runs=()),
        replace(TWO_CELLS, runs=tuple(replace(run, trials=(), error="no space") for run in TWO_CELLS.runs)),
    ],
    ids=["one cell", "p99", "early", "no pair", "one arm", "nothing", "failed"],
)
def test_any_a_b_test_is_shown_within_80_columns_and_with_its_verdict(report: Report) -> None:
    text = report_text(report)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert any(word in text for word in ("PASS", "FAIL", "INCONCLUSIVE", "Undecided"))


def test_equal_arms_are_mentioned() -> None:
    same = tuple(replace(run, case=TWO_CELLS.runs[0].case) for run in TWO_CELLS.runs)
    assert "A and B are the same: any difference is chance." in report_text(replace(TWO_CELLS, runs=same))


def test_each_python_is_named_with_its_version() -> None:
    report = ab_report([around(1.0, 10)], replace(TEST, arms=(OLD, NEW)))
    assert "B: B/bin/python (CPython 3.14.0, sqlstress 0.2.0)." in report_text(report)


# Searches for the highest rate.


REPORT = limit_report()


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_shows_a_search_without_rates(form: str) -> None:
    assert FORMATS[form](limit_report({}))


def test_page_has_a_mark_for_every_window_and_a_line_for_the_promise() -> None:
    (plot,) = limit_plots(REPORT)
    (view,) = plot.views
    kept, broke = view.data
    assert (len(kept["x"]), len(broke["x"])) == (9, 8)
    assert view.layout["shapes"][0]["y0"] == 2.0
    assert max(kept["y"]) < 2.0 < min(broke["y"])
    assert "Windows tried" in report_html(REPORT)
    assert not list(limit_plots(example_report()))


def test_each_promise_has_a_view() -> None:
    search = LimitSearch(Promise(p99_s=0.002, max_s=1.0))
    (plot,) = limit_plots(limit_report(search=search))
    assert [view.label for view in plot.views] == ["p99", "max"]


def test_windows_without_a_checkpoint_are_a_warning() -> None:
    few = each_trial(lambda trial: replace(trial, workers=trial.workers[:1]), REPORT)
    assert "Near the answer, each window spans at least 1 checkpoint" in " ".join(report_text(REPORT).split())
    assert "may contain no checkpoint" in report_text(few)


def test_incomplete_answer_is_a_skipped_test_and_an_annotation() -> None:
    part = limit_report({1_500: [True]})
    assert "<skipped" in FORMATS["xml"](part) and "<skipped" not in FORMATS["xml"](REPORT)
    assert any("Cannot tell which rate holds" in line for line in workflow_commands(part))
    assert not any("Not known" in line for line in workflow_commands(REPORT))


def test_interruption_is_mentioned() -> None:
    assert "Interrupted" in report_text(replace(REPORT, interrupted=True, limit=SEARCH))
