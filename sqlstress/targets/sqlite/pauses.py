"""Pauses inside SQLite: at the calls that it makes of its VFS, as a schedule says. In C: native/shim.c."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from random import Random

from sqlstress.errors import EnvironmentFailure
from sqlstress.targets.native import NotToBeHad, extension
from sqlstress.targets.sqlite.connections import reached_once

SIDES = 2
LENGTHS = 256
"""Lengths of pauses that a schedule has to draw from."""


def schedule(random: Random, rates: Sequence[int], shortest_ns: int, longest_ns: int) -> list[int]:
    """Return a schedule as words. `rates`: at each point of native/pauses.h, one in how many calls pauses.

    Lengths are spread evenly over the orders of magnitude between the shortest and the longest.
    """
    low, high = math.log(shortest_ns), math.log(longest_ns)
    lengths = [round(math.exp(random.uniform(low, high))) for _ in range(LENGTHS)]
    return [
        random.getrandbits(62),
        LENGTHS,
        *(rate for rate in rates for _ in range(SIDES)),
        *lengths,
    ]


def begin(driver: str, words: Sequence[int]) -> None:
    """Pause as a schedule says, at all connections of a driver's library that this process opens from now on.

    Raises EnvironmentFailure where its VFS can't be wrapped.
    """
    try:
        handle, native = reached_once(driver), extension()
    except NotToBeHad as error:
        raise EnvironmentFailure(f"pauses inside SQLite are not available with {driver}: {error}.") from error
    problem = native.pauses_begin(handle.functions, array("q", words))
    if problem:
        raise EnvironmentFailure(f"pauses inside SQLite are not available with {driver}: {problem}.")


def made() -> int:
    """Return how often this process has paused."""
    return int(extension().pauses_made())
