"""Tests of what is said of the totals: the best point, the plateau, the layouts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.advice import advise
from sqlstress.analysis.group import group_runs
from sqlstress.report import Check, Verdict
from sqlstress.report.case import Case
from tests.analysis.hand_made import EXAMPLE, curve, findings, run, trial

WRONG = Verdict((Check("last write", "failed", 10, 1),))


def test_the_best_point_is_named_with_its_layout_and_rounded_total() -> None:
    told = findings(*curve(1, 1000, 900), *curve(20, 1100, 12_345))
    assert told["best"] == "Best: 12,300 transactions a second, with 2 processes on 20 files."


def test_one_point_alone_has_no_best_and_no_plateau() -> None:
    assert not findings(*curve(1, 1000)).keys() & {"best", "plateau", "still-rising", "layouts"}


def test_a_total_is_the_median_of_the_trials() -> None:
    told = findings(run(1, 1, trial(500)), run(1, 2, trial(100), trial(9000), trial(700)))
    assert told["best"] == "Best: 700 transactions a second, with 2 processes on 1 file."


@pytest.mark.parametrize("doubtful", [{"verdict": WRONG}, {"error": "worker 1 died"}, {"tps": float("inf")}])
def test_a_figure_that_cannot_be_believed_is_never_the_best(doubtful: dict[str, object]) -> None:
    best = replace(trial(99_000), **doubtful)  # type: ignore[arg-type]
    told = findings(*curve(1, 1000, 900), run(1, 3, best))
    assert told["best"] == "Best: 1,000 transactions a second, with 1 process on 1 file."


def test_pairs_are_called_pairs() -> None:
    runs = [replace(one, case=replace(one.case, workload="classic")) for one in curve(1, 1000, 900)]
    assert "1,000 pairs a second" in findings(*runs)["best"]


def test_the_plateau_begins_at_the_smallest_concurrency_within_five_percent_of_the_best() -> None:
    told = findings(*curve(1, 600, 951, 990, 1000), *curve(20, 100, 200, 300, 299))
    assert told["plateau"] == (
        "Adding processes stopped helping after 2 processes on 1 file and after 3 processes on 20 files: "
        "by then the total was within 5% of the best."
    )
    assert "still-rising" not in told


def test_a_total_that_still_rises_has_no_plateau() -> None:
    told = findings(*curve(1, 600, 900, 949, 1000))
    assert "plateau" not in told
    assert told["still-rising"] == (
        "The total still rose at the most that was measured, 4 processes on 1 file: "
        "try more with --concurrency."
    )


def test_two_points_are_enough_to_see_a_rise() -> None:
    assert "2 processes on 20 files" in findings(*curve(20, 1000, 1100))["still-rising"]


def test_a_layout_measured_at_one_concurrency_neither_rises_nor_stops() -> None:
    told = findings(*curve(1, 1000), *curve(20, 2000))
    assert not told.keys() & {"plateau", "still-rising"}


def test_layouts_are_compared_at_the_largest_common_concurrency_and_where_they_differ_most() -> None:
    told = findings(*curve(1, 1000, 1000, 1000, 9000), *curve(20, 500, 2300, 1870))
    assert told["layouts"] == (
        "Compared with 1 file: 20 files gave 1.9 times the throughput at 3 processes "
        "(2.3 times at 2, the most)."
    )


def test_the_highest_ratio_is_not_repeated_when_it_is_that_of_the_largest_concurrency() -> None:
    told = findings(*curve(1, 1000, 1000), *curve(5, 900, 1500), *curve(20, 900, 1900))
    assert told["layouts"] == (
        "Compared with 1 file: 5 files gave 1.5 times the throughput at 2 processes and "
        "20 files gave 1.9 times the throughput at 2 processes."
    )


@pytest.mark.parametrize("others", [(), (run(20, 7),)])
def test_layouts_without_a_common_concurrency_are_not_compared(others: tuple[object, ...]) -> None:
    assert "layouts" not in findings(*curve(1, 1000, 1000), *others)  # type: ignore[arg-type]


def test_runs_of_other_settings_are_another_group() -> None:
    runs = (*curve(1, 1000, 900), *(run(1, n, case=Case(duration_s=9.0)) for n in (1, 2)), *curve(20, 1000))
    assert [len(one.runs) for one in group_runs(runs)] == [3, 2]
    assert [finding.code for finding in advise(replace(EXAMPLE, runs=runs))].count("best") == 2
