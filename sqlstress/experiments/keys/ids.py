"""Identifiers as one process makes them: 16 bytes each, as an application's library makes them.

A "ulid" has random bits of its own, so that the order within a millisecond is left to chance; a "uuid4"
has no order at all. The fifth type, "int", is made where it is used.

A library is imported when its identifiers are to be made: a worker imports the least it can.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, cast

from sqlstress.statistics.units import NS_PER_MS

if TYPE_CHECKING:
    from sqlstress.experiments.keys.experiment import Picks
    from sqlstress.report.case import Case


Make = Callable[[], bytes]
Clock = Callable[[], int]
"""Nanoseconds since 1970."""
Randomness = Callable[[int], bytes]
"""So many random bytes."""

SIZE = 16
"""Bytes of an identifier."""
ASCENDING = ("int", "ulid-monotonic", "uuid7")
"""The types of which each one is greater than all that the same process made before."""


def maker(id_type: str) -> Make:
    """Return what makes identifiers of a type, other than "int"."""
    return _MAKERS[id_type]()


def steady_ms(clock: Clock = time.time_ns) -> Callable[[], int]:
    """Return a clock of milliseconds since 1970 that never goes back, as the system's does when it is set."""
    latest = 0

    def now() -> int:
        nonlocal latest
        latest = max(latest, clock() // NS_PER_MS)
        return latest

    return now


def uuid4_maker() -> Make:
    """122 random bits (RFC 9562, 5.4)."""
    from uuid import uuid4

    return lambda: uuid4().bytes


def ulid_maker() -> Make:
    """The millisecond, then 80 random bits."""
    from ulid import PureRandomPolicy, ULIDGenerator

    generate = ULIDGenerator(policy=PureRandomPolicy()).generate
    return lambda: generate().bytes


def monotonic_ulid_maker(clock: Clock = time.time_ns, randomness: Randomness = os.urandom) -> Make:
    """The same, but within a millisecond the random part of the last one, plus one.

    Raises ValueError when that overflows, as the specification asks; it has to happen to nobody.
    Source: https://github.com/ulid/spec#monotonicity
    """
    from ulid import StrictMonotonicPolicy, ULIDGenerator
    from ulid.constants import RANDOMNESS_LEN

    # The policy takes an earlier millisecond for a new one: it is the clock that must not go back.
    generate = ULIDGenerator(
        steady_ms(clock), lambda _: randomness(RANDOMNESS_LEN), StrictMonotonicPolicy()
    ).generate
    return lambda: generate().bytes


def uuid7_maker(clock: Clock = time.time_ns, randomness: Randomness = os.urandom) -> Make:
    """The millisecond, a counter of 42 bits, 32 random bits (RFC 9562, 5.7 and 6.2, method 1).

    The counter begins every millisecond at a random number below half of its range: nobody makes as many
    identifiers in a millisecond as are left then. Python's own, from 3.14 on, is built the same way.
    """
    now_ms = steady_ms(clock)
    latest = counter = 0

    def make() -> bytes:
        nonlocal latest, counter
        now = now_ms()
        drawn, tail = divmod(int.from_bytes(randomness(10)), 1 << 32)
        counter = counter + 1 if now == latest else drawn >> 7
        latest = now
        high, low = divmod(counter, 1 << 30)
        return (now << 80 | 7 << 76 | high << 64 | 2 << 62 | low << 32 | tail).to_bytes(SIZE)

    return make


def best_uuid7_maker() -> Make:
    """Python's own where there is one, else ours."""
    if sys.version_info >= (3, 14):
        from uuid import uuid7

        return lambda: uuid7().bytes
    return uuid7_maker()


_MAKERS: dict[str, Callable[[], Make]] = {
    "uuid4": uuid4_maker,
    "ulid": ulid_maker,
    "ulid-monotonic": monotonic_ulid_maker,
    "uuid7": best_uuid7_maker,
}


# Who picks what: drawn from the seed, so that the workers and the proof know it without being told.
#
# The same seed is the same work, whatever the schema and the type of the identifiers.


def picks_in(case: Case) -> Picks:
    """Return what a case of this experiment says of its picks."""
    return cast("Picks", case.spec)


def users_of(case: Case, worker: int) -> range:
    """Return the users, from 0, whose picks a worker inserts, in its order; workers count from 1."""
    return range(worker - 1, picks_in(case).users, case.concurrency)


def picked_by(case: Case, user: int) -> list[int]:
    """Return the items, from 0, that a user picks, in the order in which they are inserted."""
    picks = picks_in(case)
    random = Random(f"{case.seed}:picks:{user}")
    count = random.randint(2 * picks.picks - picks.most_picks, picks.most_picks)
    return random.sample(range(picks.items), count)


def first_number(picks: Picks, user: int) -> int:
    """Return the first of a user's range of numbers, where ids are numbers that Python makes.

    A process that takes a whole range need ask nobody for the next number.
    """
    return user * picks.most_picks + 1
