"""The tables, the place of every row in them, and each worker's part: together everything, nothing twice."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing

import peewee
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.classics.methods_tables import (
    PATH,
    SCHEMA,
    VALUE,
    Part,
    lower_ids,
    pair_place,
    pairs,
    part_of,
    places_before,
    sample_place,
    value,
)
from sqlstress.experiments.classics.orm import MODELS
from sqlstress.report.case import Case
from tests.drawing import CHARACTERS
from tests.experiments.methods.cells import cell

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


workers = st.integers(1, 9)


def parts_of(case: Case) -> list[Part]:
    return [part_of(case, worker) for worker in range(1, case.concurrency + 1)]


@given(st.integers(1, 100), workers)
def test_the_workers_insert_every_sample_once_in_ranges_of_about_one_length(scale: int, count: int) -> None:
    places = [part.places for part in parts_of(cell("insert", "1b1", scale, concurrency=count))]
    assert [place for each in places for place in each] == list(range(scale))
    assert max(map(len, places)) - min(map(len, places)) <= 1


@given(st.integers(2, 60), workers)
def test_the_workers_allocate_every_pair_once_each_a_range_of_lower_ids(scale: int, count: int) -> None:
    case = cell("allocate", "1b1", scale, concurrency=count)
    parts = parts_of(case)
    assert [a for part in parts for a in part.ids] == list(range(1, scale))
    assert [place for part in parts for place in part.places] == list(range(case.spec.rows))
    assert [len(part.places) for part in parts] == [len(list(pairs(part.ids, scale))) for part in parts]


@given(st.integers(20, 300), workers)
def test_every_worker_allocates_about_as_many_pairs(samples: int, count: int) -> None:
    sizes = [len(list(pairs(lower_ids(samples, count, worker), samples))) for worker in range(1, count + 1)]
    # Two borders, each off by less than the pairs of one id.
    assert max(sizes) - min(sizes) < 2 * samples


@given(st.sampled_from([1, 2, 12, 36, 100, 221]), workers)
def test_the_workers_query_every_pair_between_two_disjoint_sets_once(scale: int, count: int) -> None:
    case = cell("query", "1b1", scale, concurrency=count)
    parts = parts_of(case)
    (first,) = {tuple(part.sets[0]) for part in parts}
    second = [number for part in parts for number in part.sets[1]]
    assert len({*first, *second}) == len(first) + len(second) == sum(case.spec.sets)
    queried = Counter(pair for part in parts for pair in part.pairs)
    assert queried == Counter((min(a, b), max(a, b)) for a in first for b in second)
    assert queried.total() == scale


def test_the_pairs_are_drawn_by_the_seed_and_asked_for_in_no_order() -> None:
    one, again, different = (part_of(cell("query", "1b1", 100, seed=seed), 1) for seed in (1, 1, 2))
    assert one.pairs == again.pairs
    assert sorted(one.pairs) != sorted(different.pairs)
    first, second = one.sets
    assert one.pairs != [(min(a, b), max(a, b)) for a in first for b in second]
