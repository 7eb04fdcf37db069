"""Tests of the report as text: golden files, and what holds for every report."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace

import pytest

from sqlstress.report import Report, Run
from sqlstress.show.blocks import Column, Legend, Table
from sqlstress.show.markdown import drawn as markdown
from sqlstress.show.text import WIDTH, drawn, report_text
from tests.example_report import example_report, failed_report
from tests.render.variants import (
    EXAMPLE,
    beside_report,
    classic_report,
    each_run,
    each_trial,
    passes_report,
    troubled_report,
    update_report,
    widest_report,
    with_case,
    with_one,
)

VARIANTS = {
    "report": example_report,
    "failed": failed_report,
    "passes": passes_report,
    "classic": classic_report,
    "troubled": troubled_report,
    "updates": update_report,
    "beside": beside_report,
    "widest": widest_report,
}


def check_lines(report: Report) -> None:
    """Check that a report is shown in visible lines of 80 columns."""
    text = report_text(report)
    assert max(map(len, text.split("\n"))) <= WIDTH
    assert not [
        character for character in text if character != "\n" and unicodedata.category(character)[0] == "C"
    ]


@pytest.mark.parametrize("figure", [1e308, -1e308, 1e-308, float("inf"), float("nan"), 0.0])
def test_no_figure_however_strange_breaks_the_table(figure: float) -> None:
    strange = each_trial(
        lambda trial: replace(trial, tps=figure, seconds=figure, fairness=figure, half_ratio=figure)
    )
    text = report_text(each_run(lambda run: replace(run, harness_ns=figure), strange))
    assert max(map(len, text.splitlines())) <= WIDTH


def test_escape_sequences_of_an_error_never_reach_the_terminal() -> None:
    died = replace(EXAMPLE.runs[0], trials=(), error="\x1b]0;gone\x07worker\x1b[2J 1\r\ndied")
    assert "Not measured at 1 process on 1 file: worker 1 died." in report_text(with_one(died))


def test_nor_do_those_of_a_column_that_is_called_by_a_name_from_elsewhere() -> None:
    column = Column("over \x1b[2J\x04", ("over", "\x1b[2J\x04"))
    assert drawn(Table((column,), (("1.2",),))).splitlines() == ["over", "   ?", "----", " 1.2"]


def test_runs_of_different_settings_stand_in_tables_of_their_own() -> None:
    other = with_case(driver="apsw", duration_s=9.0)
    text = report_text(replace(EXAMPLE, runs=(*EXAMPLE.runs, *other.runs)))
    assert text.count("veri-") == 2
    said = " ".join(text.split())
    assert "driver sqlite3" in said and "driver apsw" in said


def test_runs_that_differ_in_one_setting_share_a_table_of_which_the_first_sentence_compares_them() -> None:
    other = with_case(driver="apsw")
    text = report_text(replace(EXAMPLE, runs=(*EXAMPLE.runs, *other.runs)))
    assert text.count("veri-") == 1
    assert "\n- driver apsw: 1.0 times sqlite3. Compared in transactions" in text
    assert next(line.split()[:3] for line in text.splitlines() if line.startswith("apsw")) == [
        "apsw",
        "1",
        "1",
    ]


def test_a_column_of_rows_a_second_stands_where_it_fits() -> None:
    def small(run: Run) -> Run:
        case = replace(run.case, spec=replace(run.case.spec, batch=5))
        first = run.trials[0]
        workers = tuple(replace(one, operations={"replace": 5}) for one in first.workers)
        return replace(run, case=case, trials=(replace(first, rows_per_s=77_777.0, workers=workers),))

    text = report_text(each_run(small))
    assert "77,777" in text
    assert "2.00" not in text.split("TPS: ")[0], "the length of the windows stands in the heading"


def test_a_report_without_runs_says_so() -> None:
    empty = replace(EXAMPLE, runs=())
    assert report_text(empty).endswith("\n\nNothing was measured.\n")


PERCENTILES = re.compile(r"\bp\d[0-9.]*\b")


@pytest.mark.parametrize("make", VARIANTS.values())
def test_the_legend_explains_the_percentiles_that_are_shown_and_no_others(make: Callable[[], Report]) -> None:
    before, _, _ = (text := report_text(make())).partition("TPS: ")
    heading = "".join(line for line in before.splitlines() if not line.endswith("."))
    explained = text[len(before) :].partition("verified: ")[0]
    assert set(PERCENTILES.findall(explained)) == set(PERCENTILES.findall(heading))


NARROWING = Table(
    (Column("first", ("", "first")), Column("second", ("", "second"))), (("1" * 50, "2" * 50),), ("second",)
)


def test_a_legend_does_not_explain_a_column_that_left_the_table() -> None:
    legend = Legend(NARROWING, lambda table: (f"{name}: a figure" for name in table.headers))
    assert drawn(legend) == "first: a figure."
    assert markdown(legend) == "first: a figure; second: a figure."
