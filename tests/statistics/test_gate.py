"""Tests of what the gate concludes from pairs."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.gate import (
    FAIL,
    INCONCLUSIVE,
    LOOKS,
    PASS,
    UNDECIDED,
    Tolerance,
    conclude,
    geometric_means,
    is_drop,
    tolerance,
)

TEN_PERCENT = tolerance("tps", 0.10)


def around(centre: float, pairs: int = 10, spread: float = 0.02) -> list[float]:
    """Return differences whose centre is that of a ratio, evenly spread."""
    return [math.log(centre) + spread * (2 * place / (pairs - 1) - 1) for place in range(pairs)]


@pytest.mark.parametrize(
    ("centre", "verdict"),
    [(1.3, PASS), (1.0, PASS), (0.96, PASS), (0.94, UNDECIDED), (0.91, UNDECIDED), (0.89, FAIL), (0.5, FAIL)],
)
def test_the_estimate_decides_where_the_pairs_agree(centre: float, verdict: str) -> None:
    assert conclude([around(centre)], TEN_PERCENT, 0.001, last=False) == verdict


def test_what_is_undecided_at_the_last_look_is_inconclusive() -> None:
    assert conclude([around(0.92)], TEN_PERCENT, 0.008, last=True) == INCONCLUSIVE


def test_a_drop_of_the_estimate_that_may_be_chance_does_not_fail() -> None:
    scattered = around(0.85, spread=0.5)
    assert not is_drop(scattered, 0.001, TEN_PERCENT)
    assert conclude([scattered], TEN_PERCENT, 0.001, last=False) == UNDECIDED


def test_one_pair_of_ten_on_the_other_side_is_enough_to_go_on() -> None:
    agreeing = around(0.8)
    assert conclude([agreeing], TEN_PERCENT, 0.001, last=False) == FAIL
    assert conclude([[*agreeing[:-1], 0.01]], TEN_PERCENT, 0.001, last=False) == UNDECIDED


def test_half_of_what_is_allowed_is_fine() -> None:
    tps, p99 = tolerance("tps", 0.1), tolerance("p99", 0.1)
    assert (math.exp(tps.fail_below), math.exp(tps.pass_above)) == pytest.approx((0.9, 0.95))
    assert (math.exp(-p99.fail_below), math.exp(-p99.pass_above)) == pytest.approx((1.1, 1.05))


@pytest.mark.parametrize("share", [1, 1.5])
def test_where_all_of_tps_may_be_lost_nothing_fails(share: float) -> None:
    assert tolerance("tps", share) == Tolerance(-math.inf, -math.inf)


def test_a_drop_of_just_what_is_allowed_does_not_fail() -> None:
    assert not is_drop([-0.5] * 20, 0.004, Tolerance(-0.5, -0.25))


def test_a_drop_of_just_half_of_what_is_allowed_does_not_pass() -> None:
    assert conclude([[-0.25] * 20], Tolerance(-0.5, -0.25), 0.004, last=False) == UNDECIDED


def test_where_the_bound_is_no_change_there_is_no_drop() -> None:
    # The one pair that makes up for any other puts the bound at zero.
    assert not is_drop([-2.0] * 10 + [2.0], 0.004, Tolerance(-0.5, -0.25))


def test_cells_of_different_numbers_of_pairs_have_no_mean() -> None:
    with pytest.raises(ValueError, match="zip"):
        geometric_means([[1.0], [1.0, 2.0]])


def test_p99_may_rise_by_what_tps_may_fall() -> None:
    allowed = tolerance("p99", 0.10)
    for rise, verdict in ((1.04, PASS), (1.07, UNDECIDED), (1.12, FAIL)):
        assert conclude([around(1 / rise)], allowed, 0.001, last=False) == verdict


def test_several_cells_are_judged_by_their_geometric_mean() -> None:
    cells = [around(0.88), around(1.10), around(1.02)]
    assert math.exp(sum(geometric_means(cells)) / 10) == pytest.approx((0.88 * 1.10 * 1.02) ** (1 / 3))
    assert conclude(cells, TEN_PERCENT, 0.001, last=False) == PASS
    assert conclude([around(0.8)] * 3, TEN_PERCENT, 0.001, last=False) == FAIL


def test_a_single_cell_fails_only_at_alpha_over_the_number_of_cells() -> None:
    cells = [around(0.8, 20), around(1.2, 20)]
    assert conclude(cells, TEN_PERCENT, 0.004, last=False) == FAIL
    # With ten pairs no cell can be significant at half of 0.001.
    assert conclude([cell[:10] for cell in cells], TEN_PERCENT, 0.001, last=False) != FAIL


@given(st.lists(st.floats(-2, 2), min_size=10, max_size=30), st.floats(0.001, 0.05))
def test_what_fails_would_fail_with_worse_pairs_too(differences: list[float], alpha: float) -> None:
    if is_drop(differences, alpha, TEN_PERCENT):
        assert is_drop([one - 0.1 for one in differences], alpha, TEN_PERCENT)


def outcome(draw: Random, ratio: float, noise: float) -> str:
    """Return how a whole series of looks ends, on pairs of a known ratio."""
    differences: list[float] = []
    for look in LOOKS:
        differences += [draw.gauss(math.log(ratio), noise) for _ in range(look.pairs - len(differences))]
        verdict = conclude([differences], TEN_PERCENT, look.alpha, last=look is LOOKS[-1])
        if verdict != UNDECIDED:
            return verdict
    raise AssertionError("the last look decides")


@pytest.mark.parametrize(
    ("ratio", "noise", "failing"),
    [(1.0, 0.2, (0, 0.01)), (0.8, 0.1, (0.97, 1)), (0.7, 0.2, (0.95, 1))],
)
def test_a_whole_series_of_looks_errs_as_seldom_as_the_scheme_says(
    ratio: float, noise: float, failing: tuple[float, float]
) -> None:
    draw = Random(4)
    rate = sum(outcome(draw, ratio, noise) == FAIL for _ in range(300)) / 300
    assert failing[0] <= rate <= failing[1]
