"""Tests of reports side by side: golden files, and rules for all reports."""

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlstress.analysis.comparison import compare
from sqlstress.analysis.differences import LETTERS
from sqlstress.experiments.classics.spec import Picks
from sqlstress.report import Check, Latency, Report, Run, Verdict, Warning
from sqlstress.report.case import Case
from sqlstress.show.comparison_view import tables
from sqlstress.show.markdown import comparison_markdown
from sqlstress.show.text import WIDTH, comparison_text
from tests import strategies
from tests.analysis.comparison.sides import WINDOWS, comparison, library, report, settings_read_back
from tests.analysis.hand_made import run, trial
from tests.drawing import CHARACTERS, examples
from tests.published import REPORTS
from tests.show.variants import (
    EXAMPLE,
    UNKNOWN,
    classic_report,
    each_run,
    each_trial,
    update_report,
    with_case,
)
from tests.strategies import cases, reports

MACOS, WINDOWS_1 = REPORTS["003-macos-1-file"], REPORTS["003-windows-1-file"]
FILES_20 = REPORTS["003-macos-20-files"]


CLASSIC = with_case(classic_report(), spec=MACOS.runs[0].case.spec)


def test_spread_of_several_trials_has_a_column() -> None:
    effective = settings_read_back()
    spread, one = (
        report(run(1, 2, *trials))
        for trials in (
            [trial(tps, effective=effective) for tps in (90, 100, 110)],
            [trial(100, effective=effective)],
        )
    )
    rows = [line.split() for line in comparison_text(comparison(one, spread)).splitlines()]
    assert next(row for row in rows if row[:2] == ["1", "2"])[:6] == ["1", "2", "100", "100", "~1.00", "±10%"]
    assert "±" not in comparison_text(comparison(one, one))


def slower(factor: float, report: Report = EXAMPLE) -> Report:
    return each_trial(lambda trial: replace(trial, tps=factor * trial.tps), report)


VARIANTS = {
    "published": comparison(MACOS, WINDOWS_1, CLASSIC),
    "anyway": comparison(MACOS, WINDOWS_1, CLASSIC, FILES_20, anyway=True),
    "machines": comparison(
        EXAMPLE,
        slower(
            0.8,
            replace(
                EXAMPLE,
                environment=replace(
                    EXAMPLE.environment, sync=WINDOWS, builds=library(version="3.53.4", source_id="x")
                ),
            ),
        ),
    ),
}


def test_warning_of_several_reports_appears_once() -> None:
    nothing = Warning("x", "A sync does nothing.", serious=True)
    known = replace(EXAMPLE.environment, warnings=(nothing, nothing))
    one = replace(EXAMPLE, environment=known)
    assert "- A and B: A sync does nothing.\n" in comparison_text(comparison(one, one))


def test_unknown_environment_is_called_unknown() -> None:
    text = comparison_text(comparison(EXAMPLE, replace(EXAMPLE, environment=UNKNOWN)))
    (line,) = [line for line in text.splitlines() if line.startswith("B  report 1")]
    assert line.split()[3:] == ["macOS", "unknown", "unknown", "unknown", "unknown"]
    assert "None" not in text


def test_failed_case_has_its_reason_in_the_cell() -> None:
    run = EXAMPLE.runs[0]
    (trial,) = run.trials
    without = {
        "failed": replace(run, trials=(), error="killed"),
        "skipped": replace(run, trials=(), skipped="needless"),
        "timeout": replace(run, trials=(replace(trial, outcome="timeout"),)),
        "limit": replace(run, trials=(replace(trial, outcome="limit"),)),
        "wrong": replace(
            run, trials=(replace(trial, verdict=Verdict((Check("last write", "failed"),)), outcome="limit"),)
        ),
    }
    for word, other in without.items():
        text = comparison_text(comparison(EXAMPLE, replace(EXAMPLE, runs=(other,)), anyway=True))
        assert f" {word} " in text and "B/A" not in text.split("TPS: ")[0]


def test_many_reports_have_several_tables_each_with_the_first_report() -> None:
    text = comparison_text(comparison(*[slower(1 + n / 10) for n in range(len(LETTERS))]))
    headings = [line for line in text.splitlines() if " A Linux " in line]
    assert len(headings) == 9
    assert " X Linux  Y Linux " in headings[-2] and " Z Linux " in headings[-1]
    assert max(map(len, text.splitlines())) <= WIDTH


def test_figures_that_are_too_wide_together_have_several_tables() -> None:
    report = update_report()
    (compared,) = comparison(report, report, report, report).tables
    headers = [table.headers for table in tables(compared)]
    assert max(map(len, comparison_text(comparison(*[report] * 4)).splitlines())) <= WIDTH
    assert {f"{letter} update p99 ms" for letter in "ABCD"} < {
        name for heading in headers for name in heading
    }


def test_widest_figures_of_four_reports_fit() -> None:
    def widest(run: Run) -> Run:
        trial = run.trials[0]
        huge = Latency(1, 9e17, 9e17, 9e17, None, 1)
        latency = {"replace": huge, "get": huge}
        case = replace(run.case, buckets=10_000 * run.case.buckets, concurrency=1000 * run.case.concurrency)
        return replace(run, case=case, trials=(replace(trial, tps=9_999_999.0, latency=latency),))

    report = each_run(widest)
    tiny = slower(1e-12, report)
    text = comparison_text(comparison(tiny, report, report, report))
    assert "9,999,999" in text and "e+18" not in text
    assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize(
    ("ours", "others", "heading", "case"),
    [
        ([4], [4], "by 4 processes", "no-key, ulid"),
        ([1, 4], [1, 4], "", "no-key, ulid, 4 processes"),
        ([4], [0], "", "no-key, ulid"),
    ],
)
def test_single_number_of_processes_appears_once(
    ours: list[int], others: list[int], heading: str, case: str
) -> None:
    work = Case(workload="keys", spec=Picks("no-key", "ulid"))
    one, other = (
        report(*(run(1, count, trial(5), case=work) for count in counts)) for counts in (ours, others)
    )
    compared = comparison(one, other).tables[0]
    table = next(tables(compared))
    assert (table.columns[0].heading[0], table.rows[-1][0]) == (heading, case)


def test_hostile_report_adds_no_markup() -> None:
    host = replace(EXAMPLE.environment.host, system="<b>\x1b[31m|Linux")
    hostile = replace(EXAMPLE, environment=replace(EXAMPLE.environment, host=host), published="[x](y)\x1b]0;")
    comparison = compare([("a|b", hostile), ("<i>", hostile)])
    assert "\x1b" not in comparison_text(comparison)
    page = comparison_markdown(comparison)
    assert "<b>" not in page and "<i>" not in page and "[x](y)" not in page and "a|b" not in page


@st.composite
def related(draw: st.DrawFn) -> list[Report]:
    """Return reports that have cases in common, with any results."""
    shared = draw(st.lists(cases, min_size=1, max_size=3))
    drawn = draw(st.lists(reports, min_size=2, max_size=4))
    trial = st.builds(replace, strategies.trials, error=st.none(), tps=st.floats(1e-300, 1e300))
    runs = st.lists(st.builds(Run, st.sampled_from(shared), st.tuples(trial)), max_size=3)
    return [replace(report, runs=(*report.runs, *draw(runs))) for report in drawn]


@pytest.mark.thorough
@settings(
    max_examples=examples(0.25), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(related(), st.booleans(), st.text(CHARACTERS, max_size=30))
def test_any_reports_are_shown_in_visible_lines_of_80_columns(
    found: list[Report], anyway: bool, name: str
) -> None:
    comparison = compare([(name, report) for report in found], anyway)
    text = comparison_text(comparison)
    assert max(map(len, text.split("\n"))) <= WIDTH
    assert not [char for char in text if char != "\n" and unicodedata.category(char)[0] == "C"]
    assert comparison_markdown(comparison).endswith("\n")
