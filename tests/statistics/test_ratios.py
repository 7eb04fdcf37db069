"""Ratios over passes: Student's t beside a reference; their words are wrong as rarely as promised."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.compare import Passes, Ratio, quantile, spread, within


@pytest.fixture(scope="module")
def stats() -> Any:
    """scipy's distributions, which take as long to import as a hundred tests take."""
    return pytest.importorskip("scipy.stats")


@given(st.floats(0, 200), st.integers(1, 200))
def test_the_distribution_is_students(stats: Any, value: float, degrees: int) -> None:
    assert within(value, degrees) == pytest.approx(2 * stats.t.cdf(value, degrees) - 1, abs=1e-9)


@given(st.floats(0.5, 0.9999), st.integers(1, 100))
def test_the_quantile_is_students(stats: Any, probability: float, degrees: int) -> None:
    assert quantile(probability, degrees) == pytest.approx(
        stats.t.ppf(probability, degrees), rel=1e-6, abs=1e-9
    )


figures = st.floats(0.1, 1e6)


@given(st.lists(st.tuples(figures, figures), min_size=3, max_size=12))
def test_of_two_cases_the_interval_is_that_of_the_paired_t_test(
    stats: Any, pairs: list[tuple[float, float]]
) -> None:
    passes = Passes({"a": _numbered([a for a, _ in pairs]), "b": _numbered([b for _, b in pairs])}, 0.05)
    found = passes.ratio("a", "b")
    logs = [math.log(b / a) for a, b in pairs]
    assert found
    assert math.log(found.estimate) == pytest.approx(sum(logs) / len(logs), abs=1e-9)
    error = stats.sem(logs)
    if error > 1e-12:
        low, high = stats.t.interval(0.95, len(logs) - 1, sum(logs) / len(logs), error)
        assert math.log(found.low) == pytest.approx(low, rel=1e-6, abs=1e-6)
        assert math.log(found.high) == pytest.approx(min(high, 700), rel=1e-6, abs=1e-6)


def _numbered(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


def test_only_passes_that_both_have_count() -> None:
    passes = Passes({"a": {0: 1.0, 1: 1.0, 2: 1.0, 3: 9.0}, "b": {0: 2.0, 1: 2.0, 2: 2.0, 4: 1.0}}, 0.05)
    assert passes.ratio("a", "b") == pytest.approx(Ratio(2.0, 2.0, 2.0, 3))
    assert passes.count == 3


def test_two_passes_say_nothing() -> None:
    assert Passes({"a": {0: 1.0, 1: 1.0}, "b": {0: 2.0, 1: 2.0}}, 0.05).ratio("a", "b") is None
    assert spread([1.0, 2.0]) is None


def test_a_figure_of_zero_has_no_spread() -> None:
    assert spread([0.0, 1.0, 2.0]) is None


def test_the_spread_is_half_the_interval_of_the_mean(stats: Any) -> None:
    logs = [0.0, 0.1, 0.2, 0.1]
    low, high = stats.t.interval(0.95, 3, 0.1, stats.sem(logs))
    assert spread([math.exp(one) for one in logs]) == pytest.approx(math.exp((high - low) / 2) - 1, rel=1e-6)


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


Noise = Callable[[Random, int], float]


def of_noise(noise: Noise, drift: float, seed: int) -> Mapping[int, Mapping[int, float]]:
    """Return eight cases that are equal but for noise, over five passes whose level drifts."""
    draw = Random(seed)
    levels = [draw.gauss(0, drift) for _ in range(5)]
    return {
        case: {number: math.exp(level + noise(draw, case)) for number, level in enumerate(levels)}
        for case in range(8)
    }


def calm(draw: Random, _: int) -> float:
    """Draw little noise."""
    return draw.gauss(0, 0.02)


def heavy(draw: Random, _: int) -> float:
    """Draw from Student's t with three degrees of freedom: single figures lie far out."""
    return 0.05 * draw.gauss(0, 1) / math.sqrt(draw.gammavariate(1.5, 1 / 1.5))


NOISES: dict[str, Noise] = {
    "the same": lambda draw, _: draw.gauss(0, 0.05),
    "growing with the processes": lambda draw, case: draw.gauss(0, 0.02 * (case + 1)),
    "heavy tails": heavy,
    "that of one case": lambda draw, case: draw.gauss(0, 0.03 if case else 0.3),
    "now and then a stall": lambda draw, _: draw.gauss(0, 0.03) - (draw.random() < 0.05) * 0.7,
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", NOISES)
def test_of_equal_cases_any_difference_is_seen_as_rarely_as_promised(name: str) -> None:
    # At most 5 % of the families may hold a wrong word: 22 of 250 would be nearly three sigmas more.
    wrong = 0
    for seed in range(250):
        passes = Passes(of_noise(NOISES[name], 0.3, seed), 0.05)
        found = [passes.ratio(a, b) for a in range(8) for b in range(a)]
        wrong += any(one and (one.is_above or one.is_below) for one in found)
    assert wrong < 22


def test_drift_that_meets_all_cases_alike_takes_nothing_from_what_can_be_told() -> None:
    figures = of_noise(calm, 0.5, 1)
    twice = {**figures, 0: {number: 1.2 * value for number, value in figures[0].items()}}
    found = Passes(twice, 0.05).ratio(1, 0)
    assert found and found.is_above


def test_a_pair_that_is_noisier_than_the_others_is_told_with_more_reserve() -> None:
    passes = Passes(of_noise(lambda draw, case: draw.gauss(0, 0.02 if case else 0.2), 0.0, 5), 0.05)
    noisy, others = passes.ratio(1, 0), passes.ratio(1, 2)
    assert noisy and others
    assert noisy.high / noisy.low > 1.2 * others.high / others.low


def test_the_passes_that_it_would_take_tell_the_difference() -> None:
    def passes(count: int) -> Passes[int]:
        draw = Random(3)
        return Passes(
            {case: {number: math.exp(draw.gauss(0, 0.1)) for number in range(count)} for case in range(4)},
            0.05,
        )

    needed = passes(5).needed(0.10)
    found = passes(needed).ratio(0, 1)
    assert 10 < needed < 200
    assert found and found.high / found.estimate == pytest.approx(1 / 0.9, rel=0.06)


def test_the_middle_is_the_geometric_mean_over_all_passes_of_a_case() -> None:
    passes = Passes({"a": {0: 1.0, 1: 4.0, 2: 2.0}, "b": {0: 3.0, 1: 3.0, 2: 3.0}}, 0.05)
    assert passes.middle("a") == pytest.approx(2.0)
