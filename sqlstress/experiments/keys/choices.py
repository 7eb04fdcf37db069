"""Who picks what: drawn from the seed, so that the workers and the proof know it without being told.

The same seed is the same work, whatever the schema and the type of the identifiers.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from sqlstress.experiments.keys.spec import Picks
    from sqlstress.report.case import Case


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
