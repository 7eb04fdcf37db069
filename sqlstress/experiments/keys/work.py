"""The parent's half: the database with its users and items, the proof, and the space that it takes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlstress.engine.examine import examined
from sqlstress.engine.ledger import Ledger, shared_words
from sqlstress.engine.protocols import Outcome
from sqlstress.engine.proven import ProvenWork
from sqlstress.experiments.keys import ids, proof, schemas
from sqlstress.experiments.keys.choices import picked_by, picks_in, users_of
from sqlstress.report import Check, Trial
from sqlstress.report.case import Case
from sqlstress.system.pulse import Pulse, paced
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
        told, found = self._told(outcomes, pulse), proof.Found()
        yield from self.sound(pulse)
        yield examined("users and items", lambda: self._check_lists(pulse))
        yield examined("picks", lambda: proof.check_picks(told, self._scan(found, pulse), pulse))
        yield examined("foreign keys", lambda: self._check_foreign_keys(found, pulse))
        if self.picks.own_id:
            yield self._check_ids(outcomes, told, found, pulse)

    def _told(self, outcomes: Sequence[Outcome], pulse: Pulse) -> proof.Told:
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
        return proof.Told(picked, unknown)

    def _scan(self, found: proof.Found, pulse: Pulse) -> proof.Found:
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
                    text = f"a pick of {proof.shown(item)} by {proof.shown(user)}, which do not both exist"
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
            return proof.check_lists(wanted, found)

    def _check_foreign_keys(self, found: proof.Found, pulse: Pulse) -> Check:
        with self.place.opened() as connection:
            dangling = watched(connection, "PRAGMA foreign_key_check", pulse)
        return proof.check_foreign_keys(dangling, found.rows())

    def _check_ids(
        self, outcomes: Sequence[Outcome], told: proof.Told, found: proof.Found, pulse: Pulse
    ) -> Check:
        by_worker = [paced(users_of(self.case, outcome.worker), pulse) for outcome in outcomes]
        return proof.check_ids(by_worker, told, found, self.picks.id_type)

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
