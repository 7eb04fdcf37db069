"""What identifiers promise: no two are the same, and some of them ascend."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from itertools import count, pairwise, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.keys import ids
from sqlstress.experiments.keys.experiment import ID_TYPES
from tests.rows import thorough

BLOBS = [id_type for id_type in ID_TYPES if id_type != "int"]
NOW_NS = 1_689_379_200_123_456_789
ORDERED: list[Callable[..., ids.Make]] = [ids.monotonic_ulid_maker, ids.uuid7_maker]

clocks = st.lists(st.integers(NOW_NS - 10**10, NOW_NS + 10**10), min_size=2, max_size=60)
"""What the system's clock answers: it may stand still, and it may be set back."""


def ticking(times_ns: list[int]) -> ids.Clock:
    answers: Iterator[int] = iter(times_ns)
    return lambda: next(answers)


def ascends(made: list[bytes]) -> bool:
    return all(earlier < later for earlier, later in pairwise(made))


@pytest.mark.parametrize("many", [100_000, thorough(1_000_000)])
@pytest.mark.parametrize("id_type", BLOBS)
def test_many_ids_are_all_different_and_ascend_where_that_is_promised(id_type: str, many: int) -> None:
    make = ids.maker(id_type)
    made = [make() for _ in range(many)]
    assert len(set(made)) == many
    assert set(map(len, made)) == {ids.SIZE}
    assert ascends(made) == (id_type in ids.ASCENDING)


def test_the_integers_are_the_only_type_that_needs_no_maker() -> None:
    assert [*ids._MAKERS, "int"] == [*BLOBS, "int"]
    assert set(ids.ASCENDING) <= set(ID_TYPES)


@pytest.mark.parametrize("maker", ORDERED)
@given(times_ns=clocks)
def test_a_clock_that_stands_or_is_set_back_breaks_no_order(
    maker: Callable[..., ids.Make], times_ns: list[int]
) -> None:
    make = maker(ticking(times_ns))
    made = [make() for _ in times_ns]
    assert ascends(made)
    steady = ids.steady_ms(ticking(times_ns))
    assert [int.from_bytes(one[:6]) for one in made] == [steady() for _ in times_ns]


@given(clocks)
def test_a_steady_clock_never_goes_back_and_follows_the_latest(times_ns: list[int]) -> None:
    steady = ids.steady_ms(ticking(times_ns))
    told = [steady() for _ in times_ns]
    assert told == [max(times_ns[: place + 1]) // 1_000_000 for place in range(len(times_ns))]


def test_within_a_millisecond_the_random_part_of_a_monotonic_ulid_is_incremented_by_one() -> None:
    parts = iter([b"\x00" * 8 + b"\xff\xff", b"\x07" * 10])
    times = [NOW_NS, NOW_NS + 1, NOW_NS + 2, NOW_NS + 1_000_000]
    make = ids.monotonic_ulid_maker(ticking(times), lambda size: next(parts))
    first, second, third, later = (make() for _ in times)
    assert int.from_bytes(second) == int.from_bytes(first) + 1
    assert int.from_bytes(third) == int.from_bytes(first) + 2
    assert int.from_bytes(later[:6]) == int.from_bytes(first[:6]) + 1
    assert later[6:] == b"\x07" * 10


def test_a_monotonic_ulid_whose_random_part_overflows_is_refused_as_the_specification_asks() -> None:
    make = ids.monotonic_ulid_maker(ticking([NOW_NS] * 3), lambda size: b"\xff" * (size - 1) + b"\xfe")
    make()
    assert make()[6:] == b"\xff" * 10
    with pytest.raises(ValueError, match="exhausted"):
        make()


def test_a_plain_ulid_has_random_bits_of_its_own_each_time() -> None:
    make = ids.maker("ulid")
    parts = [int.from_bytes(make()[6:]) for _ in range(2000)]
    # Of successors there would be nearly as many as there are pairs.
    assert sum(later - earlier == 1 for earlier, later in pairwise(parts)) == 0


@pytest.mark.parametrize(("id_type", "version"), [("uuid4", 4), ("uuid7", 7)])
def test_a_uuid_says_of_which_version_it_is(id_type: str, version: int) -> None:
    make = ids.maker(id_type)
    for one in (uuid.UUID(bytes=make()) for _ in range(1000)):
        assert (one.variant, one.version) == (uuid.RFC_4122, version)


def test_ours_of_version_7_are_built_as_rfc_9562_says() -> None:
    drawn = iter([bytes.fromhex("ffffffffffff01020304"), bytes.fromhex("00000000000005060708")])
    make = ids.uuid7_maker(lambda: NOW_NS, lambda size: next(drawn))
    first, second = (uuid.UUID(bytes=make()) for _ in range(2))
    assert (first.int >> 80, second.int >> 80) == (NOW_NS // 1_000_000, NOW_NS // 1_000_000)
    assert {(one.variant, one.version) for one in (first, second)} == {(uuid.RFC_4122, 7)}

    def counter(one: uuid.UUID) -> int:
        return (one.int >> 64 & 0xFFF) << 30 | one.int >> 32 & 0x3FFF_FFFF

    # It begins at a random number whose highest bit is 0, and goes on by one.
    assert (counter(first), counter(second)) == (2**41 - 1, 2**41)
    assert (first.int & 0xFFFF_FFFF, second.int & 0xFFFF_FFFF) == (0x01020304, 0x05060708)


def test_two_processes_never_make_the_same_ones_of_the_same_moment() -> None:
    same = repeat(NOW_NS)
    makers = [maker(lambda: next(same)) for maker in ORDERED for _ in range(2)]
    made = [make() for make in makers for _ in zip(range(1000), count())]
    assert len(set(made)) == len(made)
