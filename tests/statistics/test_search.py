"""Search: designs, least squares, races, and the highest rate, on machines that are made up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from random import Random
from statistics import fmean, linear_regression

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.limits_simulated import QUIET, STALLING, Machine, row
from sqlstress.statistics.compare import quantile
from sqlstress.statistics.search import (
    BREAKS,
    DOUBT,
    EACH,
    ERROR,
    HOLDS,
    LADDER,
    MOST,
    MOST_RUNS,
    OPEN,
    Answer,
    Row,
    answer,
    by_rate,
    crossing,
    design,
    mostly_kept,
    next_rate,
    runs_of,
    survivors,
    winner,
)

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


# Balanced designs: every level, and every pair of levels, as often as the others.


levels_drawn = st.lists(st.integers(2, 4), min_size=1, max_size=5)
seeds = st.integers(0, 2**32)


def imbalance(rows: Sequence[Row], levels: Sequence[int]) -> float:
    """Return how far a design is from orthogonal: the squares of what pairs of levels lack, summed."""
    total = 0.0
    for a, b in combinations(range(len(levels)), 2):
        found = Counter((row[a], row[b]) for row in rows)
        even = len(rows) / (levels[a] * levels[b])
        total += sum((found[i, j] - even) ** 2 for i in range(levels[a]) for j in range(levels[b]))
    return total


@given(levels_drawn, seeds)
def test_every_level_of_a_factor_stands_as_often_as_the_others_or_once_more(
    levels: list[int], seed: int
) -> None:
    runs = runs_of(levels)
    rows = design(levels, runs, Random(seed))
    assert len(rows) == runs
    for factor, count in enumerate(levels):
        found = Counter(row[factor] for row in rows)
        assert set(found) == set(range(count))
        assert max(found.values()) - min(found.values()) <= 1


@given(seeds)
def test_what_is_searched_by_default_is_orthogonal_whatever_the_seed(seed: int) -> None:
    levels = (4, 3, 2, 2, 2)
    rows = design(levels, runs_of(levels), Random(seed))
    assert len(rows) == 24
    assert imbalance(rows, levels) == 0
    for one, two in combinations(range(len(levels)), 2):
        assert len(set(Counter((row[one], row[two]) for row in rows).values())) == 1


@given(levels_drawn, seeds)
def test_it_is_no_less_even_than_one_whose_columns_are_drawn(levels: list[int], seed: int) -> None:
    draw, runs = Random(seed), runs_of(levels)
    drawn = [tuple(draw.randrange(count) for count in levels) for _ in range(runs)]
    assert imbalance(design(levels, runs, Random(seed)), levels) <= imbalance(drawn, levels)


@given(levels_drawn)
def test_there_are_rows_enough_for_what_is_to_be_told_and_no_more_than_that_needs(levels: list[int]) -> None:
    figures = 1 + sum(count - 1 for count in levels)
    assert runs_of(levels) >= EACH * figures
    assert runs_of(levels) <= max(MOST_RUNS, EACH * figures)


def test_a_seed_gives_the_same_design_again_and_another_seed_another_one() -> None:
    levels = (4, 3, 2, 2)
    assert design(levels, 24, Random(1)) == design(levels, 24, Random(1))
    assert design(levels, 24, Random(1)) != design(levels, 24, Random(2))


def test_what_is_confounded_is_seen() -> None:
    assert imbalance([(0, 0), (0, 0), (1, 1), (1, 1)], (2, 2)) == 4
    assert imbalance([(0, 0), (0, 1), (1, 0), (1, 1)], (2, 2)) == 0


# A race: who leaves it is worse than the leader, but for the error rate.


Figures = dict[int, dict[int, float]]
ROUNDS = 12


def raced(true: Sequence[float], noise: float, draw: Random) -> list[int]:
    """Race arms whose logarithms are known; return those that stay."""
    figures: Figures = {arm: {} for arm in range(len(true))}
    for number in range(ROUNDS):
        mood = draw.gauss(0, 0.2)  # of the round: it meets all alike
        for arm, own in figures.items():
            own[number] = math.exp(true[arm] + mood + draw.gauss(0, noise))
        figures = {arm: figures[arm] for arm in survivors(figures, ROUNDS)}
    return [*figures]


@pytest.mark.thorough
@pytest.mark.parametrize("noise", [0.02, 0.07, 0.2])
def test_the_best_one_leaves_in_no_more_races_than_the_error_rate(noise: float) -> None:
    races = 300
    lost = sum(0 not in raced((0.0, -0.01, -0.02, -0.05), noise, Random(seed)) for seed in range(races))
    assert lost <= ERROR * races


@pytest.mark.thorough
def test_of_equal_arms_one_leaves_in_no_more_races_than_the_error_rate() -> None:
    races = 300
    lost = sum(len(raced((0.0,) * 4, 0.07, Random(seed))) < 4 for seed in range(races))
    assert lost <= ERROR * races * 1.5  # of 300 races chance alone gives 22 in one of a hundred


def test_what_is_much_worse_leaves() -> None:
    assert raced((0.0, -0.5, -0.6), 0.05, Random(1)) == [0]


def test_nobody_leaves_after_two_rounds_and_nobody_races_alone() -> None:
    two = {"a": {0: 1.0, 1: 1.0}, "b": {0: 9.0, 1: 9.0}}
    assert survivors(two, 10) == ["a", "b"]
    assert survivors({"a": {0: 1.0, 1: 1.0, 2: 2.0}}, 10) == ["a"]
    assert survivors({}, 10) == []


@given(st.dictionaries(st.integers(0, 5), st.floats(0.5, 2.0), min_size=1), st.integers(0, 99))
def test_the_winner_is_the_first_of_those_that_are_about_as_good_as_the_best(
    means: dict[int, float], seed: int
) -> None:
    order = sorted(means)
    Random(seed).shuffle(order)
    chosen = winner({arm: {0: mean} for arm, mean in means.items()}, order, about=0.1)
    near = [arm for arm in order if means[arm] >= max(means.values()) * 0.9]
    assert chosen == near[0] or means[chosen] == pytest.approx(max(means.values()) * 0.9)


def test_where_nothing_was_measured_there_is_no_winner() -> None:
    with pytest.raises(ValueError, match="no arm has figures"):
        winner({"a": {}}, ["a"], about=0.0)
