"""Who picks what is known from the seed."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.keys.experiment import Picks
from sqlstress.experiments.keys.ids import first_number, picked_by, users_of
from sqlstress.report.case import Case

loads = st.builds(
    lambda users, picks, more: Picks(
        "no-key", "int", users=users, picks=picks, items=picks + picks // 10 + more
    ),
    st.integers(1, 300),
    st.integers(1, 60),
    st.integers(0, 50),
)


def case_of(load: Picks, seed: int = 5, concurrency: int = 1) -> Case:
    return Case(workload="keys", seed=seed, concurrency=concurrency, spec=load)


@given(loads, st.integers(1, 9))
def test_every_user_belongs_to_one_worker(load: Picks, workers: int) -> None:
    case = case_of(load, concurrency=workers)
    users = [user for worker in range(1, workers + 1) for user in users_of(case, worker)]
    assert sorted(users) == list(range(load.users))


@given(loads, st.integers(0, 1000))
def test_a_user_picks_distinct_items_as_many_as_the_option_says_give_or_take_a_tenth(
    load: Picks, user: int
) -> None:
    picked = picked_by(case_of(load), user)
    assert len(set(picked)) == len(picked)
    assert all(0 <= item < load.items for item in picked)
    assert load.picks - load.picks // 10 <= len(picked) <= load.picks + load.picks // 10


def test_the_published_load_is_90_to_110_items_each() -> None:
    counts = {len(picked_by(case_of(Picks("no-key", "int")), user)) for user in range(1000)}
    assert counts == set(range(90, 111))


def test_a_seed_is_the_same_work_whatever_the_schema_and_the_type() -> None:
    one, other = case_of(Picks("no-key", "int")), case_of(Picks("id-rowid", "uuid7", "sqlite"), concurrency=4)
    assert [picked_by(one, user) for user in range(20)] == [picked_by(other, user) for user in range(20)]
    again = replace(one, seed=6)
    assert [picked_by(again, user) for user in range(20)] != [picked_by(one, user) for user in range(20)]


@given(loads, st.integers(0, 1000))
def test_no_two_users_have_a_number_in_common(load: Picks, user: int) -> None:
    last = first_number(load, user) + load.most_picks - 1
    assert first_number(load, user + 1) > last
