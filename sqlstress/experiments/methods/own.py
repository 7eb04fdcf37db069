"""What each worker owns: a range of samples, a range of lower ids, or the pairs between two sets of ids."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from sqlstress.experiments.methods.tables import Pair, places_before

if TYPE_CHECKING:
    from sqlstress.experiments.methods.spec import Method
    from sqlstress.report.case import Case


class Own(NamedTuple):
    """What one worker is to write or read."""

    places: range = range(0)
    """Places of the rows to write: samples, or results."""
    ids: range = range(0)
    """Lower ids of the results to write."""
    sets: tuple[Sequence[int], Sequence[int]] = ((), ())
    """Two disjoint sets of ids, between which all pairs are queried."""
    pairs: Sequence[Pair] = ()
    """The same pairs, the lower id first, in any order."""

    @property
    def rows(self) -> int:
        """How many rows that are."""
        return len(self.places) or len(self.pairs)


def own(case: Case, method: Method, worker: int) -> Own:
    """Return what a worker owns; it counts from 1."""
    if method.phase == "insert":
        return Own(places=share(method.scale, case.concurrency, worker))
    if method.phase == "allocate":
        ids = own_ids(method.scale, case.concurrency, worker)
        first, end = (places_before(a, method.scale) for a in (ids.start, ids.stop))
        return Own(places=range(first, end), ids=ids)
    first_set, second_set = id_sets(case, method, worker)
    pairs = [(min(a, b), max(a, b)) for a in first_set for b in second_set]
    Random(f"{case.seed}:{method.scale}:{worker}").shuffle(pairs)
    return Own(sets=(first_set, second_set), pairs=pairs)


def share(total: int, workers: int, worker: int) -> range:
    """Return the part of so many things that a worker owns."""
    return range(total * (worker - 1) // workers, total * worker // workers)


def own_ids(samples: int, workers: int, worker: int) -> range:
    """Return a range of lower ids for each worker, so that all own about as many pairs."""
    total = places_before(samples, samples)
    ids = range(1, samples)
    first, end = (
        bisect_left(ids, total * part // workers, key=lambda a: places_before(a, samples)) + 1
        for part in (worker - 1, worker)
    )
    return range(first, end)


def id_sets(case: Case, method: Method, worker: int) -> tuple[list[int], list[int]]:
    """Return two sets of ids, drawn at random: the first is everybody's, of the second each has a part."""
    lower, higher = method.sets
    drawn = Random(f"{case.seed}:{method.scale}").sample(range(1, method.samples + 1), lower + higher)
    part = share(higher, case.concurrency, worker)
    return drawn[:lower], drawn[lower:][part.start : part.stop]
