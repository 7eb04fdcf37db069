"""Small statistics of a trial."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.series import half_ratio, jain, min_max_share

shares_of_workers = st.lists(st.integers(0, 10**9) | st.floats(0, 1e9), min_size=1, max_size=64).filter(
    lambda shares: max(shares) > 1e-6
)


@pytest.mark.parametrize(
    ("shares", "index"),
    [([5, 5, 5, 5], 1.0), ([1, 0, 0, 0], 0.25), ([1, 2, 3], 36 / 42), ([0, 0], None), ([], None)],
)
def test_jains_index_equals_a_calculation_by_hand(shares: list[int], index: float | None) -> None:
    assert jain(shares) == (index and pytest.approx(index, rel=1e-12))


@given(shares_of_workers)
def test_jains_index_is_within_1_n_and_1_in_any_order_and_unit(shares: list[float]) -> None:
    index = jain(shares)
    assert index is not None
    assert 1 / len(shares) * (1 - 1e-9) <= index <= 1
    assert jain([2 * share for share in reversed(shares)]) == pytest.approx(index, rel=1e-9)


@pytest.mark.parametrize(
    ("shares", "ratio"), [([3, 6, 12], 0.25), ([5], 1.0), ([0, 8], 0.0), ([0, 0], None), ([], None)]
)
def test_min_max_share_is_the_smallest_over_the_largest(shares: list[int], ratio: float | None) -> None:
    assert min_max_share(shares) == ratio


@pytest.mark.parametrize(
    ("bins", "ratio"),
    [
        ([10, 10, 900, 20, 20, 0], 2.0),
        ([10, 10, 10, 0, 30, 50, 70], 5.0),
        ([8, 8, 8, 0, 0, 0], 0.0),
        # Too few bins, and an idle first half, have no ratio.
        ([], None),
        ([1, 2, 3, 4, 5], None),
        ([0, 9, 0, 5, 5, 5], None),
    ],
)
def test_half_ratio_is_the_second_halfs_median_over_the_firsts(bins: list[int], ratio: float | None) -> None:
    assert half_ratio(bins) == ratio
