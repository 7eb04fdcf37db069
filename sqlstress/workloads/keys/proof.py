"""The proof, as pure functions: from the picks that workers were told are there to those that are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sqlstress.pulse import Pulse, paced
from sqlstress.report import Check
from sqlstress.workloads.keys.ids import ASCENDING, SIZE
from sqlstress.workloads.problems import Tally


@dataclass(frozen=True, slots=True)
class Told:
    """What the workers were told; users and items count from 0."""

    picked: Mapping[int, Sequence[int]]
    """The items that each user picks, for every user whose transaction was begun at least."""
    unknown: Collection[int] = ()
    """The users of whose transaction nobody knows whether it was committed: wholly, or not at all."""


@dataclass(slots=True)
class Found:
    """What the table holds."""

    picks: dict[int, dict[int, list[Any]]] = field(default_factory=dict)
    """User → item → the ids of its rows, None where rows have no id of their own."""
    strangers: list[str] = field(default_factory=list)
    """Rows of users or items that do not exist, in words."""

    def rows(self) -> int:
        """Return how many rows there are of users and items that exist."""
        return sum(len(ids) for items in self.picks.values() for ids in items.values())


def check_picks(told: Told, found: Found, pulse: Pulse) -> Check:
    """Judge every row: each acknowledged pick is there once, and nothing else is."""
    tally = Tally("picks")
    for text in found.strangers:
        tally.checked += 1
        tally.problem(text)
    for user in paced(sorted({*told.picked, *found.picks}), pulse):
        there = found.picks.get(user, {})
        tally.checked += sum(map(len, there.values()))
        if there or user not in told.unknown:
            for text in _objections(user, Counter(told.picked.get(user, ())), there):
                tally.problem(text)
    return tally.check()


def _objections(user: int, wanted: Counter[int], there: Mapping[int, Sequence[Any]]) -> Iterable[str]:
    for item in sorted({*wanted, *there}):
        times = len(there.get(item, ()))
        if not wanted[item]:
            yield f"user {user} has picked item {item}, which no worker was told"
        elif not times:
            yield f"user {user}'s pick of item {item} is gone"
        elif times > 1:
            yield f"user {user}'s pick of item {item} is there {times} times"


def check_ids(by_worker: Iterable[Iterable[int]], told: Told, found: Found, id_type: str) -> Check:
    """Judge the picks' own ids: no two are the same, and those ascend of which that is promised.

    `by_worker` are the users of each worker, in the order in which it inserted their picks.
    """
    tally = Tally("identifiers")
    seen: set[Any] = set()
    for users in by_worker:
        own = [
            one
            for user in users
            for item in told.picked.get(user, ())
            for one in found.picks.get(user, {}).get(item, ())
        ]
        for one in own:
            tally.checked += 1
            if not _fits(one, id_type):
                tally.problem(f"{shown(one)} is not of the type {id_type}")
            elif one in seen:
                tally.problem(f"{shown(one)} is there twice")
            seen.add(one)
        if id_type in ASCENDING:
            for earlier, later in pairwise(one for one in own if _fits(one, id_type)):
                if earlier > later:
                    tally.problem(f"{shown(later)} was made after {shown(earlier)}, and is less")
    return tally.check()


def _fits(one: Any, id_type: str) -> bool:
    if id_type == "int":
        return isinstance(one, int)
    return isinstance(one, bytes) and len(one) == SIZE


def shown(one: Any) -> str:
    """Write an identifier, whatever was found in its place, in a few characters."""
    return one.hex()[:40] if isinstance(one, bytes) else f"{one!r:.40}"


def check_foreign_keys(dangling: Iterable[tuple[Any, ...]], checked: int) -> Check:
    """Judge what PRAGMA foreign_key_check answers: (table, rowid, table referred to, number of the key)."""
    tally = Tally("foreign keys")
    tally.checked = checked
    for table, rowid, parent, _ in dangling:
        row = "a row" if rowid is None else f"row {rowid}"
        tally.problem(f"{row} of {table} refers to a row of {parent} that is not there")
    return tally.check()
