"""Conclusions of the gate from pairs."""

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.statistics.compare import hodges_lehmann, signed_rank_bounds
from sqlstress.statistics.sequential import (
    ALPHA,
    FAIL,
    FASTER,
    MOST,
    PASS,
    SLOWER,
    UNCLEAR,
    UNDECIDED,
    cell_alpha,
    conclude,
    direction,
    direction_alpha,
    geometric_means,
    looks,
    rules_out_drop,
    shows_drop,
    tolerance,
)
from tests.drawing import examples

TEN_PERCENT = tolerance("tps", 0.10)


def around(centre: float, pairs: int = 10, spread: float = 0.02) -> list[float]:
    """Return evenly spread differences around the logarithm of a ratio."""
    return [math.log(centre) + spread * (2 * place / (pairs - 1) - 1) for place in range(pairs)]


@pytest.mark.parametrize(
    ("centre", "verdict"),
    [(1.3, PASS), (1.0, PASS), (0.93, PASS), (0.91, UNDECIDED), (0.89, UNDECIDED), (0.87, FAIL), (0.5, FAIL)],
)
def test_verdict_needs_the_whole_interval_on_one_side(centre: float, verdict: str) -> None:
    assert conclude([around(centre)], TEN_PERCENT, 0.001) == verdict


def test_possible_drop_does_not_pass_despite_the_estimate() -> None:
    scattered = around(1.086, spread=1.2)
    assert hodges_lehmann(scattered) > 0
    assert conclude([scattered], TEN_PERCENT, 0.001) == UNDECIDED


def test_certain_drop_that_may_be_allowed_does_not_fail() -> None:
    small = around(0.88, spread=0.05)
    assert shows_drop(signed_rank_bounds(small, 0.001), 0.0)
    assert conclude([small], TEN_PERCENT, 0.001) == UNDECIDED


def test_single_pair_of_ten_on_the_other_side_is_undecided() -> None:
    for agreeing, verdict in ((around(0.8), FAIL), (around(1.0), PASS)):
        assert conclude([agreeing], TEN_PERCENT, 0.001) == verdict
        other_side = [*agreeing[:-1], 2 * TEN_PERCENT - agreeing[-1]]
        assert conclude([other_side], TEN_PERCENT, 0.001) == UNDECIDED


def test_tolerance_is_a_share_of_tps_or_p99() -> None:
    assert math.exp(tolerance("tps", 0.1)) == pytest.approx(0.9)
    assert math.exp(-tolerance("p99", 0.1)) == pytest.approx(1.1)
    assert tolerance("tps", -1) == tolerance("p99", -1) == 0


@pytest.mark.parametrize("share", [1, 1.5])
def test_full_tolerance_of_tps_never_fails(share: float) -> None:
    assert tolerance("tps", share) == -math.inf
    assert conclude([[-700.0] * 20], -math.inf, 0.004) == PASS


def test_drop_equal_to_the_tolerance_is_undecided() -> None:
    assert not shows_drop((-0.5, -0.5), -0.5)
    assert not rules_out_drop((-0.5, -0.5), -0.5)
    assert conclude([[-0.5] * 20], -0.5, 0.004) == UNDECIDED


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.01, 0.2), FASTER),
        ((-0.3, -0.01), SLOWER),
        ((-0.1, 0.1), UNCLEAR),
        ((0.0, 0.1), UNCLEAR),
        ((-0.1, 0.0), UNCLEAR),
        (None, UNCLEAR),
    ],
)
def test_direction_needs_the_whole_interval_on_one_side(
    ends: tuple[float, float] | None, expected: str
) -> None:
    assert direction(ends) == expected


@pytest.mark.parametrize("most", [10, 30, 200, MOST])
def test_direction_is_wrong_in_at_most_a_twentieth_of_tests(most: int) -> None:
    shares = [direction_alpha(number, look.alpha) for number, look in enumerate(looks(most), 1)]
    assert shares == sorted(shares, reverse=True)
    # The error is two-sided; in addition, a single cell may fail wrongly.
    assert 2 * sum(shares) + ALPHA <= 0.05
    assert all(share >= look.alpha for share, look in zip(shares, looks(most), strict=True))


@pytest.mark.parametrize("pairs", [1, 9])
def test_too_few_pairs_are_always_undecided(pairs: int) -> None:
    for centre in (0.01, 100.0):
        assert conclude([[math.log(centre)] * pairs], TEN_PERCENT, 0.001) == UNDECIDED


def test_cells_of_different_numbers_of_pairs_have_no_mean() -> None:
    with pytest.raises(ValueError, match="zip"):
        geometric_means([[1.0], [1.0, 2.0]])


def test_several_cells_are_judged_by_their_geometric_mean() -> None:
    cells = [around(0.88), around(1.10), around(1.02)]
    assert math.exp(sum(geometric_means(cells)) / 10) == pytest.approx((0.88 * 1.10 * 1.02) ** (1 / 3))
    assert conclude(cells, TEN_PERCENT, 0.001) == PASS
    assert conclude([around(0.8, 14)] * 3, TEN_PERCENT, 0.001) == FAIL


def test_single_cell_can_fail_at_its_share_of_the_error_rate() -> None:
    cells = [around(0.8, 20), around(1.2, 20)]
    assert conclude(cells, TEN_PERCENT, 0.004) == FAIL
    assert cell_alpha(1, 0.003) == 0.003
    assert cell_alpha(2, 0.003) == pytest.approx(0.001)
    # With ten pairs no cell can be significant at a third of 0.001.
    assert conclude([cell[:10] for cell in cells], TEN_PERCENT, 0.001) != FAIL


@pytest.mark.parametrize(
    ("most", "pairs"),
    [
        (10, [10]),
        (12, [12]),
        (13, [10, 13]),
        (30, [10, 14, 20, 30]),
        (200, [10, 14, 20, 27, 38, 54, 75, 105, 148, 200]),
        (500, [14, 20, 27, 38, 54, 75, 105, 148, 207, 289, 405, 500]),
    ],
)
def test_looks_are_increasingly_spaced_up_to_the_maximum(most: int, pairs: list[int]) -> None:
    assert [look.pairs for look in looks(most)] == pairs


@pytest.mark.thorough
@settings(max_examples=examples(0.1))
@given(st.integers(10, MOST))
def test_looks_share_the_error_rate_and_each_can_decide(most: int) -> None:
    all_looks = looks(most)
    assert sum(look.alpha for look in all_looks) == pytest.approx(ALPHA)
    assert all(signed_rank_bounds([1.0] * look.pairs, look.alpha) for look in all_looks)
    assert all_looks[-1].pairs == most


pairs = st.lists(st.floats(-2, 2), min_size=10, max_size=30)


@given(pairs, st.floats(0.001, 0.05))
def test_failed_gate_also_fails_with_worse_pairs(differences: list[float], alpha: float) -> None:
    if shows_drop(signed_rank_bounds(differences, alpha), TEN_PERCENT):
        assert shows_drop(
            signed_rank_bounds([difference - 0.1 for difference in differences], alpha), TEN_PERCENT
        )


@given(pairs, st.floats(0.001, 0.05))
def test_pass_needs_bound_and_estimate_within_the_tolerance(differences: list[float], alpha: float) -> None:
    if conclude([differences], TEN_PERCENT, alpha) == PASS:
        ends = signed_rank_bounds(differences, alpha)
        assert ends is not None and TEN_PERCENT < ends[0] <= hodges_lehmann(differences)


def outcome(draw: Random, ratio: float, noise: float) -> str:
    """Return the verdict of a whole series of looks on pairs of a known ratio."""
    differences: list[float] = []
    for look in looks(60):
        differences += [draw.gauss(math.log(ratio), noise) for _ in range(look.pairs - len(differences))]
        verdict = conclude([differences], TEN_PERCENT, look.alpha)
        if verdict != UNDECIDED:
            return verdict
    return UNDECIDED


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict", "rates"),
    [
        (1.0, 0.2, FAIL, (0, 0.01)),
        (0.9, 0.1, FAIL, (0, 0.02)),
        (0.9, 0.1, PASS, (0, 0.02)),
        (0.8, 0.2, PASS, (0, 0.01)),
        (0.8, 0.1, FAIL, (0.97, 1)),
        (1.0, 0.1, PASS, (0.97, 1)),
    ],
)
def test_series_of_looks_keeps_the_promised_error_rate(
    ratio: float, noise: float, verdict: str, rates: tuple[float, float]
) -> None:
    draw = Random(4)
    rate = sum(outcome(draw, ratio, noise) == verdict for _ in range(300)) / 300
    assert rates[0] <= rate <= rates[1]
