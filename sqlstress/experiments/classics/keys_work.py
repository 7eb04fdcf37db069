"""The parent's half of primary keys: a new file for each trial, its tables, and the proof of its rows.

The tables are those of the publication, in their order. docs/keys.md lists the choices that its text leaves
open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
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
from sqlstress.system.interrupt import Pulse, with_pulses
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
            numbers = with_pulses(range(rows), pulse)
            self._made[name] = [
                (row_id, *LISTED[name](number)) for number, row_id in zip(numbers, ids, strict=False)
            ]
        self._begun = time.time(), time.monotonic()
        _, version = load_driver(self.case.driver).versions()
        self.place.create_tables(definitions(self.picks, version), pulse)
        with self.place.opened() as connection:
            connection.rows("BEGIN IMMEDIATE")
            for name, places in (("users", "?, ?"), ("items", "?, ?, ?")):
                connection.run_many(
                    f"INSERT INTO {name} VALUES ({places})", with_pulses(self._made[name], pulse)
                )
            connection.rows("COMMIT")

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Yield the checks of the file, of each table, and of the ids of picks."""
        plan = KeysPlan(self.case)
        for outcome in outcomes:
            plan.add(outcome, self.steps_done(outcome), pulse)
        yield from self.sound(pulse)
        yield examined("users and items", lambda: self._check_lists(pulse))
        yield examined("picks", lambda: self._check_picks(plan, pulse))
        yield examined("foreign keys", lambda: self.foreign_keys("picks", pulse))
        if self.picks.own_id:
            yield check_ids(plan.ids(), self.picks.id_type)

    def _check_lists(self, pulse: Pulse) -> Check:
        stored = ((name, *row) for name in self._made for row in self._all_rows(name, pulse))
        expected = [(name, *row) for name, rows in self._made.items() for row in rows]
        return check_list("users and items", stored, expected, [preparation(len(expected))])

    def _all_rows(self, name: str, pulse: Pulse) -> Iterator[Row]:
        return self.rows(f"SELECT * FROM {name} NOT INDEXED", pulse)

    def _check_picks(self, plan: KeysPlan, pulse: Pulse) -> Check:
        """Check every pick, read from the table itself and not from an index."""
        users, items = (
            {row[0]: number for number, row in enumerate(self._made[name])} for name in ("users", "items")
        )
        pick_id = "id" if self.picks.own_id else "NULL"
        intact = as_inserted(self.picks, self._span())
        query = f"SELECT {pick_id}, user, item, {intact} FROM picks NOT INDEXED"

        def placed() -> Iterator[Placed]:
            for own_id, user, item, is_intact in self.rows(query, pulse):
                pick = users.get(user), items.get(item)
                place = plan.places.get(pick)
                if place is not None:
                    plan.ids_by_place[place] = own_id
                name = f"a pick of {short_id(item)} by {short_id(user)}, which do not both exist,"
                yield name if None in pick else pick_name(pick), place if is_intact else None

        return check_rows("picks", placed(), plan.writers, lambda place: pick_name(plan.picks[place]), str)

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


Pick = tuple[int | None, int | None]
"""Numbers of a user and an item; None if it does not exist."""


def pick_name(pick: Pick) -> str:
    """Return the name of a pick in counter-examples."""
    user, item = pick
    return f"user {user}'s pick of item {item}"


class KeysPlan:
    """The picks that workers were to insert, in order, and the ids of the stored ones."""

    def __init__(self, case: Case) -> None:
        self.picks: list[Pick] = []
        self.places: dict[Pick, int] = {}
        """Index in `picks` of each pick."""
        self.writers: list[Acknowledged] = []
        self.ids_by_place: dict[int, Any] = {}
        """Ids of stored picks, by place."""
        self._case = case
        self._transactions: list[list[range]] = []
        """Places of each transaction, by worker."""

    def add(self, outcome: Outcome, done: int, pulse: Pulse) -> None:
        """Add the picks of a worker with `done` acknowledged transactions."""
        users = users_of(self._case, outcome.worker)
        done = done if outcome.died else len(users)
        transactions = []
        # A worker that died may have committed one transaction more.
        for user in with_pulses(users[: done + 1], pulse):
            begin = len(self.picks)
            self.picks += [(user, item) for item in picked_by(self._case, user)]
            transactions.append(range(begin, len(self.picks)))
            self.places.update((self.picks[place], place) for place in transactions[-1])
        acknowledged = sum(map(len, transactions[:done]))
        places = range(transactions[0].start if transactions else 0, len(self.picks))
        self.writers.append(
            Acknowledged(f"worker {outcome.worker}", places, acknowledged, len(places) - acknowledged)
        )
        self._transactions.append(transactions)

    def ids(self) -> Iterator[list[list[Any]]]:
        """Yield the ids of each worker's stored picks, by transaction."""
        for transactions in self._transactions:
            yield [
                [self.ids_by_place[place] for place in places if place in self.ids_by_place]
                for places in transactions
            ]
