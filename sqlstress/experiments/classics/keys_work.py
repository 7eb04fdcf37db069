"""The parent's half of primary keys: a new file for each trial, its tables, and the proof of its rows.

The tables are those of the publication, in their order. docs/keys.md lists the choices that its text leaves
open.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from operator import itemgetter
from typing import Any

from sqlstress.engine.proofs import examined
from sqlstress.engine.protocols import Outcome
from sqlstress.experiments.classics.keys import Picks
from sqlstress.experiments.classics.keys_worker import MAKERS, picked_by, users_of
from sqlstress.experiments.classics.proof import (
    Acknowledged,
    Placed,
    check_ids,
    check_list,
    check_rows,
    preparation,
    short_id,
)
from sqlstress.experiments.classics.work import ClassicWork
from sqlstress.report import Check, Trial
from sqlstress.report.case import Case
from sqlstress.system.interrupt import Pulse, paced
from sqlstress.target import stores_nothing
from sqlstress.targets.sqlite.drivers import Row, load_driver
from sqlstress.targets.sqlite.place import SqlitePlace

_HAS_UNIXEPOCH = (3, 38)
_REFERENCE = "FOREIGN KEY ({0}) REFERENCES {0}s (id) ON DELETE CASCADE ON UPDATE NO ACTION"
LISTED: Mapping[str, Callable[[int], tuple[Any, ...]]] = {
    "users": lambda number: (f"user number {number:06}",),
    "items": lambda number: (f"item number {number:06}", 1965 + number % 59),
}
"""Columns of a user or an item except its id, by table."""
HAVE_CREATED_AT = ("no-key", "pair-rowid")
"""Schemas in which a pick has a column with the time, because no id of its own can hold it."""


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


def as_inserted(picks: Picks, span_s: tuple[int, int] | None) -> str:
    """Return the SQL condition that the other columns of a pick hold what an insertion leaves in them.

    The span is that of the insertions, in seconds since 1970; None if the clock was set during it.
    """
    parts = ["priority IS NULL", "public IS 1", "done IS 0", "when_done IS NULL"]
    parts += ["created_at IS last_updated"] * (picks.schema in HAVE_CREATED_AT)
    if span_s is None:
        parts.append("typeof(last_updated) = 'integer'")
    else:
        parts.append("last_updated BETWEEN {} AND {}".format(*span_s))
    return " AND ".join(parts)


CLOCK_TOLERANCE_S = 1.0
"""Largest difference between the time of day and the elapsed time of a clock that was not set."""


class KeysWork(ClassicWork):
    """A database of users, items and picks, which must hold every acknowledged pick once."""

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self.picks: Picks = case.spec
        self._made: dict[str, list[tuple[Any, ...]]] = {}
        """Rows of the users and of the items, by table."""
        self._begun = 0.0, 0.0

    def create(self, pulse: Pulse) -> None:
        """Create the tables, and fill the tables of the users and of the items."""
        for name, rows in (("users", self.picks.users), ("items", self.picks.items)):
            ids = iter(MAKERS[self.picks.id_type](), None) if self.picks.id_type != "int" else count(1)
            numbers = paced(range(rows), pulse)
            self._made[name] = [
                (row_id, *LISTED[name](number)) for number, row_id in zip(numbers, ids, strict=False)
            ]
        self._begun = time.time(), time.monotonic()
        _, version = load_driver(self.case.driver).versions()
        self.place.create_tables(definitions(self.picks, version), pulse)
        with self.place.opened() as connection:
            connection.rows("BEGIN IMMEDIATE")
            for name, places in (("users", "?, ?"), ("items", "?, ?, ?")):
                connection.run_many(f"INSERT INTO {name} VALUES ({places})", paced(self._made[name], pulse))
            connection.rows("COMMIT")

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Yield the checks of the file, of each table, and of the picks' own ids."""
        planned = Planned(self.case, *self._made.values())
        writers = [planned.written_by(outcome, self.steps_done(outcome), pulse) for outcome in outcomes]
        yield from self.sound(pulse)
        yield examined("users and items", lambda: self._check_lists(pulse))
        yield examined("picks", lambda: planned.check(self._placed(planned, pulse), writers))
        yield examined("foreign keys", lambda: self.foreign_keys("picks", pulse))
        if self.picks.own_id:
            yield check_ids(planned.ids_by_worker(), self.picks.id_type)

    def _check_lists(self, pulse: Pulse) -> Check:
        stored = ((name, *row) for name in self._made for row in self._all_rows(name, pulse))
        expected = [(name, *row) for name, rows in self._made.items() for row in rows]
        return check_list("users and items", stored, expected, [preparation(len(expected))])

    def _all_rows(self, name: str, pulse: Pulse) -> Iterator[Row]:
        return self.rows(f"SELECT * FROM {name} NOT INDEXED", pulse)

    def _placed(self, planned: Planned, pulse: Pulse) -> Iterator[Placed]:
        """Yield every pick with its place, read from the table itself and not from an index."""
        pick_id = "id" if self.picks.own_id else "NULL"
        intact = as_inserted(self.picks, self._span())
        query = f"SELECT {pick_id}, user, item, {intact} FROM picks NOT INDEXED"
        for pick, user, item, is_intact in self.rows(query, pulse):
            place = planned.places.get(user, {}).get(item)
            if place is not None:
                planned.ids[place] = pick
            yield (user, item), place if is_intact else None

    def _span(self) -> tuple[int, int] | None:
        """Return the seconds between which the picks were inserted; None if the clock was set."""
        begun_s, begun_steady_s = self._begun
        now_s, passed_s = time.time(), time.monotonic() - begun_steady_s
        if abs(now_s - begun_s - passed_s) > CLOCK_TOLERANCE_S:
            return None
        return int(begun_s) - 1, int(now_s) + 1

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Add the space that the database takes, unless its data is wrong."""
        if trial.verdict.status == "failed" or stores_nothing(self.case.driver):
            return trial
        return replace(trial, space=self.place.space(pulse))


class Planned:
    """The picks that workers were to insert, each with its place, and the ids of those that are there."""

    def __init__(self, case: Case, users: Sequence[Row], items: Sequence[Row]) -> None:
        self.places: dict[Any, dict[Any, int]] = {}
        """Places by the user's id and the item's id."""
        self.ids: dict[int, Any] = {}
        """Ids of picks, by place."""
        self._case = case
        self._users, self._items = ([row[0] for row in rows] for rows in (users, items))
        self._transactions: list[list[range]] = []
        """Places of the picks of each transaction, by worker."""
        self._begins: list[tuple[int, int]] = []
        """First place of each transaction, and its user."""
        self._next = 0

    def written_by(self, outcome: Outcome, done: int, pulse: Pulse) -> Acknowledged:
        """Return the picks of a worker with `done` acknowledged transactions, and give them places."""
        users = users_of(self._case, outcome.worker)
        done = done if outcome.died else len(users)
        first, transactions = self._next, []
        # A worker that died may have committed one transaction more.
        for user in paced(users[: done + 1], pulse):
            begin, items = self._next, picked_by(self._case, user)
            self._next += len(items)
            transactions.append(range(begin, self._next))
            self._begins.append((begin, user))
            own = self.places[self._users[user]] = {}
            own.update((self._items[item], place) for place, item in enumerate(items, begin))
        self._transactions.append(transactions)
        known = sum(map(len, transactions[:done]))
        return Acknowledged(
            f"worker {outcome.worker}", range(first, self._next), known, self._next - first - known
        )

    def check(self, rows: Iterable[Placed], writers: Sequence[Acknowledged]) -> Check:
        """Check the rows of the table of picks, each its user's id and its item's id."""
        users, items = (
            {row_id: number for number, row_id in enumerate(ids)} for ids in (self._users, self._items)
        )

        def described(row: tuple[Any, Any]) -> str:
            user, item = row
            if user in users and item in items:
                return f"user {users[user]}'s pick of item {items[item]}"
            return f"a pick of {short_id(item)} by {short_id(user)}, which do not both exist,"

        def pick_name(place: int) -> str:
            begin, user = self._begins[bisect_right(self._begins, place, key=itemgetter(0)) - 1]
            return f"user {user}'s pick of item {picked_by(self._case, user)[place - begin]}"

        return check_rows("picks", rows, writers, pick_name, described)

    def ids_by_worker(self) -> Iterator[list[list[Any]]]:
        """Yield the ids of each worker's picks that are there, by transaction."""
        for transactions in self._transactions:
            yield [[self.ids[place] for place in places if place in self.ids] for places in transactions]
