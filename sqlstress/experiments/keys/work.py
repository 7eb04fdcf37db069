"""The parent's half: the database with its users and items, the proof, and the space that it takes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from sqlstress.engine.ordered import Ledger, shared_words
from sqlstress.engine.proofs import ProvenWork, examined
from sqlstress.engine.protocols import Outcome
from sqlstress.experiments.keys import ids, schemas
from sqlstress.experiments.keys.ids import ASCENDING, SIZE, picked_by, picks_in, users_of
from sqlstress.report import Check, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import Tally
from sqlstress.system.interrupt import Pulse, paced
from sqlstress.targets.sqlite.drivers import load_driver
from sqlstress.targets.sqlite.files import watched
from sqlstress.targets.sqlite.place import SqlitePlace

CLOCK_TOLERANCE_S = 1.0
"""By how much the time of day may differ from what has passed until it is no witness any more."""
FIRST_YEAR, LAST_YEAR = 1965, 2023


class KeysWork(ProvenWork):
    """One trial's database."""

    place: SqlitePlace

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.picks = picks_in(case)
        self._words = shared_words(case.concurrency)
        self.shared = (self._words,)
        self._users: list[Any] = []
        self._items: list[Any] = []
        self._begun = 0.0, 0.0

    def create(self, pulse: Pulse) -> None:
        """Create the tables, and fill those of the users and of the items."""
        self._users = self._identifiers(self.picks.users, pulse)
        self._items = self._identifiers(self.picks.items, pulse)
        self._begun = time.time(), time.monotonic()
        _, version = load_driver(self.case.driver).versions()
        self.place.create_tables(schemas.definitions(self.picks, version), pulse)
        with self.place.opened() as connection:
            connection.rows("BEGIN IMMEDIATE")
            users = ((one, *_user(n)) for n, one in enumerate(paced(self._users, pulse)))
            connection.run_many("INSERT INTO users VALUES (?, ?)", users)
            items = ((one, *_item(n)) for n, one in enumerate(paced(self._items, pulse)))
            connection.run_many("INSERT INTO items VALUES (?, ?, ?)", items)
            connection.rows("COMMIT")

    def _identifiers(self, number: int, pulse: Pulse) -> list[Any]:
        if self.picks.id_type == "int":
            return list(range(1, number + 1))
        make = ids.maker(self.picks.id_type)
        return [make() for _ in paced(range(number), pulse)]

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Say whether every acknowledged pick is there once, and nothing else is."""
        told, found = self._acknowledged(outcomes, pulse), Found()
        yield from self.sound(pulse)
        yield examined("users and items", lambda: self._check_lists(pulse))
        yield examined("picks", lambda: check_picks(told, self._scan(found, pulse), pulse))
        yield examined("foreign keys", lambda: self._check_foreign_keys(found, pulse))
        if self.picks.own_id:
            yield self._check_ids(outcomes, told, found, pulse)

    def _acknowledged(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Acknowledged:
        picked: dict[int, Sequence[int]] = {}
        unknown: set[int] = set()
        for outcome in outcomes:
            users = users_of(self.case, outcome.worker)
            done = len(users)
            if outcome.died:
                done = Ledger(self._words, outcome.worker).acknowledged()
                unknown.update(users[done : done + 1])
            begun = paced(users[: done + 1], pulse)
            picked.update((user, picked_by(self.case, user)) for user in begun)
        return Acknowledged(picked, unknown)

    def _scan(self, found: Found, pulse: Pulse) -> Found:
        """Add every row of the table, read in the table itself and not in an index."""
        users, items = ({one: n for n, one in enumerate(known)} for known in (self._users, self._items))
        own = "id" if self.picks.own_id else "NULL"
        intact = schemas.as_inserted(self.picks, *self._span())
        with self.place.opened() as connection:
            rows = connection.iterate(f"SELECT {own}, user, item, {intact} FROM picks NOT INDEXED")
            for one, user, item, is_intact in paced(rows, pulse):
                if user in users and item in items:
                    found.picks.setdefault(users[user], {}).setdefault(items[item], []).append(one)
                    if not is_intact:
                        found.altered.append((users[user], items[item]))
                else:
                    text = f"a pick of {shown(item)} by {shown(user)}, which do not both exist"
                    found.strangers.append(text)
        return found

    def _span(self) -> tuple[int | None, int | None]:
        """Return the times between which picks were inserted; nothing if the clock was set meanwhile."""
        begun_s, begun_steady_s = self._begun
        now_s, passed_s = time.time(), time.monotonic() - begun_steady_s
        if abs(now_s - begun_s - passed_s) > CLOCK_TOLERANCE_S:
            return None, None
        return int(begun_s) - 1, int(now_s) + 1

    def _check_lists(self, pulse: Pulse) -> Check:
        wanted: dict[str, dict[Any, tuple[Any, ...]]] = {
            "users": {one: _user(n) for n, one in enumerate(paced(self._users, pulse))},
            "items": {one: _item(n) for n, one in enumerate(paced(self._items, pulse))},
        }
        with self.place.opened() as connection:
            found = {table: connection.iterate(f"SELECT * FROM {table} NOT INDEXED") for table in wanted}
            return check_lists(wanted, found)

    def _check_foreign_keys(self, found: Found, pulse: Pulse) -> Check:
        with self.place.opened() as connection:
            dangling = watched(connection, "PRAGMA foreign_key_check", pulse)
        return check_foreign_keys(dangling, found.rows())

    def _check_ids(
        self, outcomes: Sequence[Outcome], told: Acknowledged, found: Found, pulse: Pulse
    ) -> Check:
        by_worker = [paced(users_of(self.case, outcome.worker), pulse) for outcome in outcomes]
        return check_ids(by_worker, told, found, self.picks.id_type)

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Add the space that the database takes, unless what is in it is wrong."""
        if trial.verdict.status == "failed":
            return trial
        return replace(trial, space=self.place.space(pulse))


def _user(number: int) -> tuple[str]:
    """Return what is stored of a user besides its id."""
    return (f"user number {number:06}",)


def _item(number: int) -> tuple[str, int]:
    """Return what is stored of an item besides its id."""
    return f"item number {number:06}", FIRST_YEAR + number % (LAST_YEAR - FIRST_YEAR + 1)


# The proof, as pure functions: from the picks that workers were told are there to those that are.


@dataclass(frozen=True, slots=True)
class Acknowledged:
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


def check_picks(told: Acknowledged, found: Found, pulse: Pulse) -> Check:
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


def check_ids(by_worker: Iterable[Iterable[int]], told: Acknowledged, found: Found, id_type: str) -> Check:
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


def _ids_of(user: int, told: Acknowledged, found: Found) -> list[Any]:
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
