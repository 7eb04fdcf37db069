"""Tests of the server's clock beside a host's: the error that is told holds, whatever the ways take."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.postgres.postgres_meeting import LONGEST_NS, ROUNDS, SERVERS_NS, read_clock
from tests.drawing import examples

NS = st.integers(0, 10**9)


class World:
    """A server and a host, with a time that passes as messages go."""

    def __init__(self, there: list[int], back: list[int], skew_ns: int, day_skew_ns: int) -> None:
        self.now, self.there, self.back = 10**15, there, back
        self.skew_ns, self.day_skew_ns = skew_ns, day_skew_ns
        self.trips = 0

    def server_us(self) -> int:
        self.now += self.there[self.trips % len(self.there)]
        told = self.now // 1000
        self.now += self.back[self.trips % len(self.back)]
        self.trips += 1
        return told

    def own(self) -> int:
        return self.now + self.skew_ns

    def of_day(self) -> int:
        return self.now + self.day_skew_ns


@settings(max_examples=examples(1.0))
@given(
    st.lists(NS, min_size=1, max_size=8), st.lists(NS, min_size=1, max_size=8), st.integers(), st.integers()
)
def test_the_clocks_are_never_further_apart_than_is_told(
    there: list[int], back: list[int], skew_ns: int, day_skew_ns: int
) -> None:
    world = World(there, back, skew_ns, day_skew_ns)
    found = read_clock(world.server_us, world.own, world.of_day)
    assert abs(found.offset_ns + skew_ns) <= found.error_ns
    assert abs(found.ahead_ns - day_skew_ns) <= found.ahead_error_ns
    trips = [one + other for one, other in zip(there * len(back), back * len(there), strict=True)]
    assert found.error_ns <= max(trips) // 2 + SERVERS_NS


def test_of_many_round_trips_the_shortest_counts() -> None:
    world = World([10**6] * 7 + [1000], [5 * 10**6] * 7 + [3000], -(3600 * NS_PER_S), 5 * NS_PER_S)
    found = read_clock(world.server_us, world.own, world.of_day)
    assert world.trips == ROUNDS and found.error_ns == 2000 + SERVERS_NS
    grain_ns = int(time.get_clock_info("time").resolution * NS_PER_S)
    assert found.ahead_error_ns == found.error_ns + grain_ns


def test_a_server_that_is_far_away_is_not_asked_for_long() -> None:
    world = World([LONGEST_NS // 4], [LONGEST_NS // 4], 0, 0)
    read_clock(world.server_us, world.own, world.of_day)
    assert world.trips == 5
