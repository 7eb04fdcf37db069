"""Ratios over passes: Student's t beside a reference, and that an interval misses as often as it says."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sqlstress.statistics.ratios import Ratio, quantile, ratio, spread, within


@given(st.floats(0, 200), st.integers(1, 200))
def test_the_distribution_is_students(value: float, degrees: int) -> None:
    assert within(value, degrees) == pytest.approx(2 * stats.t.cdf(value, degrees) - 1, abs=1e-9)


@given(st.floats(0.5, 0.9999), st.integers(1, 100))
def test_the_quantile_is_students(probability: float, degrees: int) -> None:
    assert quantile(probability, degrees) == pytest.approx(
        stats.t.ppf(probability, degrees), rel=1e-6, abs=1e-9
    )


@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0.1, 1e6)), min_size=3, max_size=12))
def test_a_ratio_is_the_paired_t_interval_of_the_logarithms(pairs: list[tuple[float, float]]) -> None:
    found = ratio(dict(enumerate(a for a, _ in pairs)), dict(enumerate(b for _, b in pairs)), 0.05)
    logs = [math.log(b / a) for a, b in pairs]
    assert found is not None
    assert math.log(found.estimate) == pytest.approx(sum(logs) / len(logs), abs=1e-9)
    error = stats.sem(logs)
    if error > 1e-12:
        low, high = stats.t.interval(0.95, len(logs) - 1, sum(logs) / len(logs), error)
        assert math.log(found.low) == pytest.approx(low, rel=1e-6, abs=1e-6)
        assert math.log(found.high) == pytest.approx(min(high, 700), rel=1e-6, abs=1e-6)


def test_only_passes_that_have_both_count() -> None:
    found = ratio({0: 1.0, 1: 1.0, 2: 1.0, 3: 9.0}, {0: 2.0, 1: 2.0, 2: 2.0, 4: 1.0}, 0.05)
    assert found == pytest.approx(Ratio(2.0, 2.0, 2.0, 3))


def test_two_passes_say_nothing() -> None:
    assert ratio({0: 1.0, 1: 1.0}, {0: 2.0, 1: 2.0}, 0.05) is None
    assert spread([1.0, 2.0]) is None


def test_a_figure_of_zero_has_no_spread() -> None:
    assert spread([0.0, 1.0, 2.0]) is None


def test_the_interval_misses_no_more_often_than_it_says() -> None:
    # Exact for normal noise: of 2,000 intervals at 10 % some 200 miss, and 250 would be four sigmas off.
    draw, missed = random.Random(1), 0
    for _ in range(2000):
        passes = [(math.exp(draw.gauss(0, 0.3)), math.exp(draw.gauss(0, 0.05))) for _ in range(5)]
        found = ratio(
            {n: drift for n, (drift, _) in enumerate(passes)},
            {n: drift * noise for n, (drift, noise) in enumerate(passes)},
            0.1,
        )
        assert found
        missed += not found.low <= 1 <= found.high
    assert 150 < missed < 250


@pytest.mark.parametrize(
    ("low", "high", "above", "below", "equal"),
    [
        (1.01, 2.0, True, False, False),
        (0.5, 0.99, False, True, False),
        (0.96, 1.04, False, False, True),
        (0.90, 1.04, False, False, False),
        (0.96, 1.10, False, False, False),
    ],
)
def test_what_an_interval_says(low: float, high: float, above: bool, below: bool, equal: bool) -> None:
    found = Ratio(1.0, low, high, 5)
    assert (found.is_above, found.is_below, found.is_within(0.05)) == (above, below, equal)
