"""The tables, the place of every row in them, and the queried pairs."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import peewee
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.classics.methods_tables import (
    PATH,
    SCHEMA,
    VALUE,
    pair_place,
    pairs,
    pairs_below,
    queried_pairs,
    queried_sets,
    sample_place,
    value,
)
from sqlstress.experiments.classics.orm import MODELS
from tests.drawing import CHARACTERS
from tests.experiments.methods.cells import cell

DEFINITIONS = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"


def test_tables_equal_those_that_peewee_creates() -> None:
    database = peewee.SqliteDatabase(":memory:")
    database.bind(MODELS)
    database.create_tables(MODELS, safe=False)
    created = [row[0] for row in database.connection().execute(DEFINITIONS)]  # type: ignore[no-untyped-call]
    database.close()
    assert sorted(created) == sorted(SCHEMA)


@given(st.integers(2, 40))
def test_sample_pairs_have_the_positions_from_0_on(samples: int) -> None:
    found = list(pairs(samples))
    assert [pair_place(a, b, samples) for a, b in found] == list(range(len(found)))
    assert pairs_below(samples, samples) == len(found)
    assert found == sorted((a, b) for a in range(1, samples + 1) for b in range(a + 1, samples + 1))


@given(st.integers(-3, 45), st.integers(-3, 45), st.integers(2, 40))
def test_pairs_that_are_not_of_two_samples_have_no_place(a: int, b: int, samples: int) -> None:
    assert (pair_place(a, b, samples) is None) == (not 1 <= a < b <= samples)


@given(st.integers(0, 10**7))
def test_sample_position_follows_from_its_path(place: int) -> None:
    assert sample_place(PATH.format(place)) == place


@given(
    st.text(CHARACTERS)
    | st.integers()
    | st.none()
    | st.sampled_from(["/dataset/1.mat", "/dataset/٣٣٣٣٣٣.mat"])
)
def test_any_other_path_has_no_place(path: object) -> None:
    assert sample_place(path) is None


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, (1 << 32) - 1))
def test_sqlite_computes_the_value_that_python_expects(a: int, b: int, seed: int) -> None:
    query = f"SELECT {VALUE.format(a=a, b=b, seed=seed)}"
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute(query).fetchone() == (value(a, b, seed),)


@given(st.sampled_from([1, 2, 12, 36, 100, 221]))
def test_all_pairs_between_two_disjoint_sets_are_queried_once(scale: int) -> None:
    case = cell("query", "1b1", scale)
    first, second = sets = queried_sets(case)
    assert len({*first, *second}) == len(first) + len(second) == sum(case.spec.sets)
    found = queried_pairs(case, sets)
    assert sorted(found) == sorted((min(a, b), max(a, b)) for a in first for b in second)
    assert len(found) == scale


def test_pairs_follow_from_the_seed_in_random_order() -> None:
    cases = [cell("query", "1b1", 100, seed=seed) for seed in (1, 1, 2)]
    one, again, different = (queried_pairs(case, queried_sets(case)) for case in cases)
    assert one == again
    assert sorted(one) != sorted(different)
    first, second = queried_sets(cases[0])
    assert one != [(min(a, b), max(a, b)) for a in first for b in second]
