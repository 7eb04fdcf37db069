"""How writers are killed is drawn from the seed, and covers everything that is to be covered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.crash.study import LONGEST_S, OPENING_S, draw


@given(st.integers(0, 2**32), st.integers(0, 10**6), st.integers(1, 256))
def test_every_writer_is_killed_once_and_the_moments_are_within_bounds(
    seed: int, number: int, writers: int
) -> None:
    strike = draw(seed, number, writers)
    assert sorted(strike.order) == list(range(1, writers + 1))
    assert strike.alone <= (writers > 1)
    assert 0 <= strike.after_s <= (OPENING_S if strike.opening else LONGEST_S)
    assert 0 <= strike.then_s <= LONGEST_S
    assert strike == draw(seed, number, writers)


def test_a_hundred_rounds_have_all_kinds_of_kills_and_moments_from_the_first_to_the_last() -> None:
    strikes = [draw(1, number, 3) for number in range(100)]
    kinds = {(strike.opening, strike.alone, strike.held) for strike in strikes}
    assert len(kinds) == 8
    assert {strike.order[0] for strike in strikes} == {1, 2, 3}
    assert {int(10 * strike.after_s / LONGEST_S) for strike in strikes} == set(range(10))
