"""Tests of what is said of lists of whole numbers at once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.report.jsonable import INT_LIMIT, all_rows, all_whole

NUMBERS: st.SearchStrategy[Any] = st.integers(-3, 3) | st.sampled_from(
    [INT_LIMIT, INT_LIMIT - 1, 1 - INT_LIMIT, -INT_LIMIT, True, 1.0, "1", None, (), [1]]
)


def is_whole(value: Any) -> bool:
    return type(value) is int and -INT_LIMIT < value < INT_LIMIT


@given(st.lists(st.integers(-3, 3) | NUMBERS, max_size=4))
def test_all_are_whole_numbers_when_each_is_one_and_there_is_one(values: list[Any]) -> None:
    assert all_whole(values) == (bool(values) and all(map(is_whole, values)))


@given(st.lists(st.lists(NUMBERS, max_size=3) | st.tuples(NUMBERS, st.just(1)) | NUMBERS, max_size=3))
def test_all_are_rows_when_each_is_one_of_whole_numbers_and_there_is_one(values: list[Any]) -> None:
    for kind in (list, tuple):
        sound = all(type(row) is kind and row and all(map(is_whole, row)) for row in values)
        assert all_rows(values, kind) == (bool(values) and sound)
