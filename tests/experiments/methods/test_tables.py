"""The tables, and the place of every row in them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import peewee
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.methods.orm import MODELS
from sqlstress.experiments.methods.tables import (
    PATH,
    SCHEMA,
    VALUE,
    pair_place,
    pairs,
    places_before,
    sample_place,
    value,
)

DEFINITIONS = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"


def test_the_tables_are_those_that_peewee_creates_for_the_models() -> None:
    database = peewee.SqliteDatabase(":memory:")
    database.bind(MODELS)
    database.create_tables(MODELS, safe=False)
    created = [row[0] for row in database.connection().execute(DEFINITIONS)]  # type: ignore[no-untyped-call]
    database.close()
    assert sorted(created) == sorted(SCHEMA)


@given(st.integers(2, 40))
def test_the_pairs_of_some_samples_have_the_places_from_0_on(samples: int) -> None:
    found = list(pairs(range(1, samples), samples))
    assert [pair_place(a, b, samples) for a, b in found] == list(range(len(found)))
    assert places_before(samples, samples) == len(found)
    assert found == sorted((a, b) for a in range(1, samples + 1) for b in range(a + 1, samples + 1))


@given(st.integers(-3, 45), st.integers(-3, 45), st.integers(2, 40))
def test_what_is_no_pair_of_samples_has_no_place(a: int, b: int, samples: int) -> None:
    assert (pair_place(a, b, samples) is None) == (not 1 <= a < b <= samples)


@given(st.integers(0, 10**7))
def test_a_sample_has_the_place_that_its_path_says(place: int) -> None:
    assert sample_place(PATH.format(place)) == place


@given(st.text() | st.integers() | st.none() | st.sampled_from(["/dataset/1.mat", "/dataset/٣٣٣٣٣٣.mat"]))
def test_any_other_path_has_no_place(path: object) -> None:
    assert sample_place(path) is None


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, (1 << 32) - 1))
def test_sqlite_computes_the_value_that_python_expects(a: int, b: int, seed: int) -> None:
    query = f"SELECT {VALUE.format(seed)} FROM (SELECT {a} AS id) AS a, (SELECT {b} AS id) AS b"
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute(query).fetchone() == (value(a, b, seed),)
