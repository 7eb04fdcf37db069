"""Fates are choices: of so many effects, each is kept or not."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.targets.sqlite.disk_model import FATES


@pytest.mark.parametrize("name", FATES)
@given(effects=st.integers(0, 50), seed=st.integers(0, 99))
def test_a_fate_says_of_each_effect_whether_it_is_kept(name: str, effects: int, seed: int) -> None:
    assert len(FATES[name](effects, Random(seed))) == effects


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("nothing", {0}),
        ("everything", {5}),
        ("all but one", {4}),
        ("only one", {1}),
        ("up to a point", set(range(6))),
        ("at random", set(range(6))),
    ],
)
def test_a_fate_keeps_as_many_as_its_name_says(name: str, kept: set[int]) -> None:
    assert {sum(FATES[name](5, Random(seed))) for seed in range(200)} == kept


def test_what_is_kept_up_to_a_point_is_a_beginning() -> None:
    for seed in range(50):
        chosen = FATES["up to a point"](9, Random(seed))
        assert chosen == sorted(chosen, reverse=True)
