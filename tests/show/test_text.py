"""Tests of the report as text, brief and with all details: rules for every report."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.analysis import sentences
from sqlstress.analysis.finding import Finding
from sqlstress.report import Report, Run, Warning, read
from sqlstress.show.blocks import FIRST_FINDINGS, Column, Legend, Table, conclusions
from sqlstress.show.markdown import draw as markdown
from sqlstress.show.phrases import facts_of
from sqlstress.show.phrases import sentences as all_sentences
from sqlstress.show.text import BRIEF, WIDTH, coloured, draw, report_text
from tests.analysis.hand_made import passes, trial
from tests.example_report import assert_golden, example_report
from tests.show.variants import EXAMPLE, VARIANTS, each_run, each_trial, with_case


def check_lines(report: Report) -> None:
    """Check that all lines of a report are visible and have at most 80 columns."""
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


def test_column_with_a_foreign_name_keeps_the_width() -> None:
    column = Column("over \x1b[2J\x04", ("over", "\x1b[2J\x04"))
    assert draw(Table((column,), (("1.2",),))).splitlines() == ["over", "   ?", "----", " 1.2"]


def test_runs_of_different_settings_have_separate_tables() -> None:
    other = with_case(driver="apsw", duration_s=9.0)
    text = report_text(replace(EXAMPLE, runs=(*EXAMPLE.runs, *other.runs)))
    assert text.count(" wait ms data\n") == 2
    said = " ".join(text.split())
    assert "driver sqlite3" in said and "driver apsw" in said


def test_runs_that_differ_in_one_setting_share_a_table_and_are_compared() -> None:
    other = with_case(driver="apsw")
    text = report_text(replace(EXAMPLE, runs=(*EXAMPLE.runs, *other.runs)))
    assert text.count(" wait ms data\n") == 1
    assert "\n- driver: apsw reached 1.0 times sqlite3. Compared in" in text
    assert next(line.split()[:3] for line in text.splitlines() if line.startswith("apsw")) == [
        "apsw",
        "1",
        "1",
    ]


def test_column_of_rows_per_second_appears_if_it_fits() -> None:
    def small(run: Run) -> Run:
        case = replace(run.case, spec=replace(run.case.spec, batch=5))
        first = run.trials[0]
        workers = tuple(replace(worker, operations={"replace": 5}) for worker in first.workers)
        return replace(run, case=case, trials=(replace(first, rows_per_s=77_777.0, workers=workers),))

    text = report_text(each_run(small))
    assert "77,777" in text
    assert "2.00" not in text.split("TPS: ")[0], "the length of the windows stands in the heading"


def test_report_without_runs_has_a_note() -> None:
    empty = replace(EXAMPLE, runs=())
    assert report_text(empty).endswith("\n\nNothing was measured.\n")


PERCENTILES = re.compile(r"\bp\d[0-9.]*\b")


@pytest.mark.parametrize("make", VARIANTS.values())
def test_legend_explains_only_the_shown_percentiles(make: Callable[[], Report]) -> None:
    before, _, _ = (text := report_text(make())).partition("TPS: ")
    heading = "".join(line for line in before.splitlines() if not line.endswith("."))
    explained = re.split(r"verified\):\s", text[len(before) :])[0]
    assert set(PERCENTILES.findall(explained)) == set(PERCENTILES.findall(heading))


NARROWING = Table(
    (Column("first", ("", "first")), Column("second", ("", "second"), leaves=1)), (("1" * 50, "2" * 50),)
)


def test_legend_does_not_explain_a_dropped_column() -> None:
    legend = Legend(NARROWING, lambda table: (f"{name}: a figure" for name in table.headers))
    assert draw(legend) == "first: a figure."
    assert markdown(legend) == "first: a figure; second: a figure."


# The brief output of a terminal, and the additions of --details.


REPORTS = Path(__file__).parents[2] / "reports"
MOST_LINES = 28
"""Lines of a run with eight rows."""


def shown_at_first(*codes: str) -> int:
    known = all_sentences()
    block = conclusions([Finding(known[code], **facts_of(known[code])) for code in codes])
    assert block.first is not None
    assert len(block.later) == len(codes) - block.first
    return block.first


def test_brief_output_has_three_conclusions_and_no_minor_ones() -> None:
    assert shown_at_first("best", "plateau", "layouts", "starvation", "proof-cost") == FIRST_FINDINGS
    assert shown_at_first("best", "proof-cost", "harness-cost") == 1
    assert shown_at_first("proof-cost") == 0


def test_all_grave_findings_come_first() -> None:
    grave = ("data-wrong", "data-wrong-elsewhere", "case-failed", "interrupted", "proof-unknown")
    assert shown_at_first("best", *grave) == len(grave)
    wrong = conclusions(
        [
            Finding(sentences.best, rate=1.0, unit="pairs", where="A"),
            Finding(sentences.data_wrong, where="A", checks=()),
        ]
    ).texts
    assert wrong[0].startswith("FAILED")


def test_causes_come_before_answers_on_speed() -> None:
    causes = ("failed-statement", "suspicion", "long-hold", "open-statement")
    assert shown_at_first("starvation", *causes) == FIRST_FINDINGS
    assert shown_at_first("data-wrong", "starvation", "best", *causes[:2]) == FIRST_FINDINGS
    assert shown_at_first("data-wrong", "lost-locks", "best", *causes) == 2 + FIRST_FINDINGS


@pytest.mark.parametrize("name", VARIANTS)
def test_details_only_add_to_the_brief_output(name: str) -> None:
    report = VARIANTS[name]()
    brief, full = BRIEF.report(report).splitlines(), report_text(report).splitlines()
    *lines, closing = brief
    *marks, _ = paragraphs(BRIEF.report(report))[-1].splitlines()
    assert all(mark.startswith(("±: ", "~: ", "*: ")) for mark in marks)
    assert [line for line in lines if line not in [*full, *marks]] == []
    assert closing.startswith("Add --details") and len(brief) < len(full)


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a page."""
    return text.rstrip("\n").split("\n\n")


EXPLAINED = (
    "±: 95% interval of the typical TPS; ~: disturbed by other programs.",
    "±: 95% interval of the typical TPS.",
)


@pytest.mark.parametrize(
    ("name", "explained"), [("passes", EXPLAINED[0]), ("updates", EXPLAINED[1]), ("report", "")]
)
def test_marks_of_a_table_are_explained_in_the_brief_output(name: str, explained: str) -> None:
    *marks, _ = paragraphs(BRIEF.report(VARIANTS[name]()))[-1].splitlines()
    assert "\n".join(marks) == explained


UNEVEN = Table((Column("p99 ms"),), (("516*",),))


def test_star_of_an_uneven_p99_is_explained_in_the_brief_output() -> None:
    legend = Legend(
        UNEVEN, lambda _: ("p99: 99% of the operations", "*: in the process where p99 was highest")
    )
    page = BRIEF._page((UNEVEN, legend))
    assert paragraphs(page)[1].splitlines()[0] == "*: in the process where p99 was highest."
    assert "*: " not in BRIEF._page((NARROWING, legend))


def test_brief_output_of_the_example_equals_the_golden_file() -> None:
    assert_golden("report-at-first.txt", BRIEF.report(example_report()))


def test_run_of_eight_rows_fills_a_screen_at_most() -> None:
    report = read(REPORTS / "linux-1-and-20-files.json")
    runs = tuple(run for run in report.runs if run.case.buckets == 20)
    text = BRIEF.report(replace(report, runs=runs, planned=len(runs)))
    assert len(text.splitlines()) <= MOST_LINES


def test_eight_rows_with_marks_and_three_conclusions_fill_a_screen() -> None:
    runs = [passes(20, count, 2000.0 * min(count, 5), noise=0.3, count=10) for count in range(1, 9)]
    runs[-1] = replace(runs[-1], longer=trial(longest_wait_ns=40_000_000, seconds=2.0))
    warning = Warning(
        "sqlite-wal-reset-bug", "SQLite 3.40.1 can lose commits (WAL-reset bug). Run sqlstress hunt.", True
    )
    report = example_report()
    host = replace(report.environment.host, release="6.18.44-fc-v857")
    environment = replace(report.environment, host=host, warnings=(warning,))
    text = BRIEF.report(replace(report, runs=tuple(runs), environment=environment))
    assert text.count("\n- ") == 3
    assert "±: " in text
    assert len(text.splitlines()) <= MOST_LINES


def test_terminal_has_verdicts_and_warnings_in_colours() -> None:
    text = coloured("Warning: slow.\n 1 process ok\n 2 processes FAILED\n- it is ok so\n")
    assert text.count("\033[0m") == 3
    assert coloured("nothing to see\n") == "nothing to see\n"
