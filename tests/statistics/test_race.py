"""A race: who leaves it is worse than the leader, but for the error rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.search import ERROR, survivors, winner

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
