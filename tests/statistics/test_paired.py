"""Tests of the exact statistics of paired differences, against scipy, brute force and each other."""

from __future__ import annotations

import math
from itertools import product
from random import Random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.compare import (
    hodges_lehmann,
    signed_rank_bounds,
    signed_rank_critical,
    signed_rank_interval,
    walsh_averages,
)

coarse = st.lists(st.integers(-6, 6).map(float), min_size=1, max_size=8)
"""Few different values: full of ties and zeros."""
fine = st.lists(st.integers(-(2**40), 2**40).filter(bool), min_size=1, max_size=40, unique_by=abs)
"""No ties and no zeros."""


def test_the_critical_values_of_the_three_looks_are_the_published_ones() -> None:
    assert [
        signed_rank_critical(10, 0.001),
        signed_rank_critical(20, 0.004),
        signed_rank_critical(30, 0.008),
    ] == [0, 35, 116]


@pytest.mark.parametrize(
    ("pairs", "alpha", "statistic"),
    [(4, 0.05, -1), (5, 0.05, 0), (6, 0.05, 2), (8, 0.025, 3), (20, 0.05, 60), (50, 0.005, 373)],
)
def test_critical_values_are_those_of_the_tables(pairs: int, alpha: float, statistic: int) -> None:
    assert signed_rank_critical(pairs, alpha) == statistic


@given(st.integers(1, 12), st.floats(1e-4, 0.5))
def test_a_critical_value_is_the_last_one_within_alpha(pairs: int, alpha: float) -> None:
    sums = [sum(ranks) for ranks in product(*((0, rank) for rank in range(1, pairs + 1)))]
    found = signed_rank_critical(pairs, alpha)
    within, next_within = (sum(one <= limit for one in sums) / 2**pairs for limit in (found, found + 1))
    assert within <= alpha < next_within


@pytest.mark.thorough
def test_hundreds_of_pairs_agree_with_the_normal_approximation() -> None:
    pairs = 300
    mean, deviation = pairs * (pairs + 1) / 4, math.sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24)
    assert signed_rank_critical(pairs, 0.01) == pytest.approx(
        mean + deviation * NormalDist().inv_cdf(0.01), abs=60
    )


@pytest.mark.thorough
@given(fine, st.floats(0.001, 0.5))
def test_the_bounds_lie_beyond_zero_exactly_when_scipys_p_value_is_within_alpha(
    differences: list[int], alpha: float
) -> None:
    stats = pytest.importorskip("scipy.stats")
    found = signed_rank_bounds(differences, alpha)
    for side, beyond in (("less", found and found[1] < 0), ("greater", found and found[0] > 0)):
        expected = stats.wilcoxon(differences, alternative=side, method="exact").pvalue
        if abs(expected - alpha) > 1e-9:
            assert bool(beyond) == (expected < alpha)


@given(coarse, st.floats(0.001, 0.5))
def test_with_ties_and_zeros_too_a_bound_lies_beyond_zero_no_more_often_than_it_says(
    differences: list[float], alpha: float
) -> None:
    signings = list(product((1, -1), repeat=len(differences)))
    flipped = [[s * abs(one) for s, one in zip(signs, differences, strict=True)] for signs in signings]
    found = [signed_rank_bounds(one, alpha) for one in flipped]
    assert sum(ends is not None and ends[1] < 0 for ends in found) / len(signings) <= alpha
    assert sum(ends is not None and ends[0] > 0 for ends in found) / len(signings) <= alpha


def test_the_estimate_is_what_one_computes_by_hand() -> None:
    assert walsh_averages([1, 2, 10]) == [1, 1.5, 2, 5.5, 6, 10]
    assert hodges_lehmann([1, 2, 10]) == 3.75
    with pytest.raises(ValueError, match=r"^there is no estimate of no pairs$"):
        hodges_lehmann([])


@given(st.lists(st.integers(-(10**6), 10**6), min_size=6, max_size=30), st.integers(-(10**6), 10**6))
def test_estimate_and_interval_move_with_the_data_and_turn_with_their_sign(
    differences: list[int], shift: int
) -> None:
    found = signed_rank_interval(differences)
    assert found is not None
    low, high = found
    assert low <= hodges_lehmann(differences) <= high
    assert signed_rank_interval([one + shift for one in differences]) == (low + shift, high + shift)
    assert signed_rank_interval([-one for one in differences]) == (-high, -low)
    assert hodges_lehmann([-one for one in differences]) == -hodges_lehmann(differences)


@pytest.mark.parametrize(("pairs", "enough"), [(5, False), (6, True)])
def test_five_pairs_are_too_few_for_an_interval_of_95_percent(pairs: int, enough: bool) -> None:
    assert (signed_rank_interval([1.0] * pairs) is not None) == enough


def test_the_interval_covers_the_centre_as_often_as_it_says() -> None:
    random = Random(1)
    covered = 0
    for _ in range(1000):
        low, high = signed_rank_interval([random.gauss(3, 1) for _ in range(10)]) or (0.0, 0.0)
        covered += low <= 3 <= high
    assert 935 <= covered <= 965, "0.951 is exact for ten pairs"
