"""Tests of what the pairs of an A/B test say, as figures and as a sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.ab import conclusion, differences, estimate, figure, signed
from sqlstress.report import Latency, Report
from tests.ab_report import TEST, TRIAL, ab_report, around, trial
from tests.rate_report import rate_trial

P99 = replace(TEST, metric="p99")


def said(report: Report) -> str:
    assert report.ab
    return conclusion(report, report.ab)


def test_a_figure_is_the_tps_or_the_p99_of_all_operations_together() -> None:
    assert figure(TRIAL, "tps") == TRIAL.tps
    found = figure(TRIAL, "p99")
    get, replaces = TRIAL.latency["get"].p99_ns, TRIAL.latency["replace"].p99_ns
    assert found and get and replaces and get < found <= replaces


def test_the_p99_is_of_operations_not_of_the_statements_within_them() -> None:
    brief = Latency.from_buckets({0: 1_000_000}, 1)
    kinds = {**TRIAL.latency, "UPDATE": brief}
    assert figure(replace(TRIAL, latency=kinds), "p99") == figure(TRIAL, "p99")


def test_the_p99_at_a_rate_counts_from_when_operations_were_due() -> None:
    trial = rate_trial(2_900, 3_000)
    assert trial.arrived and trial.arrived.whole
    assert figure(trial, "p99") == trial.arrived.whole.p99_ns
    assert figure(replace(trial, arrived=None), "p99") != figure(trial, "p99")


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


def test_a_pass_says_what_is_ruled_out_and_how_b_differs() -> None:
    text = said(ab_report([around(0.99, 10)]))
    assert text == "PASS: no drop of more than 10%. B's TPS is 1% lower than A's (at worst -3.9%, 10 pairs)."
    assert "B's TPS is the same as A's (at worst" in said(ab_report([[1.0] * 10]))


def test_a_pass_of_several_cells_is_one_of_their_mean() -> None:
    text = said(ab_report([around(0.99, 20), around(1.02, 20)]))
    assert text.startswith("PASS: no drop of more than 10% in the mean of 2 cells. B's TPS is ")


def test_a_failure_says_by_how_much_and_what_to_do() -> None:
    text = said(ab_report([around(0.8, 10)]))
    assert text.startswith("FAIL: B's TPS is 20% lower than A's (at best -18%, 10 pairs)")
    assert "find out why before you take B" in text


def test_a_longer_p99_fails_as_a_rise() -> None:
    report = ab_report([around(0.6, 10)], P99)
    assert "FAIL: B's p99 is" in said(report)
    assert "A's" in said(report)


def test_what_is_inconclusive_says_what_is_shown_and_what_is_possible() -> None:
    text = said(ab_report([around(1.05, 14, 1.2)]))
    assert text.startswith("INCONCLUSIVE: no drop shown, up to 54% possible, 10% is allowed. ")
    assert "B's TPS is 5% higher than A's (-54% to 2.4 times, 14 pairs)." in text
    shown = said(ab_report([around(0.87, 30, 0.1)]))
    assert shown.startswith(
        "INCONCLUSIVE: a drop of at least 9.3% shown, up to 17% possible, 10% is allowed."
    )
    rise = said(ab_report([around(1.0, 14, 0.5)], P99))
    assert rise.startswith("INCONCLUSIVE: no rise shown, up to ")


def test_a_machine_that_is_too_noisy_is_told_with_the_pairs_or_the_slices_that_it_would_take() -> None:
    text = said(ab_report([around(1.0, 100, 0.8)]))
    assert "The machine is too noisy for this question: half of the pairs lie 50% or more from" in text
    assert "if B is like A, about 240 pairs would show it (--max-pairs 240 --max-time 25m), or fewer" in text
    hopeless = said(ab_report([around(1.0, 100, 2.0)]))
    assert "about 1,500 pairs would show it. Measure longer slices (--duration 6s), or where less" in hopeless


def test_what_more_pairs_would_decide_says_how_many() -> None:
    limited = replace(TEST, max_time_s=60.0)
    assert said(ab_report([around(1.0, 30, 0.3)], limited)).endswith(
        "About 42 pairs would decide it, if it stays so (--max-time 5m)."
    )
    assert said(ab_report([around(1.0, 30, 0.3)])).endswith(" would decide it, if it stays so.")


def test_what_is_near_to_what_is_allowed_is_another_question_and_not_one_of_noise() -> None:
    for cells in ([around(0.9, 30)], [around(0.912, 30, 0.1)]):
        assert (
            "It is near what is allowed, where no number of pairs decides: ask for another --max-drop."
            in (said(ab_report(cells)))
        )


def test_before_there_are_enough_pairs_nothing_is_shown() -> None:
    text = said(ab_report([around(1.0, 5)]))
    assert text.startswith("INCONCLUSIVE: too little to show anything, 10% is allowed.")
    assert text.endswith("Nothing is shown by fewer than 10 pairs: give it more time (--max-time).")


def of_old(cells: list[list[float]], verdict: str) -> Report:
    """Return a report as it was when the estimate decided."""
    report = ab_report(cells)
    assert report.ab
    (look,) = report.ab.looks
    old = replace(look, worst=None, seconds=None, verdict=verdict)
    test = replace(report.ab, looks=(old,), verdict=verdict, order="turns", max_pairs=None, max_time_s=None)
    return replace(report, ab=test)


def test_an_old_pass_that_rules_nothing_out_stays_one_and_says_what_is_possible() -> None:
    text = said(of_old([around(1.086, 10, 1.2)], "pass"))
    assert text.startswith(
        "PASS, but only by its estimate: no drop shown, up to 67% possible. B's TPS is 8.6% hi"
    )
    clear = said(of_old([around(1.0, 10)], "pass"))
    assert clear.startswith("PASS: no drop of more than 10%. B's TPS is ")


def test_an_old_failure_that_may_be_allowed_names_the_cell_and_what_it_is_at_best() -> None:
    text = said(of_old([around(0.88, 20, 0.1), around(1.0, 20)], "fail"))
    assert text.startswith("FAIL: at 2 processes on 1 file B's TPS is 12% lower than A's (at best -")


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


@pytest.mark.parametrize("tps", [0.0, -5.0, float("inf"), float("nan")])
def test_what_has_no_logarithm_is_no_figure(tps: float) -> None:
    assert figure(replace(TRIAL, tps=tps), "tps") is None
