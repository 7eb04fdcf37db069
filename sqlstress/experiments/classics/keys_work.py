"""The parent's half: the database with its users and items, the proof, and the space that it takes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

from sqlstress.engine.ordered import Ledger, shared_words
from sqlstress.engine.proofs import ProvenWork, examined
from sqlstress.engine.protocols import Outcome
from sqlstress.experiments.classics.keys import Picks
from sqlstress.experiments.classics.keys_worker import ASCENDING, MAKERS, SIZE, picked_by, users_of
from sqlstress.report import Check, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import Tally
from sqlstress.system.interrupt import Pulse, paced
from sqlstress.target import stores_nothing
from sqlstress.targets.sqlite.drivers import load_driver
from sqlstress.targets.sqlite.files import watched
from sqlstress.targets.sqlite.place import SqlitePlace

# The tables. They are those of the experiment that this one repeats, in the order in which it came to them;
# see docs/keys.md for what its text leaves open.


_HAS_UNIXEPOCH = (3, 38)
_REFERENCE = "FOREIGN KEY ({0}) REFERENCES {0}s (id) ON DELETE CASCADE ON UPDATE NO ACTION"
LISTED: Mapping[str, Callable[[int], tuple[Any, ...]]] = {
    "users": lambda number: (f"user number {number:06}",),
    "items": lambda number: (f"item number {number:06}", 1965 + number % 59),
}
"""Table → what is stored of a user or an item, besides its id."""
HAVE_CREATED_AT = ("no-key", "pair-rowid")
"""The schemas in which a pick has a column with the time: an id of its own could hold it."""


def definitions(picks: Picks, sqlite_version: str) -> Iterator[str]:
    """Yield the statements that create the tables and the indices."""
    id_type = "INTEGER" if picks.id_type == "int" else "BLOB"
    has_unixepoch = tuple(map(int, sqlite_version.split(".")[:2])) >= _HAS_UNIXEPOCH
    now = "unixepoch()" if has_unixepoch else "CAST(strftime('%s', 'now') AS INT)"
    yield f"CREATE TABLE users (id {id_type} NOT NULL PRIMARY KEY, name TEXT NOT NULL)"
    yield f"CREATE TABLE items (id {id_type} NOT NULL PRIMARY KEY, title TEXT NOT NULL, released INT)"
    columns = ",\n    ".join(
        [
            *[f"id {id_type} NOT NULL PRIMARY KEY"] * picks.own_id,
            f"user {id_type} NOT NULL",
            f"item {id_type} NOT NULL",
            "priority INT",
            "public BOOLEAN NOT NULL DEFAULT true",
            "done BOOLEAN NOT NULL DEFAULT false",
            "when_done INT",
            *[f"created_at INT NOT NULL DEFAULT ({now})"] * (picks.schema in HAVE_CREATED_AT),
            f"last_updated INT NOT NULL DEFAULT ({now})",
            _REFERENCE.format("user"),
            _REFERENCE.format("item"),
            *["PRIMARY KEY (user, item)"] * picks.schema.startswith("pair-"),
        ]
    )
    yield f"CREATE TABLE picks (\n    {columns}\n)" + " WITHOUT ROWID" * picks.schema.endswith("-norowid")
    yield "CREATE INDEX picks_by_user ON picks (user)"
    yield "CREATE INDEX picks_by_item ON picks (item)"


def as_inserted(picks: Picks, begin_s: int | None, end_s: int | None) -> str:
    """Return the condition that a pick's other columns hold what an insertion leaves in them.

    The times, in seconds since 1970, are those between which it was; None where no clock can tell.
    """
    parts = ["priority IS NULL", "public IS 1", "done IS 0", "when_done IS NULL"]
    parts += ["created_at IS last_updated"] * (picks.schema in HAVE_CREATED_AT)
    if begin_s is None or end_s is None:
        parts.append("typeof(last_updated) = 'integer'")
    else:
        parts.append(f"last_updated BETWEEN {begin_s} AND {end_s}")
    return " AND ".join(parts)


Lists = dict[str, dict[Any, tuple[Any, ...]]]
"""Table, users or items → id → the row's other columns."""
CLOCK_TOLERANCE_S = 1.0
"""By how much the time of day may differ from what has passed until it is no witness any more."""


class KeysWork(ProvenWork):
    """One trial's database."""

    place: SqlitePlace

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.picks: Picks = case.spec
        self._words = shared_words(case.concurrency)
        self.shared = (self._words,)
        self._made: Lists = {}
        self._begun = 0.0, 0.0

    def create(self, pulse: Pulse) -> None:
        """Create the tables, and fill those of the users and of the items."""
        for table, count in (("users", self.picks.users), ("items", self.picks.items)):
            make = MAKERS[self.picks.id_type]() if self.picks.id_type != "int" else None
            numbers = paced(range(count), pulse)
            self._made[table] = {make() if make else number + 1: LISTED[table](number) for number in numbers}
        self._begun = time.time(), time.monotonic()
        _, version = load_driver(self.case.driver).versions()
        self.place.create_tables(definitions(self.picks, version), pulse)
        with self.place.opened() as connection:
            connection.rows("BEGIN IMMEDIATE")
            for table, places in (("users", "?, ?"), ("items", "?, ?, ?")):
                rows = ((row_id, *others) for row_id, others in paced(self._made[table].items(), pulse))
                connection.run_many(f"INSERT INTO {table} VALUES ({places})", rows)
            connection.rows("COMMIT")

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Say whether every acknowledged pick is there once, and nothing else is."""
        known, found = self._acknowledged(outcomes, pulse), TableContents()
        yield from self.sound(pulse)
        yield examined("users and items", lambda: self._check_lists(pulse))
        yield examined("picks", lambda: check_picks(known, self._scan(found, pulse), pulse))
        yield examined("foreign keys", lambda: self._check_foreign_keys(found, pulse))
        if self.picks.own_id:
            by_worker = [paced(users_of(self.case, outcome.worker), pulse) for outcome in outcomes]
            yield check_ids(by_worker, known, found, self.picks.id_type)

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

    def _check_lists(self, pulse: Pulse) -> Check:
        with self.place.opened() as connection:
            found = {
                table: paced(connection.iterate(f"SELECT * FROM {table} NOT INDEXED"), pulse)
                for table in self._made
            }
            return check_lists(self._made, found)

    def _scan(self, found: TableContents, pulse: Pulse) -> TableContents:
        """Add every row of the table, read in the table itself and not in an index."""
        users, items = (
            {row_id: number for number, row_id in enumerate(rows)} for rows in self._made.values()
        )
        pick_id = "id" if self.picks.own_id else "NULL"
        intact = as_inserted(self.picks, *self._span())
        with self.place.opened() as connection:
            rows = connection.iterate(f"SELECT {pick_id}, user, item, {intact} FROM picks NOT INDEXED")
            for pick, user, item, is_intact in paced(rows, pulse):
                if user in users and item in items:
                    found.picks.setdefault(users[user], {}).setdefault(items[item], []).append(pick)
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

    def _check_foreign_keys(self, found: TableContents, pulse: Pulse) -> Check:
        with self.place.opened() as connection:
            dangling = watched(connection, "PRAGMA foreign_key_check", pulse)
        return check_foreign_keys(dangling, found.rows())

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Add the space that the database takes, unless what is in it is wrong."""
        if trial.verdict.status == "failed" or stores_nothing(self.case.driver):
            return trial
        return replace(trial, space=self.place.space(pulse))


# The proof, as pure functions: from the picks that workers were told are there to those that are.


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What the workers were told; users and items count from 0."""

    picked: Mapping[int, Sequence[int]]
    """The items that each user picks, for every user whose transaction was begun at least."""
    unknown: Collection[int] = ()
    """The users of whose transaction nobody knows whether it was committed: wholly, or not at all."""


@dataclass(slots=True)
class TableContents:
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


def check_picks(known: Acknowledged, found: TableContents, pulse: Pulse) -> Check:
    """Judge every row: each acknowledged pick is there once, and nothing else is."""
    tally = Tally("picks")
    for text in found.strangers:
        tally.checked += 1
        tally.problem(text)
    for user, item in found.altered:
        tally.problem(f"user {user}'s pick of item {item} holds what nobody wrote")
    for user in paced(sorted({*known.picked, *found.picks}), pulse):
        there, wanted = found.picks.get(user, {}), Counter(known.picked.get(user, ()))
        tally.checked += sum(map(len, there.values()))
        if not there and user in known.unknown:
            continue
        for item in sorted({*wanted, *there}):
            times = len(there.get(item, ()))
            if not wanted[item]:
                tally.problem(f"user {user}'s pick of item {item} was never acknowledged")
            elif not times:
                tally.problem(f"user {user}'s pick of item {item} is gone")
            elif times > 1:
                tally.problem(f"user {user}'s pick of item {item} is there {times} times")
    return tally.check()


def check_ids(
    by_worker: Iterable[Iterable[int]], known: Acknowledged, found: TableContents, id_type: str
) -> Check:
    """Judge the picks' own ids: no two are the same, and those ascend of which that is promised.

    `by_worker` are the users of each worker, in the order in which it inserted their picks.
    """
    tally = Tally("identifiers")
    seen: set[Any] = set()
    for users in by_worker:
        by_user: list[list[Any]] = []
        for user in users:
            there = found.picks.get(user, {})
            by_user.append([])
            for pick_id in (
                pick_id for item in known.picked.get(user, ()) for pick_id in there.get(item, ())
            ):
                tally.checked += 1
                if id_type == "int":
                    fits = isinstance(pick_id, int)
                else:
                    fits = isinstance(pick_id, bytes) and len(pick_id) == SIZE
                if not fits:
                    tally.problem(f"{shown(pick_id)} is not of the type {id_type}")
                    continue
                if pick_id in seen:
                    tally.problem(f"{shown(pick_id)} is there twice")
                seen.add(pick_id)
                by_user[-1].append(pick_id)
        if id_type == "int":
            for text in _gaps(by_user):
                tally.problem(text)
        elif id_type in ASCENDING:
            for earlier, later in pairwise(chain.from_iterable(by_user)):
                if earlier > later:
                    tally.problem(f"{shown(later)} was made after {shown(earlier)}, and is less")
    return tally.check()


def _gaps(by_user: Iterable[Sequence[int]]) -> Iterator[str]:
    """Yield what is wrong with numbers, of which a transaction takes those that follow on each other."""
    latest = 0
    for numbers in by_user:
        for earlier, later in pairwise((latest, *numbers)):
            if earlier >= later:
                yield f"{later} was made after {earlier}, and is less"
            elif later - earlier > 1 and earlier != latest:
                yield f"{later} was made after {earlier}, and does not follow on it"
        latest = max(numbers, default=latest)


def check_lists(wanted: Lists, found: Mapping[str, Iterable[Any]]) -> Check:
    """Judge the tables that were filled before the trial."""
    tally = Tally("users and items")
    for table, rows in wanted.items():
        left = dict(rows)
        for row_id, *others in found[table]:
            tally.checked += 1
            right = left.pop(row_id, None)
            if right is None:
                tally.problem(f"{shown(row_id)} of {table} is there, and nobody made it")
            elif right != tuple(others):
                tally.problem(f"{shown(row_id)} of {table} reads {tuple(others)!r:.80}, and not {right!r}")
        for row_id in left:
            tally.problem(f"{shown(row_id)} of {table} is gone")
    return tally.check()


def check_foreign_keys(dangling: Iterable[tuple[Any, ...]], checked: int) -> Check:
    """Judge what PRAGMA foreign_key_check answers: (table, rowid, table referred to, number of the key)."""
    tally = Tally("foreign keys")
    tally.checked = checked
    for table, rowid, parent, _ in dangling:
        row = "a row" if rowid is None else f"row {rowid}"
        tally.problem(f"{row} of {table} refers to a row of {parent} that is not there")
    return tally.check()


def shown(value: Any) -> str:
    """Write an identifier, whatever was found in its place, in a few characters."""
    return value.hex()[:40] if isinstance(value, bytes) else f"{value!r:.40}"
