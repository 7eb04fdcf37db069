"""Search for the highest rate, on made-up machines."""

from __future__ import annotations

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
    DOUBT,
    HOLDS,
    LADDER,
    MOST,
    OPEN,
    Answer,
    answer,
    by_rate,
    crossing,
    mostly_kept,
    next_rate,
)
from tests.statistics.made_up_machines import QUIET, STALLING, Machine, row

# The search for the highest rate, on machines that are made up: noisy, moody, and with stalls.


@pytest.mark.parametrize(
    ("machine", "agreeing", "most"), [(QUIET, 58, 17), (STALLING, 50, 21)], ids=["quiet", "stalling"]
)
def test_five_answers_agree_within_a_fifth_and_overlap_and_are_found_in_two_minutes(
    machine: Machine, agreeing: int, most: int
) -> None:
    found = row(machine, 60)
    assert found.agreeing >= agreeing and found.overlapping >= 54
    assert found.windows <= most


def explored(start: int, margin: Callable[[int], float], lowest: int = 1) -> list[tuple[int, float]]:
    """Look at rates until nothing is to be learned; return what was seen, in its order."""
    seen: list[tuple[int, float]] = []
    while (rate := next_rate(seen, start, lowest)) is not None:
        assert len(seen) < MOST, "it has no end"
        assert rate in LADDER and rate >= lowest
        seen.append((rate, margin(rate)))
    return seen


@given(st.integers(20, 500_000), st.integers(1, 999_999), st.sampled_from([0.5, 3.0, 50.0]))
def test_without_noise_it_finds_the_limit(limit: int, start: int, slope: float) -> None:
    seen = explored(start, lambda rate: slope * math.log((rate + 0.5) / (limit + 0.5)))
    found = answer(by_rate(seen))
    assert len(seen) <= 60
    assert found.holds is not None and found.breaks is not None and found.about is not None
    assert found.holds <= limit <= found.breaks <= 1.35 * found.holds + 2
    assert found.holds <= found.about <= found.breaks


def test_the_interval_of_the_limit_is_that_of_a_line_s_inverse() -> None:
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
    reach = quantile(1 - DOUBT / 2, count - 2) * math.sqrt(variance * spread) / slope
    assert reach > math.log(1.1)  # else it is the least that an interval has
    assert crossing(windows) == pytest.approx([math.exp(limit + end) for end in (-reach, 0, reach)])


margins = st.lists(st.floats(-3, 3), min_size=1, max_size=8)


@given(st.dictionaries(st.sampled_from(LADDER[40:60]), margins, min_size=1, max_size=8))
def test_no_rate_that_was_tried_contradicts_the_answer(windows: dict[int, list[float]]) -> None:
    found = answer(windows)
    for rate, own in windows.items():
        said = found.verdict(rate)
        assert said != HOLDS or mostly_kept(own)
        assert said != BREAKS or not mostly_kept(own)
    if found.holds is not None and found.breaks is not None:
        assert found.holds < found.breaks


@given(st.integers(1, 10**6), st.randoms(use_true_random=False))
def test_it_comes_to_an_end_whatever_windows_say(start: int, random: Random) -> None:
    explored(start, lambda rate: random.uniform(-1, 1))


@pytest.mark.parametrize(
    ("margin", "lowest", "found"),
    [(-1.0, 1, Answer(10**6, None)), (1.0, 1, Answer(None, 1)), (1.0, 57, Answer(None, 62))],
)
def test_a_promise_that_always_holds_or_never_has_one_end(margin: float, lowest: int, found: Answer) -> None:
    assert answer(by_rate(explored(1000, lambda rate: margin, lowest))) == found


def test_windows_that_say_nothing_of_the_rate_give_no_answer() -> None:
    assert answer({100: [-0.1, 0.1] * 6, 110: [0.1, -0.1] * 6}) == Answer(None, None)
    assert answer({100: [-0.1], 110: [0.1]}) == Answer(None, None)


def test_a_stall_moves_the_limit_no_further_than_a_window_that_just_broke_its_promise() -> None:
    windows = {rate: [4 * math.log(rate / 1000)] * 3 for rate in (820, 910, 1100, 1200)}
    stalled, longer = ({**windows, 910: [-0.4, -0.4, stall]} for stall in (1.0, 50.0))
    assert answer(stalled) == answer(longer)


def test_a_rate_that_contradicts_the_others_is_looked_at_again() -> None:
    seen = [(500, 0.3), *((rate, 5 * math.log(rate / 1000)) for rate in (820, 910, 1000, 1100, 1200) * 4)]
    assert next_rate(seen, 500) == 500
    assert answer(by_rate(seen)).holds is None
    seen += [(500, -1.0)] * 2
    assert next_rate(seen, 500) is None and (answer(by_rate(seen)).holds or 0) > 880


def test_windows_follow_each_other_up_and_down_near_the_limit() -> None:
    seen = explored(100, lambda rate: 9 * math.log(rate / 105))
    assert {rate for rate, _ in seen[-8:]} == {100, 110}


@pytest.mark.parametrize(
    ("rate", "said"), [(99, HOLDS), (100, HOLDS), (101, OPEN), (119, OPEN), (120, BREAKS), (121, BREAKS)]
)
def test_what_is_known_of_a_rate(rate: int, said: str) -> None:
    assert Answer(100, 120, 110).verdict(rate) == said
    assert Answer(None, None).verdict(rate) == OPEN


def test_steps_of_the_ladder_are_about_a_tenth_apart() -> None:
    assert all(1.05 < after / before < 1.16 for before, after in pairwise(LADDER) if before >= 10)
    assert LADDER[0] == 1 and LADDER[-1] == 10**6
