"""What each worker owns: together everything, and nothing twice."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.methods.tables import own, own_ids, pairs
from tests.experiments.methods.cells import cell

workers = st.integers(1, 9)


@given(st.integers(1, 100), workers)
def test_the_workers_insert_every_sample_once_in_ranges_of_about_one_length(scale: int, count: int) -> None:
    case = cell("insert", "1b1", scale, concurrency=count)
    places = [own(case, case.spec, worker).places for worker in range(1, count + 1)]
    assert [place for each in places for place in each] == list(range(scale))
    assert max(map(len, places)) - min(map(len, places)) <= 1


@given(st.integers(2, 60), workers)
def test_the_workers_allocate_every_pair_once_each_a_range_of_lower_ids(scale: int, count: int) -> None:
    case = cell("allocate", "1b1", scale, concurrency=count)
    owned = [own(case, case.spec, worker) for worker in range(1, count + 1)]
    assert [a for each in owned for a in each.ids] == list(range(1, scale))
    assert [place for each in owned for place in each.places] == list(range(case.spec.rows))
    assert [len(each.places) for each in owned] == [len(list(pairs(each.ids, scale))) for each in owned]


@given(st.integers(20, 300), workers)
def test_every_worker_allocates_about_as_many_pairs(samples: int, count: int) -> None:
    sizes = [len(list(pairs(own_ids(samples, count, worker), samples))) for worker in range(1, count + 1)]
    # Two borders, each off by less than the pairs of one id.
    assert max(sizes) - min(sizes) < 2 * samples


@given(st.sampled_from([1, 2, 12, 36, 100, 221]), workers)
def test_the_workers_query_every_pair_between_two_disjoint_sets_once(scale: int, count: int) -> None:
    case = cell("query", "1b1", scale, concurrency=count)
    owned = [own(case, case.spec, worker) for worker in range(1, count + 1)]
    (first,) = {tuple(each.sets[0]) for each in owned}
    second = [number for each in owned for number in each.sets[1]]
    assert len({*first, *second}) == len(first) + len(second) == sum(case.spec.sets)
    asked = Counter(pair for each in owned for pair in each.pairs)
    assert asked == Counter((min(a, b), max(a, b)) for a in first for b in second)
    assert asked.total() == scale


def test_the_pairs_are_drawn_by_the_seed_and_asked_for_in_no_order() -> None:
    case = cell("query", "1b1", 100, seed=1)
    other = cell("query", "1b1", 100, seed=2)
    one, again, different = (own(each, case.spec, 1).pairs for each in (case, case, other))
    assert one == again
    assert sorted(one) != sorted(different)
    first, second = own(case, case.spec, 1).sets
    assert one != [(min(a, b), max(a, b)) for a in first for b in second]
