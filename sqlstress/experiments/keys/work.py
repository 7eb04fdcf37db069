"""The parent's half: the database with its users and items, the proof, and the space that it takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlstress.engine.examine import examined, integrity_check, schema_check, unverified
from sqlstress.engine.ledger import Ledger, shared_words
from sqlstress.engine.protocols import Outcome, Work
from sqlstress.experiments.keys import ids, proof, schemas
from sqlstress.experiments.keys.choices import picked_by, picks_in, users_of
from sqlstress.report import Check, Trial, Verdict
from sqlstress.report.case import Case
from sqlstress.system.pulse import Pulse, paced
from sqlstress.targets import DRY
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import load_driver
from sqlstress.targets.sqlite.drivers.base import Row
from sqlstress.targets.sqlite.integrity import schema
from sqlstress.targets.sqlite.space import measure_space

CLOCK_TOLERANCE_S = 1.0
"""By how much the time of day may differ from what has passed until it is no witness any more."""
FIRST_YEAR, LAST_YEAR = 1965, 2023


class KeysWork(Work):
    """One trial's database."""

    def __init__(self, case: Case, folder: Path, salt: int, carry: dict[Any, Any]) -> None:
        self.case, self.folder = case, folder
        self.picks = picks_in(case)
        self._words = shared_words(case.concurrency)
        self.shared = (self._words,)
        self._users: list[Any] = []
        self._items: list[Any] = []
        self._schema: list[Row] = []
        self._begun = 0.0, 0.0

    def prepare(self, pulse: Pulse) -> None:
        """Create the tables, and fill those of the users and of the items."""
        if self.case.driver == DRY:
            return
        self._users = self._identifiers(self.picks.users, pulse)
        self._items = self._identifiers(self.picks.items, pulse)
        self._begun = time.time(), time.monotonic()
        files.remove(self.case, self.folder)
        _, version = load_driver(self.case.driver).versions()
        files.create_tables(self.case, self._path(), schemas.definitions(self.picks, version))
        with files.opened(self.case, self._path()) as connection:
            connection.rows("BEGIN IMMEDIATE")
            users = ((one, *_user(n)) for n, one in enumerate(paced(self._users, pulse)))
            connection.run_many("INSERT INTO users VALUES (?, ?)", users)
            items = ((one, *_item(n)) for n, one in enumerate(paced(self._items, pulse)))
            connection.run_many("INSERT INTO items VALUES (?, ?, ?)", items)
            connection.rows("COMMIT")
        self._schema = schema(self.case, self._path())

    def _identifiers(self, number: int, pulse: Pulse) -> list[Any]:
        if self.picks.id_type == "int":
            return list(range(1, number + 1))
        make = ids.maker(self.picks.id_type)
        return [make() for _ in paced(range(number), pulse)]

    def _path(self) -> Path:
        (path,) = files.paths(self.case, self.folder)
        return path

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        """Say whether every acknowledged pick is there once, and nothing else is."""
        if self.case.driver == DRY or self.case.verify == "none":
            return unverified(self.case)
        begun = time.perf_counter()
        told, found = self._told(outcomes, pulse), proof.Found()
        checks = [
            integrity_check(self.case, self.folder, pulse),
            examined("schema", lambda: schema_check(self.case, self.folder, self._schema, pulse)),
            examined("users and items", lambda: self._check_lists(pulse)),
            examined("picks", lambda: proof.check_picks(told, self._scan(found, pulse), pulse)),
            examined("foreign keys", lambda: self._check_foreign_keys(found, pulse)),
        ]
        if self.picks.own_id:
            checks.append(self._check_ids(outcomes, told, found, pulse))
        return Verdict(tuple(checks), time.perf_counter() - begun)

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
        with files.opened(self.case, self._path()) as connection:
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
        with files.opened(self.case, self._path()) as connection:
            found = {table: connection.iterate(f"SELECT * FROM {table} NOT INDEXED") for table in wanted}
            return proof.check_lists(wanted, found)

    def _check_foreign_keys(self, found: proof.Found, pulse: Pulse) -> Check:
        with files.opened(self.case, self._path()) as connection:
            dangling = files.watched(connection, "PRAGMA foreign_key_check", pulse)
        return proof.check_foreign_keys(dangling, found.rows())

    def _check_ids(
        self, outcomes: Sequence[Outcome], told: proof.Told, found: proof.Found, pulse: Pulse
    ) -> Check:
        by_worker = [paced(users_of(self.case, outcome.worker), pulse) for outcome in outcomes]
        return proof.check_ids(by_worker, told, found, self.picks.id_type)

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Add the space that the database takes, unless what is in it is wrong."""
        if self.case.driver == DRY or trial.verdict.status == "failed":
            return trial
        return replace(trial, space=measure_space(self.case, self._path(), pulse))

    def discard(self) -> None:
        """Remove the files."""
        files.remove(self.case, self.folder)


def _user(number: int) -> tuple[str]:
    """Return what is stored of a user besides its id."""
    return (f"user number {number:06}",)


def _item(number: int) -> tuple[str, int]:
    """Return what is stored of an item besides its id."""
    return f"item number {number:06}", FIRST_YEAR + number % (LAST_YEAR - FIRST_YEAR + 1)
