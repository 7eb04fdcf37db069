"""How rates are read."""

from __future__ import annotations

import pytest
from hypothesis import given

from sqlstress.options.parsing import MOST_RATE, rates
from tests.options.test_options import anything


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2000", (2000,)),
        (2000, (2000,)),
        ("500, 1000,500", (500, 1000)),
        ("500-2000/500", (500, 1000, 1500, 2000)),
        ("500-1900/500,7", (500, 1000, 1500, 7)),
        ([500, "600-700/100"], (500, 600, 700)),
    ],
)
def test_a_rate_is_a_number_a_list_or_a_range_with_its_step(value: object, expected: tuple[int, ...]) -> None:
    assert rates(value) == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("fast", "is not a rate: write 2000, 500,1000 or 500-2000/500"),
        ("500-2000", "is not a rate"),
        ("0", "does not lie within 1-1,000,000"),
        ("1-9/0", "does not lie within"),
        ("2000-500/100", "runs backwards: write 500-2000/100"),
        (True, "is not a rate"),
        (1.5, "is not a rate"),
        ([], "names no rate"),
        (f"1-{MOST_RATE}/1", "more than 10,000 rates"),
    ],
)
def test_anything_else_is_refused_with_what_would_be_right(value: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rates(value)


@given(anything)
def test_whatever_is_given_is_read_as_rates_or_refused(value: object) -> None:
    try:
        found = rates(value)
    except ValueError:
        return
    assert found and all(1 <= rate <= MOST_RATE for rate in found)
