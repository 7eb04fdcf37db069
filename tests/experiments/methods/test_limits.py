"""What counts as a limit, and where it is."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.methods.binding import LimitReached, most, refusal


@given(st.integers(0, 5000), st.integers(1, 5000))
def test_the_largest_number_that_fits_is_found_in_few_tries(largest: int, more: int) -> None:
    tried: list[int] = []

    def fits(number: int) -> bool:
        tried.append(number)
        return number <= largest

    assert most(fits, largest + more) == largest
    assert len(tried) <= 14


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {'(' * 3000}1{')' * 3000}",
        f"SELECT {'+'.join(['1'] * 5000)}",
        " UNION ALL ".join(["SELECT 1"] * 600),
        f"SELECT {','.join(['?'] * 260_000)}",
    ],
    ids=["nesting", "depth", "compound", "variables"],
)
def test_sqlite_refusing_a_large_statement_is_a_limit(query: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.Error) as refused:
        connection.execute(query)
    assert refusal(refused.value) == str(refused.value)


def test_peewee_nesting_too_deeply_is_a_limit_too() -> None:
    assert "Python's recursion limit" in (refusal(RecursionError("maximum recursion depth")) or "")
    assert refusal(LimitReached("9 parameters")) == "9 parameters"


@pytest.mark.parametrize("query", ["SELECT * FROM nothing", "SELECT ((1", "SELEC 1"])
def test_any_other_error_is_none(query: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.Error) as failed:
        connection.execute(query)
    assert refusal(failed.value) is None
