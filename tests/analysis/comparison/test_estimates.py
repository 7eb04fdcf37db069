"""Estimated ratios of two reports from their trials, and the cases where no verdict is possible."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.analysis.baseline import check
from sqlstress.analysis.comparison import comparison_findings, logarithms, rate_verdict
from sqlstress.report import Report
from sqlstress.statistics.compare import DIFFERENT, EQUAL, TOO_FEW, UNCLEAR, Ratio, verdict, without_interval
from tests.ab_report import around
from tests.analysis.comparison.sides import report, settings_read_back, several, side_by_side
from tests.analysis.hand_made import run, trial
from tests.example_report import assert_golden_texts

EFFECTIVE = settings_read_back()
rates = st.lists(st.floats(1, 1e6), min_size=5, max_size=9)


def report_of(*cases: list[float]) -> Report:
    return report(*several(cases, effective=EFFECTIVE))


def first_conclusion(first_report: Report, second_report: Report) -> str:
    return next(iter(comparison_findings(side_by_side(first_report, second_report)))).text


BASE = report_of(around(100, 6, 0.03))


ONE_AND_20_FILES = [
    report(
        *several([around(rate, 9)], effective=EFFECTIVE), *several([around(100, 9)], 20, effective=EFFECTIVE)
    )
    for rate in (100, 50)
]
TWO_CASES = [report_of(around(rate, 4), around(rate, 4)) for rate in (100, 50)]
TWENTY_CASES = report_of(*[around(100, 4)] * 20)
COMPARED = {
    "different": (BASE, report_of(around(80, 6, 0.03))),
    "equal": (BASE, report_of(around(101, 6, 0.03))),
    "unclear": (BASE, report_of(around(80, 6, 2.0))),
    "one trial": (report_of([100.0]), report_of([50.0])),
    "three trials": (report_of([100.0] * 3), report_of([50.0] * 3)),
    "enough trials": (report_of(around(100, 4)), report_of(around(50, 4))),
    # All claims together share a single error rate.
    "enough trials for one case, of two": (TWO_CASES[0], TWO_CASES[1]),
    "enough trials for one case, of 20": (TWENTY_CASES, TWENTY_CASES),
    "a verdict each": (ONE_AND_20_FILES[0], ONE_AND_20_FILES[1]),
}


def test_conclusion_follows_from_the_trials_of_two_cases() -> None:
    assert_golden_texts(
        "compared.txt", {name: first_conclusion(*reports) for name, reports in COMPARED.items()}
    )


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (Ratio(0.5, 0.4, 0.6, 9), DIFFERENT),
        (Ratio(1.5, 1.01, 2.0, 9), DIFFERENT),
        (Ratio(1.0, 0.91, 1.11, 9), EQUAL),
        (Ratio(1.0, 0.89, 1.05, 9), UNCLEAR),
        (Ratio(1.0, 0.95, 1.12, 9), UNCLEAR),
        (Ratio(1.0, 0.7, 1.2, 9), UNCLEAR),
        (without_interval(0.1), TOO_FEW),
    ],
)
def test_verdict_follows_from_the_interval(ratio: Ratio, expected: str) -> None:
    assert rate_verdict(ratio) == expected


def test_small_difference_has_the_requested_verdict() -> None:
    small = Ratio(1.02, 1.01, 1.03, 9)
    assert verdict(small, 0.1) == EQUAL
    assert verdict(small, 0.1, slight=DIFFERENT) == DIFFERENT
    assert verdict(small, 0.02) == DIFFERENT
    assert verdict(None, 0.1) == TOO_FEW


@given(rates, rates)
def test_compare_and_check_estimate_the_same(before: list[float], after: list[float]) -> None:
    first_report, second_report = report_of(before), report_of(after)
    (case,) = check(first_report, second_report, "tps", 0.1).cases
    estimated = side_by_side(first_report, second_report).estimate(0, 1)
    assert estimated and (estimated.estimate, estimated.low, estimated.high) == (
        case.ratio,
        case.low,
        case.high,
    )


def test_case_with_an_idle_trial_has_no_interval() -> None:
    stood = run(1, 1, trial(100.0), trial(0.0), trial(120.0))
    assert logarithms(stood) == []
    assert logarithms(replace(stood, trials=stood.trials[::2])) != []
    estimated = side_by_side(report(stood), report(stood)).estimate(0, 1)
    assert estimated == without_interval(1.0)


def test_comparison_of_many_trials_is_fast() -> None:
    many = report_of([100.0 + n for n in range(5000)])
    assert "about equal" in first_conclusion(many, many)
