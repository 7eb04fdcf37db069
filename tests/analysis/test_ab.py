"""Tests of what the pairs of an A/B test say, as figures and as a sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.ab import conclusion, differences, estimate, figure, signed
from sqlstress.report import Report
from tests.ab_report import TEST, TRIAL, ab_report, around, trial

P99 = replace(TEST, metric="p99")


def said(report: Report) -> str:
    assert report.ab
    return conclusion(report, report.ab)


def test_a_figure_is_the_tps_or_the_p99_of_all_operations_together() -> None:
    assert figure(TRIAL, "tps") == TRIAL.tps
    found = figure(TRIAL, "p99")
    get, replaces = TRIAL.latency["get"].p99_ns, TRIAL.latency["replace"].p99_ns
    assert found and get and replaces and get < found <= replaces


@pytest.mark.parametrize("metric", ["tps", "p99"])
def test_a_trial_in_which_nothing_was_done_has_no_figure(metric: str) -> None:
    assert figure(replace(TRIAL, tps=0.0, latency={}), metric) is None


def test_a_difference_is_below_zero_where_b_is_worse_by_either_metric() -> None:
    slower = ab_report([[0.5] * 10])
    for test in (TEST, P99):
        ((one, *others),) = differences(slower, test)
        assert one < 0
        assert others == [one] * 9
        assert (estimate([one], test.metric, 0.01).ratio < 1) == (test is TEST)


def test_only_pairs_that_every_cell_has_count() -> None:
    report = ab_report([around(1, 10), around(1, 10)])
    broken = replace(
        report.runs[3], trials=(replace(report.runs[3].trials[0], error="late"), *report.runs[3].trials[2:])
    )
    found = differences(replace(report, runs=(*report.runs[:3], broken)), TEST)
    assert [len(cell) for cell in found] == [8, 8]


def test_an_estimate_has_no_interval_before_there_are_six_pairs() -> None:
    assert estimate([0.1] * 5, "tps", 0.01).low is None
    assert estimate([0.1] * 6, "tps", 0.01).low == pytest.approx(1.105, 1e-3)


def test_a_pass_says_how_b_differs_and_what_is_ruled_out() -> None:
    text = said(ab_report([around(0.99, 10)]))
    assert text.startswith("PASS: B's TPS is 1% lower than A's (95% interval -")
    assert text.endswith("10 pairs). That is no drop of 10%.")


def test_a_failure_says_by_how_much_and_what_to_do() -> None:
    text = said(ab_report([around(0.8, 10)]))
    assert text.startswith("FAIL: B's TPS is 20% lower than A's (95% interval -2")
    assert "find out why before you take B" in text


def test_a_longer_p99_fails_as_a_rise() -> None:
    report = ab_report([around(0.6, 10)], P99)
    assert "FAIL: B's p99 is" in said(report)
    assert "A's" in said(report)


def test_what_is_inconclusive_says_how_to_find_out() -> None:
    text = said(ab_report([around(0.93, 30)]))
    assert text.startswith("INCONCLUSIVE: B's TPS is 7")
    assert "longer slices (--duration)" in text


def test_a_single_cell_that_fails_is_named() -> None:
    text = said(ab_report([around(0.8, 20), around(1.3, 20)]))
    assert text.startswith("FAIL: at 2 processes on 1 file B's TPS is 20% lower")
    assert "4 processes" not in text


def test_what_was_stopped_early_is_undecided() -> None:
    assert said(ab_report([[1.0] * 3], decided=False)).startswith("Undecided: so far B's TPS is")
    assert said(ab_report([[1.0]], decided=False)).endswith(
        "(1 pair). That is too little to conclude anything from."
    )
    assert said(ab_report([[]], decided=False)) == "Undecided: not one pair was measured."


def test_wrong_data_is_told_instead_of_figures() -> None:
    report = ab_report(
        [around(1.0, 10)], replace(TEST, verdict="fail", reason="the data of B is wrong"), decided=False
    )
    assert said(report) == "FAIL: the data of B is wrong. No figure counts before that is explained."


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.0, "0%"), (1.0312, "+3.1%"), (0.76, "-24%"), (1.00001, "0%"), (6.3, "6.3 times"), (0.02, "-98%")],
)
def test_a_ratio_is_written_as_a_change(ratio: float, text: str) -> None:
    assert signed(ratio) == text


def test_a_trial_of_another_pair_is_no_partner() -> None:
    report = ab_report([[1.0] * 2], decided=False)
    lone = replace(report.runs[1], trials=(trial(5),))
    assert differences(replace(report, runs=(report.runs[0], lone)), TEST) == [[]]
