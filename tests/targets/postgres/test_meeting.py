"""Tests of hosts that meet at a real server: one start for all, whoever is late, gone or elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.errors import EnvironmentFailure
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.meeting import Invitation
from sqlstress.targets.postgres.own_schema import drop_abandoned
from sqlstress.targets.postgres.postgres_meeting import (
    LONGEST_NS,
    ROUNDS,
    SERVERS_NS,
    PostgresMeeting,
    read_clock,
)
from tests.cli.on_postgres import schemas
from tests.drawing import examples
from tests.pulses import nothing

ABC = ("anna", "bert", "carl")
LEAD_S, LENGTH_S = 0.01, 0.2
SKEW_NS = 3600 * NS_PER_S


def stop() -> None:
    raise KeyboardInterrupt


def skewed() -> int:
    return time.perf_counter_ns() + SKEW_NS


def day_skewed() -> int:
    return time.time_ns() - 5 * NS_PER_S


@contextmanager
def hosts(
    server: str, *names: str, asked: tuple[str, ...] = ABC, patience_s: float = 60.0
) -> Iterator[list[PostgresMeeting]]:
    meeting = f"test-{time.perf_counter_ns()}"
    found = [PostgresMeeting(server, Invitation(meeting, name, asked), patience_s) for name in names]
    try:
        yield found
    finally:
        for one in found:
            one.close()
        assert not schemas(server)


def together(*calls: Callable[[], int]) -> list[int]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [one.result() for one in [pool.submit(call) for call in calls]]


def start(host: PostgresMeeting, step: int) -> Callable[[], int]:
    return lambda: host.start_ns(step, LEAD_S, LENGTH_S, nothing)


@pytest.mark.thorough
def test_all_begin_at_one_instant_whatever_their_clocks_say(server: str) -> None:
    with hosts(server, "anna", "bert") as (anna, bert):
        carl = PostgresMeeting(server, Invitation(anna._invited.meeting, "carl", ABC), 60, skewed, day_skewed)
        for step in range(3):
            starts = together(*(start(one, step) for one in (anna, bert, carl)))
            # All run on one machine: what is known of carl's clock here, it had to find out.
            true = [starts[0], starts[1], starts[2] - SKEW_NS]
            told = [one.together(at, at + 10**9) for one, at in zip((anna, bert, carl), starts, strict=True)]
            errors = [one.error_ns for one in told]
            assert all(abs(a - b) <= 2 * max(errors) for a, b in pairwise(true))
            assert all(one.began == one.asked == ABC and one.step == step for one in told)
            assert [one.host for one in told] == [*ABC]
            assert min(true) > time.perf_counter_ns() - 10**9
            assert abs(told[2].clock_ns + 5 * NS_PER_S) <= told[2].clock_error_ns + 10**6
            assert abs(told[0].clock_ns) <= told[0].clock_error_ns + 10**6
        carl.close()


@pytest.mark.thorough
def test_a_host_that_is_gone_is_not_waited_for(server: str) -> None:
    with hosts(server, *ABC) as (anna, bert, carl):
        together(*(start(one, 0) for one in (anna, bert, carl)))
        assert carl._connection
        carl._connection.close()  # as its process's death would
        begun = time.monotonic()
        together(start(anna, 1), start(bert, 1))
        assert time.monotonic() - begun < 20
        assert anna.together(0, 1).began == ("anna", "bert") and anna.together(0, 1).asked == ABC


@pytest.mark.thorough
def test_a_host_that_goes_on_to_the_next_trial_is_left_out_of_this_one(server: str) -> None:
    with hosts(server, "anna", "bert", asked=("anna", "bert")) as (anna, bert), ThreadPoolExecutor() as pool:
        first, second = pool.submit(start(anna, 0)), pool.submit(start(bert, 1))
        first.result()
        assert anna.together(0, 1).began == ("anna",)
        together(start(anna, 1), second.result)
        assert anna.together(0, 1).began == bert.together(0, 1).began == ("anna", "bert")


@pytest.mark.thorough
def test_who_is_late_hears_it_when_the_others_are_done(server: str) -> None:
    with hosts(server, *ABC[:2], patience_s=0.5) as (anna, bert):
        carl = PostgresMeeting(server, Invitation(anna._invited.meeting, "carl", ABC))
        starts = together(start(anna, 0), start(bert, 0))
        with pytest.raises(
            EnvironmentFailure, match=r"missed the common start\. The other hosts began without"
        ):
            carl.start_ns(0, LEAD_S, LENGTH_S, nothing)
        assert time.perf_counter_ns() > max(starts) + LENGTH_S * NS_PER_S - 10**6
        with pytest.raises(EnvironmentFailure, match="had begun before this host was ready"):
            carl.expect(0)
        carl.expect(1)
        together(*(start(one, 1) for one in (anna, bert, carl)))
        assert carl.together(0, 1).began == ABC
        carl.close()


def test_a_host_to_whose_server_nobody_else_comes_loads_nothing_and_can_be_stopped(server: str) -> None:
    with (
        hosts(server, "anna", patience_s=0.3) as (anna,),
        pytest.raises(EnvironmentFailure, match="no other host reached this server"),
    ):
        anna.start_ns(0, LEAD_S, LENGTH_S, nothing)
    with hosts(server, "anna") as (anna,), pytest.raises(KeyboardInterrupt):
        anna.start_ns(0, LEAD_S, LENGTH_S, stop)


def test_what_killed_hosts_leave_the_next_start_drops_and_nothing_before(server: str) -> None:
    with hosts(server, *ABC) as met:
        together(*(start(one, 0) for one in met))
        assert drop_abandoned(server) == []
        for one in met:
            assert one._connection
            one._connection.close()
            one._connection = None
        until = time.monotonic() + 20
        dropped: list[str] = []
        while not dropped and time.monotonic() < until:
            dropped = drop_abandoned(server)
        assert dropped == [met[0].schema]


def test_a_session_that_the_server_has_ended_is_begun_anew(server: str) -> None:
    with hosts(server, "anna", "bert", asked=("anna", "bert")) as (anna, bert):
        together(start(anna, 0), start(bert, 0))
        assert anna._connection
        with psycopg.connect(server, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (anna._connection.info.backend_pid,))
        together(start(anna, 1), start(bert, 1))
        assert bert.together(0, 1).began == ("anna", "bert")


def test_a_server_that_is_gone_is_told_in_a_line() -> None:
    nowhere = "host=127.0.0.1 port=1 user=me password=secret dbname=mine"
    meeting = PostgresMeeting(nowhere, Invitation("m", "anna", ("anna",)))
    with pytest.raises(EnvironmentFailure, match="the hosts can't meet at the server") as found:
        meeting.expect(0)
    assert "secret" not in str(found.value) and "\n" not in str(found.value)


# How far the clocks of hosts are from the server's: the error that is told holds, whatever the ways take.


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
