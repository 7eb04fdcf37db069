"""The proof, as pure functions: from the picks that workers were told are there to those that are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sqlstress.experiments.keys.ids import ASCENDING, SIZE
from sqlstress.report import Check
from sqlstress.report.problems import Tally
from sqlstress.system.pulse import Pulse, paced


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
    altered: list[tuple[int, int]] = field(default_factory=list)
    """User and item of rows whose other columns hold what no insertion leaves there."""

    def rows(self) -> int:
        """Return how many rows there are of users and items that exist."""
        return sum(len(ids) for items in self.picks.values() for ids in items.values())


def check_picks(told: Told, found: Found, pulse: Pulse) -> Check:
    """Judge every row: each acknowledged pick is there once, and nothing else is."""
    tally = Tally("picks")
    for text in found.strangers:
        tally.checked += 1
        tally.problem(text)
    for user, item in found.altered:
        tally.problem(f"user {user}'s pick of item {item} holds what nobody wrote")
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
        users_ids = [_ids_of(user, told, found) for user in users]
        own = [one for its in users_ids for one in its]
        for one in own:
            tally.checked += 1
            if not _fits(one, id_type):
                tally.problem(f"{shown(one)} is not of the type {id_type}")
            elif one in seen:
                tally.problem(f"{shown(one)} is there twice")
            seen.add(one)
        if id_type == "int":
            for text in _gaps(users_ids):
                tally.problem(text)
        elif id_type in ASCENDING:
            for earlier, later in pairwise(one for one in own if _fits(one, id_type)):
                if earlier > later:
                    tally.problem(f"{shown(later)} was made after {shown(earlier)}, and is less")
    return tally.check()


def _ids_of(user: int, told: Told, found: Found) -> list[Any]:
    """Return the ids of a user's picks, in the order in which they were inserted."""
    there = found.picks.get(user, {})
    return [one for item in told.picked.get(user, ()) for one in there.get(item, ())]


def _gaps(by_user: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield what is wrong with numbers, of which a transaction takes those that follow on each other."""
    latest = 0
    for own in by_user:
        numbers = [one for one in own if isinstance(one, int)]
        for earlier, later in pairwise((latest, *numbers)):
            if earlier >= later:
                yield f"{later} was made after {earlier}, and is less"
            elif later - earlier > 1 and earlier != latest:
                yield f"{later} was made after {earlier}, and does not follow on it"
        latest = max(numbers, default=latest)


def check_lists(
    wanted: Mapping[str, Mapping[Any, tuple[Any, ...]]], found: Mapping[str, Iterable[Any]]
) -> Check:
    """Judge the tables that were filled before the trial: table → id → the row's other columns."""
    tally = Tally("users and items")
    for table, rows in wanted.items():
        left = dict(rows)
        for one, *others in found[table]:
            tally.checked += 1
            right = left.pop(one, None)
            if right is None:
                tally.problem(f"{shown(one)} of {table} is there, and nobody made it")
            elif right != tuple(others):
                tally.problem(f"{shown(one)} of {table} reads {tuple(others)!r:.80}, and not {right!r}")
        for one in left:
            tally.problem(f"{shown(one)} of {table} is gone")
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
