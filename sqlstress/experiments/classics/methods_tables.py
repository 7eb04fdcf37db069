"""The two tables, what stands in them, and what of it is each worker's part.

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
    from sqlstress.experiments.classics.methods import Method
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
VALUE = "({a} * 31 + {b} * 17 + {seed}) % 997 / 8.0"
"""Value of a computed result, in SQL, from the ids of its samples and a seed."""

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
    a = bisect_right(range(1, samples + 1), place, key=lambda a: places_before(a, samples))
    return a, a + 1 + place - places_before(a, samples)


class Part(NamedTuple):
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


def part_of(case: Case, worker: int) -> Part:
    """Return a worker's part; it counts from 1."""
    method: Method = case.spec
    if method.phase == "insert":
        return Part(places=_share(method.scale, case.concurrency, worker))
    if method.phase == "allocate":
        ids = lower_ids(method.scale, case.concurrency, worker)
        first, end = (places_before(a, method.scale) for a in (ids.start, ids.stop))
        return Part(places=range(first, end), ids=ids)
    # The first set is everybody's, of the second each has a part.
    lower, higher = method.sets
    drawn = Random(f"{case.seed}:{method.scale}").sample(range(1, method.samples + 1), lower + higher)
    share = _share(higher, case.concurrency, worker)
    sets = drawn[:lower], drawn[lower:][share.start : share.stop]
    pairs = [(min(a, b), max(a, b)) for a in sets[0] for b in sets[1]]
    Random(f"{case.seed}:{method.scale}:{worker}").shuffle(pairs)
    return Part(sets=sets, pairs=pairs)


def _share(total: int, workers: int, worker: int) -> range:
    return range(total * (worker - 1) // workers, total * worker // workers)


def lower_ids(samples: int, workers: int, worker: int) -> range:
    """Return a range of lower ids for each worker, so that all have about as many pairs."""
    total = places_before(samples, samples)
    ids = range(1, samples)
    first, end = (
        bisect_left(ids, total * part // workers, key=lambda a: places_before(a, samples)) + 1
        for part in (worker - 1, worker)
    )
    return range(first, end)
