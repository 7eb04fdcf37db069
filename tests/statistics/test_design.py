"""Balanced designs: every level, and every pair of levels, as often as the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.statistics.search import EACH, MOST_RUNS, Row, design, runs_of

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
