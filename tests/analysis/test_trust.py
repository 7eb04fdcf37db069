"""Tests of what qualifies the figures: steadiness, spread, and the cost of measuring."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.report import Trial
from sqlstress.report.case import Arrivals, Case
from tests.analysis.hand_made import CALM, findings, run, trial

TWO = tuple(replace(CALM.workers[0], worker=number) for number in (1, 2))


def proving(*shares: float) -> Trial:
    workers = tuple(
        replace(TWO[0], worker=number, proof_share=share) for number, share in enumerate(shares, 1)
    )
    return trial(workers=workers)


@pytest.mark.parametrize(
    ("ratio", "change"),
    [(0.77, "23% slower than"), (1.5, "50% faster than"), (142.0, "140 times as fast as")],
)
def test_halves_that_differ_are_not_steady(ratio: float, change: str) -> None:
    told = findings(run(1, 2, trial(half_ratio=0.95)), run(1, 4, trial(half_ratio=ratio)))
    assert told["not-steady"] == (
        f"Not steady at 4 processes on 1 file: the second half of the window was up to {change} "
        "the first. Measure longer (--duration)."
    )


@pytest.mark.parametrize("ratio", [None, 0.91, 1.09])
def test_halves_that_hardly_differ_are_steady(ratio: float | None) -> None:
    assert "not-steady" not in findings(run(1, 2, trial(half_ratio=ratio)))


def test_the_halves_that_differ_most_give_the_figure() -> None:
    told = findings(
        run(1, 2, trial(half_ratio=1.2)), run(1, 4, trial(half_ratio=0.6)), run(1, 8, trial(half_ratio=0.8))
    )
    assert "at 2, 4 and 8 processes" in told["not-steady"] and "up to 40% slower" in told["not-steady"]


def test_passes_that_do_not_agree_on_it_are_noise() -> None:
    told = findings(run(1, 2, trial(half_ratio=1.4), trial(half_ratio=0.7), trial(half_ratio=1.3)))
    assert "not-steady" not in told
    told = findings(run(1, 2, trial(half_ratio=1.4), trial(half_ratio=1.2), trial(half_ratio=1.3)))
    assert "up to 30% faster" in told["not-steady"]


def test_two_trials_that_differ_say_by_how_much_and_more_of_them_have_an_interval() -> None:
    told = findings(run(1, 1, trial(100), trial(101)), run(1, 2, trial(80), trial(110)))
    assert told["spread"] == "Trials of the same case differ by up to 32% (2 processes on 1 file)."
    assert "spread" not in findings(run(1, 2, trial(100), trial(80), trial(110)))


def test_two_trials_are_enough_for_a_spread() -> None:
    assert "up to 67%" in findings(run(1, 1, trial(100), trial(200)))["spread"]


def test_single_trials_have_no_spread() -> None:
    assert "spread" not in findings(run(1, 1), run(1, 2, trial(5), trial(9, error="worker 1 died")))


def test_the_harness_cost_is_told_where_its_share_is_greatest() -> None:
    slow = trial(20_000, workers=TWO)
    told = findings(run(1, 1, trial(50_000), harness_ns=1000.0), run(1, 2, slow, harness_ns=1100.0))
    assert told["harness-cost"] == (
        "The harness itself took at most 5% of the processes' time (at 1 process on 1 file); "
        "with a store that does nothing it takes 1.0 µs for each transaction."
    )


def test_what_the_processes_measured_of_the_harness_counts_where_it_is_more() -> None:
    busy = tuple(
        replace(worker, harness_share=share) for worker, share in zip(TWO, (0.05, 0.07), strict=True)
    )
    slow = trial(20_000, workers=busy)
    told = findings(run(1, 1, trial(50_000), harness_ns=1000.0), run(1, 2, slow, harness_ns=1100.0))
    assert told["harness-cost"].startswith(
        "The harness itself took at most 6% of the processes' time (at 2 processes on 1 file); "
    )


def test_the_harness_cost_is_never_more_than_all_of_the_time() -> None:
    told = findings(run(1, 1, trial(50_000), harness_ns=86_000.0))
    assert "at most 100% of the processes' time" in told["harness-cost"]


@pytest.mark.parametrize("case", [Case(driver="dry"), Case()])
def test_the_harness_cost_is_left_out_where_it_is_unknown_or_everything(case: Case) -> None:
    cost = 1000.0 if case.driver == "dry" else None
    assert "harness-cost" not in findings(run(1, 1, case=case, harness_ns=cost))


def test_a_proof_over_five_percent_of_the_window_is_told() -> None:
    told = findings(run(1, 1, proving(0.02)), run(1, 2, proving(0.05, 0.09)))
    assert told["proof-cost"] == (
        "The proof took up to 7% of the window (at 2 processes on 1 file): --verify none measures without it."
    )


def test_a_proof_of_five_percent_is_not() -> None:
    assert "proof-cost" not in findings(run(1, 2, proving(0.03, 0.07)))


def test_at_a_rate_chance_makes_halves_differ_and_nothing_is_said_of_it() -> None:
    unsteady = run(1, 2, trial(half_ratio=0.5))
    assert "not-steady" in findings(unsteady)
    due = replace(unsteady, case=replace(unsteady.case, arrivals=Arrivals(20)))
    assert "not-steady" not in findings(due)
