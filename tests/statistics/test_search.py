"""Search for the highest rate, on simulated machines."""

import math
from collections.abc import Callable
from itertools import pairwise
from random import Random
from statistics import fmean, linear_regression

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.compare import quantile
from sqlstress.statistics.search import (
    BREAKS,
    HOLDS,
    INTERVAL_ERROR,
    LADDER,
    MOST,
    OPEN,
    SearchAnswer,
    answer,
    by_rate,
    crossing,
    fit_line,
    mostly_kept,
    next_rate,
)
from tests.statistics.made_up_machines import QUIET, STALLING, Machine, row

# The search for the highest rate, on simulated machines with noise, moods and stalls.


@pytest.mark.parametrize(
    ("machine", "agreeing", "most"), [(QUIET, 58, 17), (STALLING, 50, 21)], ids=["quiet", "stalling"]
)
def test_five_searches_agree_and_end_within_two_minutes(machine: Machine, agreeing: int, most: int) -> None:
    results = row(machine, 60)
    assert results.agreeing >= agreeing and results.overlapping >= 54
    assert results.windows <= most


def explored(start: int, margin: Callable[[int], float], lowest: int = 1) -> list[tuple[int, float]]:
    """Measure rates until the search ends; return (rate, margin) in order."""
    seen: list[tuple[int, float]] = []
    while (rate := next_rate(seen, start, lowest)) is not None:
        assert len(seen) < MOST, "it has no end"
        assert rate in LADDER and rate >= lowest
        seen.append((rate, margin(rate)))
    return seen


@given(st.integers(20, 500_000), st.integers(1, 999_999), st.sampled_from([0.5, 3.0, 50.0]))
def test_search_without_noise_finds_the_limit(limit: int, start: int, slope: float) -> None:
    seen = explored(start, lambda rate: slope * math.log((rate + 0.5) / (limit + 0.5)))
    result = answer(by_rate(seen))
    assert len(seen) <= 60
    assert result.holds is not None and result.breaks is not None and result.about is not None
    assert result.holds <= limit <= result.breaks <= 1.35 * result.holds + 2
    assert result.holds <= result.about <= result.breaks


def test_interval_of_the_limit_is_that_of_inverse_regression() -> None:
    """Source: Draper and Smith, "Applied Regression Analysis", on inverse regression."""
    draw = Random(7)
    windows = {
        rate: [0.8 * math.log(rate / 1000) + draw.gauss(0, 0.2) for _ in range(8)]
        for rate in (820, 910, 1000, 1100, 1200)
    }
    points = [(math.log(rate), margin) for rate, own in windows.items() for margin in own]
    slope, intercept = linear_regression([x for x, _ in points], [y for _, y in points])
    mean, count = fmean(x for x, _ in points), len(points)
    variance = sum((y - intercept - slope * x) ** 2 for x, y in points) / (count - 2)
    limit = -intercept / slope
    spread = 1 / count + (limit - mean) ** 2 / sum((x - mean) ** 2 for x, _ in points)
    reach = quantile(1 - INTERVAL_ERROR / 2, count - 2) * math.sqrt(variance * spread) / slope
    assert reach > math.log(1.1)  # otherwise the interval has its minimum width
    assert crossing(windows) == pytest.approx([math.exp(limit + end) for end in (-reach, 0, reach)])


margins = st.lists(st.floats(-3, 3), min_size=1, max_size=8)


@given(st.dictionaries(st.sampled_from(LADDER[40:60]), margins, min_size=1, max_size=8))
def test_measured_rates_never_contradict_the_answer(windows: dict[int, list[float]]) -> None:
    result = answer(windows)
    for rate, margins_at_rate in windows.items():
        verdict = result.verdict(rate)
        assert verdict != HOLDS or mostly_kept(margins_at_rate)
        assert verdict != BREAKS or not mostly_kept(margins_at_rate)
    if result.holds is not None and result.breaks is not None:
        assert result.holds < result.breaks


@pytest.mark.thorough
@given(st.integers(1, 10**6), st.randoms(use_true_random=False))
def test_search_ends_for_any_windows(start: int, random: Random) -> None:
    explored(start, lambda rate: random.uniform(-1, 1))


@pytest.mark.parametrize(
    ("margin", "lowest", "found"),
    [
        (-1.0, 1, SearchAnswer(10**6, None)),
        (1.0, 1, SearchAnswer(None, 1)),
        (1.0, 57, SearchAnswer(None, 62)),
    ],
)
def test_promise_always_kept_or_broken_gives_a_single_end(
    margin: float, lowest: int, found: SearchAnswer
) -> None:
    assert answer(by_rate(explored(1000, lambda rate: margin, lowest))) == found


def test_windows_independent_of_the_rate_give_no_answer() -> None:
    assert answer({100: [-0.1, 0.1] * 6, 110: [0.1, -0.1] * 6}) == SearchAnswer(None, None)
    assert answer({100: [-0.1], 110: [0.1]}) == SearchAnswer(None, None)


def test_length_of_a_stall_does_not_move_the_limit() -> None:
    windows = {rate: [4 * math.log(rate / 1000)] * 3 for rate in (820, 910, 1100, 1200)}
    stalled, longer = ({**windows, 910: [-0.4, -0.4, stall]} for stall in (1.0, 50.0))
    assert answer(stalled) == answer(longer)


def test_contradicting_rate_is_measured_again() -> None:
    seen = [(500, 0.3), *((rate, 5 * math.log(rate / 1000)) for rate in (820, 910, 1000, 1100, 1200) * 4)]
    assert next_rate(seen, 500) == 500
    assert answer(by_rate(seen)).holds is None
    seen += [(500, -1.0)] * 2
    assert next_rate(seen, 500) is None and (answer(by_rate(seen)).holds or 0) > 880


def test_windows_alternate_around_the_limit() -> None:
    seen = explored(100, lambda rate: 9 * math.log(rate / 105))
    assert {rate for rate, _ in seen[-8:]} == {100, 110}


@pytest.mark.parametrize(
    ("rate", "expected"), [(99, HOLDS), (100, HOLDS), (101, OPEN), (119, OPEN), (120, BREAKS), (121, BREAKS)]
)
def test_verdict_on_a_rate_follows_from_the_answer(rate: int, expected: str) -> None:
    assert SearchAnswer(100, 120, 110).verdict(rate) == expected
    assert SearchAnswer(None, None).verdict(rate) == OPEN


def test_ladder_has_steps_of_about_a_tenth() -> None:
    assert all(1.05 < after / before < 1.16 for before, after in pairwise(LADDER) if before >= 10)
    assert LADDER[0] == 1 and LADDER[-1] == 10**6


# The straight line through the margins.


@pytest.mark.thorough
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-99, 99)), min_size=4, max_size=12))
def test_line_equals_numpys_least_squares(points: list[tuple[int, int]]) -> None:
    numpy = pytest.importorskip("numpy")
    if len({x for x, _ in points}) < 2:
        return  # equal x values make no line
    line = fit_line(points)
    x, y = numpy.array(points).T
    (slope, height), covariance = numpy.polyfit(x - x.mean(), y, 1, cov=True)
    assert (line.slope, line.height) == pytest.approx((slope, height), abs=1e-9)
    errors = numpy.sqrt(numpy.diag(covariance))
    assert (line.slope_error, line.height_error) == pytest.approx(tuple(errors), abs=1e-6)
    assert line.degrees == len(points) - 2


def test_line_through_three_points_equals_the_line_by_hand() -> None:
    line = fit_line([(0, 0), (1, 1), (2, 4)])
    expected = (1, 5 / 3, 2, math.sqrt(2 / 9), math.sqrt(1 / 3), 1)
    assert line == pytest.approx(expected)
