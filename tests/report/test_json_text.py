"""Tests of the JSON text of a report."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.report.document import json_text

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(st.integers() | st.just(0.5), max_size=4)
        | st.lists(st.lists(st.integers(), max_size=2), max_size=3)
        | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_is_written_is_read_back_the_same(value: Any) -> None:
    again = json.loads(json_text(value))
    assert again == value
    assert repr(again) == repr(value)  # True is no 1, and 1 no 1.0


@given(st.dictionaries(st.text(), st.lists(st.text() | st.booleans(), min_size=1), min_size=1))
def test_what_holds_no_numbers_has_the_lines_of_the_standard_library(value: Any) -> None:
    assert json_text(value) == json.dumps(value, indent=1)


def test_a_list_of_numbers_or_of_rows_of_them_has_one_line() -> None:
    assert json_text({"bins": [1, 2.5], "buckets": [[1, 2], [3, 4]], "mixed": [[1], "a"]}).splitlines() == [
        "{",
        ' "bins": [1, 2.5],',
        ' "buckets": [[1, 2], [3, 4]],',
        ' "mixed": [',
        "  [1],",
        '  "a"',
        " ]",
        "}",
    ]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "where", [lambda one: one, lambda one: [one], lambda one: [[one]], lambda one: {"a": one}]
)
def test_what_is_no_number_is_never_written(where: Any, number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        json_text(where(number))
