"""The two tables, what stands in them, and what of it is each worker's own.

Stand in them: samples, and a result for each pair of samples. Every row has a place in the order in which
it is written: a sample that of its number, a result that of its pair among (1, 2), (1, 3), ..., (2, 3), ...
The places count from 0.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlstress.experiments.methods.experiment import Method
    from sqlstress.report.case import Case


SCHEMA = (
    'CREATE TABLE "sample" ("id" INTEGER NOT NULL PRIMARY KEY, "path" TEXT NOT NULL)',
    'CREATE UNIQUE INDEX "sample_path" ON "sample" ("path")',
    'CREATE TABLE "result" ("a_id" INTEGER NOT NULL, "b_id" INTEGER NOT NULL, "val" REAL NOT NULL, '
    'PRIMARY KEY ("a_id", "b_id"), FOREIGN KEY ("a_id") REFERENCES "sample" ("id"), '
    'FOREIGN KEY ("b_id") REFERENCES "sample" ("id"), CHECK (a_id < b_id))',
    'CREATE INDEX "result_a_id" ON "result" ("a_id")',
    'CREATE INDEX "result_b_id" ON "result" ("b_id")',
)
"""As Peewee creates the tables of orm.py; it makes an index for each foreign key."""

PATH = "/dataset/{:06}.mat"
"""The path of the sample of a place."""
PENDING = -1.0
"""The value of a result that has been allocated and not been computed."""
VALUE = "(a.id * 31 + b.id * 17 + {}) % 997 / 8.0"
"""The value of a computed result, in SQL, of samples a and b; the number that is missing is a seed."""

Pair = tuple[int, int]


def value(a: int, b: int, seed: int) -> float:
    """Return the value of a computed result, as SQLite computes it."""
    return (a * 31 + b * 17 + seed) % 997 / 8.0


def sample_place(path: object) -> int | None:
    """Return the place of a sample; None if there is no such path."""
    digits = path[9:-4] if isinstance(path, str) else ""
    return int(digits) if digits.isdecimal() and PATH.format(int(digits)) == path else None


def pairs(ids: range, samples: int) -> Iterator[Pair]:
    """Yield the pairs of so many samples whose lower id is one of these, in the order of their places."""
    return ((a, b) for a in ids for b in range(a + 1, samples + 1))


def places_before(a: int, samples: int) -> int:
    """Return how many pairs of so many samples have a lower id below this one."""
    return (a - 1) * samples - a * (a - 1) // 2


def pair_place(a: object, b: object, samples: int) -> int | None:
    """Return the place of a result among those of so many samples; None if there is no such pair."""
    if isinstance(a, int) and isinstance(b, int) and 1 <= a < b <= samples:
        return places_before(a, samples) + b - a - 1
    return None


def pair_at(place: int, samples: int) -> Pair:
    """Return the pair of a place: the other way round."""
    a = bisect_right(range(1, samples + 1), place, key=lambda one: places_before(one, samples))
    return a, a + 1 + place - places_before(a, samples)


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
