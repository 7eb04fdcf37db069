"""How far a host's clocks are from the server's, by round trips: what the server says lies between two looks.

Half of the shortest round trip is a bound, not a guess: it holds also where the ways there and back differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from sqlstress.statistics.units import NS_PER_S

ROUNDS = 32
LONGEST_NS = NS_PER_S
"""After so long no further round trip is made, if there were a few."""
FEWEST = 4
SERVERS_NS = 1000
"""What the server's clock is read in."""
SQL = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class Reading(NamedTuple):
    """The server's clock beside our own two."""

    offset_ns: int
    """What is added to perf_counter_ns to get the server's clock, in ns since 1970."""
    error_ns: int
    """By how much that may be off at most."""
    ahead_ns: int
    """How much the host's own clock of the day is ahead of the server's."""
    ahead_error_ns: int
    """By how much that may be off at most."""


def read_clock(
    server_us: Callable[[], int],
    own: Callable[[], int] = time.perf_counter_ns,
    of_day: Callable[[], int] = time.time_ns,
) -> Reading:
    """Return the best of some readings; `server_us` asks the server, in µs since 1970."""
    grain_ns = int(time.get_clock_info("time").resolution * NS_PER_S)
    best: tuple[int, int, int, int] | None = None
    begun = own()
    for number in range(ROUNDS):
        here, day, server, back = own(), of_day(), server_us(), own()
        if best is None or back - here < best[0]:
            best = back - here, here, day, server * 1000
        if number >= FEWEST and back - begun > LONGEST_NS:
            break
    assert best
    trip_ns, here, day, server_ns = best
    error_ns = trip_ns // 2 + SERVERS_NS
    ahead_ns = day + trip_ns // 2 - server_ns
    return Reading(server_ns - here - trip_ns // 2, error_ns, ahead_ns, error_ns + grain_ns)
