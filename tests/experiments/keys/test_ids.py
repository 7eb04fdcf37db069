"""Guarantees of identifiers (unique, some ascending), and the picks that follow from the seed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, pairwise, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.classics import keys_worker as worker
from sqlstress.experiments.classics.keys import ID_TYPES, Picks
from sqlstress.experiments.classics.keys_worker import first_number, picked_by, users_of
from sqlstress.report.case import Case

BLOBS = [id_type for id_type in ID_TYPES if id_type != "int"]
NOW_NS = 1_689_379_200_123_456_789
ORDERED: list[Callable[..., worker.Make]] = [worker.monotonic_ulid_maker, worker.uuid7_maker]

clocks = st.lists(st.integers(NOW_NS - 10**10, NOW_NS + 10**10), min_size=2, max_size=60)
"""Answers of a system clock that may stop and may be set back."""


def ticking(times_ns: list[int]) -> worker.Clock:
    answers: Iterator[int] = iter(times_ns)
    return lambda: next(answers)


def ascends(made: list[bytes]) -> bool:
    return all(earlier < later for earlier, later in pairwise(made))


@pytest.mark.parametrize("id_type", BLOBS)
def test_ids_are_unique_and_ascend_if_their_type_guarantees_it(id_type: str) -> None:
    make = worker.MAKERS[id_type]()
    made = [make() for _ in range(30_000)]
    assert len(set(made)) == len(made)
    assert set(map(len, made)) == {worker.SIZE}
    assert ascends(made) == (id_type in worker.ASCENDING)


@pytest.mark.parametrize("maker", ORDERED)
@given(times_ns=clocks)
def test_ids_keep_their_order_if_the_clock_stops_or_is_set_back(
    maker: Callable[..., worker.Make], times_ns: list[int]
) -> None:
    make = maker(ticking(times_ns))
    made = [make() for _ in times_ns]
    assert ascends(made)
    steady = worker.steady_ms(ticking(times_ns))
    assert [int.from_bytes(blob[:6]) for blob in made] == [steady() for _ in times_ns]


@given(clocks)
def test_steady_clock_never_goes_back_and_follows_the_latest(times_ns: list[int]) -> None:
    steady = worker.steady_ms(ticking(times_ns))
    times_ms = [steady() for _ in times_ns]
    assert times_ms == [max(times_ns[: place + 1]) // 1_000_000 for place in range(len(times_ns))]


def test_within_a_millisecond_the_random_part_of_a_monotonic_ulid_is_incremented_by_one() -> None:
    parts = iter([b"\x00" * 8 + b"\xff\xff", b"\x07" * 10])
    times = [NOW_NS, NOW_NS + 1, NOW_NS + 2, NOW_NS + 1_000_000]
    make = worker.monotonic_ulid_maker(ticking(times), lambda size: next(parts))
    first, second, third, later = (make() for _ in times)
    assert int.from_bytes(second) == int.from_bytes(first) + 1
    assert int.from_bytes(third) == int.from_bytes(first) + 2
    assert int.from_bytes(later[:6]) == int.from_bytes(first[:6]) + 1
    assert later[6:] == b"\x07" * 10


def test_overflow_of_a_monotonic_ulid_is_refused() -> None:
    make = worker.monotonic_ulid_maker(ticking([NOW_NS] * 3), lambda size: b"\xff" * (size - 1) + b"\xfe")
    make()
    assert make()[6:] == b"\xff" * 10
    with pytest.raises(ValueError, match="exhausted"):
        make()


@pytest.mark.parametrize(("id_type", "version"), [("uuid4", 4), ("uuid7", 7)])
def test_uuid_states_its_version(id_type: str, version: int) -> None:
    make = worker.MAKERS[id_type]()
    for made in (uuid.UUID(bytes=make()) for _ in range(1000)):
        assert (made.variant, made.version) == (uuid.RFC_4122, version)


def test_uuid7_has_the_layout_of_rfc_9562() -> None:
    drawn = iter([bytes.fromhex("ffffffffffff01020304"), bytes.fromhex("00000000000005060708")])
    make = worker.uuid7_maker(lambda: NOW_NS, lambda size: next(drawn))
    first, second = (uuid.UUID(bytes=make()) for _ in range(2))
    assert (first.int >> 80, second.int >> 80) == (NOW_NS // 1_000_000, NOW_NS // 1_000_000)
    assert {(made.variant, made.version) for made in (first, second)} == {(uuid.RFC_4122, 7)}

    def counter(made: uuid.UUID) -> int:
        return (made.int >> 64 & 0xFFF) << 30 | made.int >> 32 & 0x3FFF_FFFF

    # The counter starts at a random number whose highest bit is 0, and increases by 1.
    assert (counter(first), counter(second)) == (2**41 - 1, 2**41)
    assert (first.int & 0xFFFF_FFFF, second.int & 0xFFFF_FFFF) == (0x01020304, 0x05060708)


def test_two_processes_never_make_the_same_ones_of_the_same_moment() -> None:
    same = repeat(NOW_NS)
    makers = [maker(lambda: next(same)) for maker in ORDERED for _ in range(2)]
    made = [make() for make in makers for _ in zip(range(1000), count())]
    assert len(set(made)) == len(made)


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
    users = [user for number in range(1, workers + 1) for user in users_of(case, number)]
    assert sorted(users) == list(range(load.users))


@given(loads, st.integers(0, 1000))
def test_user_picks_about_as_many_distinct_items_as_requested(load: Picks, user: int) -> None:
    picked = picked_by(case_of(load), user)
    assert len(set(picked)) == len(picked)
    assert all(0 <= item < load.items for item in picked)
    assert load.picks - load.picks // 10 <= len(picked) <= load.picks + load.picks // 10


def test_seed_gives_equal_work_for_every_schema_and_type() -> None:
    one, other = case_of(Picks("no-key", "int")), case_of(Picks("id-rowid", "uuid7"), concurrency=4)
    assert [picked_by(one, user) for user in range(20)] == [picked_by(other, user) for user in range(20)]
    again = replace(one, seed=6)
    assert [picked_by(again, user) for user in range(20)] != [picked_by(one, user) for user in range(20)]


@given(loads, st.integers(0, 1000))
def test_no_two_users_have_a_number_in_common(load: Picks, user: int) -> None:
    last = first_number(load, user) + load.most_picks - 1
    assert first_number(load, user + 1) > last
