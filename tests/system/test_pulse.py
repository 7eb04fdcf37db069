"""What is gone through at a pace, with pulses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import Interrupted
from sqlstress.system.interrupt import PACE, paced
from tests.pulses import Pulses


@given(st.integers(0, 5 * PACE))
def test_every_item_is_yielded_with_a_pulse_for_every_stretch_begun(count: int) -> None:
    pulses = Pulses()
    assert list(paced(range(count), pulses)) == list(range(count))
    assert pulses.count == -(-count // PACE)


def test_a_pulse_that_raises_ends_it_before_the_next_stretch() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10 * PACE):
            taken.append(number)
            yield number

    with pytest.raises(Interrupted):
        list(paced(items(), Pulses(stop_at=3)))
    assert len(taken) == 2 * PACE + 1
