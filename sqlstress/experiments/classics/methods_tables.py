"""The two tables of methods, their rows, and the rows that a cell writes or queries.

The tables hold samples, and a result for each pair of samples. The place of a row is its number, from 0, in
the order of writing: (1, 2), (1, 3), ..., (2, 3), ... for results.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING

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
"""Statements of Peewee for the models in orm.py; it makes an index for each foreign key."""

PATH = "/dataset/{:06}.mat"
"""Path of the sample at a place."""
PENDING = -1.0
"""Value of a result that has been allocated but not computed."""
VALUE = "({a} * 31 + {b} * 17 + {seed}) % 997 / 8.0"
"""Value of a computed result, in SQL, from the ids of its samples and a seed."""

Pair = tuple[int, int]


def value(a: int, b: int, seed: int) -> float:
    """Return the value of a computed result, as SQLite computes it."""
    return (a * 31 + b * 17 + seed) % 997 / 8.0


def sample_place(path: object) -> int | None:
    """Return the place of a sample; None if no sample has this path."""
    digits = path[9:-4] if isinstance(path, str) else ""
    return int(digits) if digits.isdecimal() and PATH.format(int(digits)) == path else None


def pairs(samples: int) -> Iterator[Pair]:
    """Yield all pairs of samples, in the order of their places."""
    return ((a, b) for a in range(1, samples) for b in range(a + 1, samples + 1))


def pairs_below(a: int, samples: int) -> int:
    """Return the number of pairs whose lower id is below `a`."""
    return (a - 1) * samples - a * (a - 1) // 2


def pair_place(a: object, b: object, samples: int) -> int | None:
    """Return the place of a result; None if there is no such pair of samples."""
    if isinstance(a, int) and isinstance(b, int) and 1 <= a < b <= samples:
        return pairs_below(a, samples) + b - a - 1
    return None


def pair_at(place: int, samples: int) -> Pair:
    """Return the pair at a place."""
    a = bisect_right(range(1, samples + 1), place, key=lambda a: pairs_below(a, samples))
    return a, a + 1 + place - pairs_below(a, samples)


def queried_sets(case: Case) -> tuple[Sequence[int], Sequence[int]]:
    """Return two disjoint sets of ids; a cell queries all pairs between them."""
    method: Method = case.spec
    lower, higher = method.sets
    drawn = Random(f"{case.seed}:{method.scale}").sample(range(1, method.samples + 1), lower + higher)
    return drawn[:lower], drawn[lower:]


def queried_pairs(case: Case, sets: tuple[Sequence[int], Sequence[int]]) -> list[Pair]:
    """Return the pairs between two sets, each with the lower id first, in random order."""
    first, second = sets
    found = [(min(a, b), max(a, b)) for a in first for b in second]
    Random(f"{case.seed}:{case.spec.scale}:1").shuffle(found)
    return found
