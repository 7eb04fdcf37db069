"""Tests of the exact statistics of two samples, against scipy and each other."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.compare import (
    _orders,
    all_differences,
    needed,
    shift,
    unpaired,
    unpaired_bounds,
    unpaired_critical,
    without_interval,
)

distinct = st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=14, unique=True)
samples = st.lists(st.integers(-5, 5), min_size=1, max_size=8)


@pytest.mark.thorough
@given(distinct, st.integers(1, 13), st.floats(0.001, 0.5))
def test_a_drop_is_shown_exactly_when_scipys_p_value_is_within_alpha(
    values: list[int], at: int, alpha: float
) -> None:
    stats = pytest.importorskip("scipy.stats")
    at = min(at, len(values) - 1)
    base, other = values[:at], values[at:]
    expected = stats.mannwhitneyu(other, base, alternative="less", method="exact").pvalue
    if abs(expected - alpha) > 1e-9:
        ends = unpaired_bounds(base, other, alpha)
        assert (ends is not None and ends[1] < 0) == (expected < alpha)


@pytest.mark.parametrize(
    ("m", "n", "alpha", "statistic"),
    [(5, 5, 0.025, 2), (10, 10, 0.025, 23), (3, 3, 0.05, 0), (3, 3, 0.01, -1)],
)
def test_critical_values_are_those_of_the_tables(m: int, n: int, alpha: float, statistic: int) -> None:
    assert unpaired_critical(m, n, alpha) == statistic


@pytest.mark.parametrize("alpha", [0.05, 0.025, 0.001])
def test_of_many_values_the_approximation_takes_over_and_errs_on_the_safe_side(alpha: float) -> None:
    ways = list(accumulate(_orders(31, 31)))
    exact = bisect_right(ways, alpha * ways[-1]) - 1
    assert 0 <= exact - unpaired_critical(31, 31, alpha) <= 5
    assert 0 < unpaired_critical(1000, 1000, alpha) < 500_000


@given(samples, samples)
def test_ties_count_against_a_drop(base: list[int], other: list[int]) -> None:
    ends = unpaired_bounds(base, other, 0.2)
    lower = unpaired_bounds(base, [value - 0.5 for value in other], 0.2)
    assert (ends is None) == (lower is None)
    assert ends is None or lower is None or ends == (lower[0] + 0.5, lower[1] + 0.5)


@given(samples, samples)
def test_the_estimate_lies_within_its_interval_and_turns_with_the_samples(
    base: list[int], other: list[int]
) -> None:
    assert shift(base, other) == -shift(other, base)
    found = unpaired(base, other)
    assert found and found.low <= found.estimate <= found.high
    assert found.estimate == exp(shift(base, other))
    assert len(all_differences(base, other)) == len(base) * len(other)


def test_the_bounds_leave_out_as_many_differences_at_either_end_as_the_tables_say() -> None:
    powers = [2.0**n for n in range(10)]
    found = all_differences(powers, powers)
    assert unpaired_bounds(powers, powers, 0.025) == (found[23], found[-24])
    assert unpaired_bounds([1, 2, 3], [1, 2, 3], 0.05) == (-2, 2)
    assert unpaired_bounds([1, 2, 3], [1, 2, 3], 0.01) is None


def test_the_interval_leaves_out_as_many_differences_at_either_end_as_the_tables_say() -> None:
    powers = [2.0**n for n in range(10)]
    found = all_differences(powers, powers)
    assert unpaired(powers, powers) == (1.0, exp(found[23]), exp(found[-24]), 100)


def test_four_values_each_are_just_enough_for_an_interval_of_95_percent() -> None:
    assert unpaired([1, 2, 3, 4], [1, 2, 3, 4]) == (1.0, exp(-3), exp(3), 16)
    assert unpaired([1, 2, 3], [1, 2, 3, 4]) == without_interval(exp(0.5))
    assert unpaired([], [1.0]) is None


@pytest.mark.parametrize(("alpha", "size"), [(0.05, 3), (0.01, 5), (0.0025, 6), (0.5, 1)])
def test_the_number_of_values_that_are_needed_is_the_first_that_can_show_anything(
    alpha: float, size: int
) -> None:
    assert needed(alpha) == size
    assert unpaired_critical(size, size, alpha) >= 0
    assert size == 1 or unpaired_critical(size - 1, size - 1, alpha) == -1
