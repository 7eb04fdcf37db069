"""Parent's part of methods, keys and cycles: it creates the database of a trial, and checks the rows.

A cell is a method of writing or querying rows, at a scale. A pick is a row that links a user with an item.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from sqlstress.engine.ordered import OperationLedger, shared_words
from sqlstress.engine.proofs import ProvenWork, examined, reading_checks
from sqlstress.engine.protocols import Outcome
from sqlstress.experiments.classics.cycles_worker import DEFINITION, committed
from sqlstress.experiments.classics.keys_worker import MAKERS, picked_by, users_of
from sqlstress.experiments.classics.methods_worker import (
    PATH,
    PENDING,
    SCHEMA,
    VALUE,
    pair_at,
    pair_place,
    pairs_below,
    sample_place,
)
from sqlstress.experiments.classics.proof import (
    Acknowledged,
    Placed,
    check_ids,
    check_list,
    check_rows,
    preparation,
    short_id,
)
from sqlstress.experiments.classics.spec import Method, Picks
from sqlstress.report import Check, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import CheckCounter
from sqlstress.system.interrupt import Pulse, with_pulses
from sqlstress.system.sharing import shared_array
from sqlstress.target import stores_nothing
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import Connection, Row, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.place import SqlitePlace


class ClassicWork(ProvenWork):
    """Base class. Each worker counts its completed steps in a ledger in shared memory."""

    place: SqlitePlace

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.salt, self._carry = salt, carry
        self._words = shared_words(case.concurrency)
        self.shared: tuple[Any, ...] = (self._words,)

    def steps_done(self, outcome: Outcome) -> int:
        """Return the number of acknowledged steps of a worker."""
        return OperationLedger(self._words, outcome.worker).acknowledged()

    def rows(self, query: str, pulse: Pulse) -> Iterator[Row]:
        """Yield the rows of a query."""
        with self.place.opened() as connection:
            yield from with_pulses(connection.iterate(query), pulse)

    def foreign_keys(self, child: str, pulse: Pulse) -> Check:
        """Check the two foreign keys of every row of the table `child`."""
        tally = CheckCounter("foreign keys")
        with self.place.opened() as connection:
            tally.checked = 2 * connection.rows(f"SELECT count(*) FROM {child}")[0][0]
            for name, rowid, parent, _ in files.watched(connection, "PRAGMA foreign_key_check", pulse):
                row = "a row" if rowid is None else f"row {rowid}"
                tally.problem(f"{row} of {name} refers to a row of {parent} that is not there")
        return tally.check()


# Methods.


HASTE = ("synchronous=off", "cache_size=-100000")
"""PRAGMAs that speed up the filling of a file, which is not measured. The cache takes about 100 MB."""
QUERIED = "methods: the queried file"


class MethodsWork(ClassicWork):
    """Work of a cell of methods: the file must have every acknowledged sample and result once."""

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self.method: Method = case.spec
        self._written = shared_array("q", 1)
        self.shared = (self._words, self._written)
        (self._path,) = place.paths
        known = {"insert": 0, "allocate": self.method.scale, "query": self.method.samples}
        self._samples = known[self.method.phase]
        """Number of samples in the file before the worker starts."""

    def create(self, pulse: Pulse) -> None:
        """Fill the file and set its journal mode. A query keeps an earlier file that has the right data."""
        wanted = None
        if self.method.phase == "query":
            settings = replace(self.case.settings, journal_mode="")
            wanted = self._path, self.case.seed, self.method.samples, settings
        if wanted is None or self._carry.get(QUERIED) != wanted:
            self._carry[QUERIED] = None
            self.place.discard()
            with self.place.opened() as connection:
                self._fill(connection, pulse)
            self._carry[QUERIED] = wanted
        files.first_write(self.case, self._path)

    def _fill(self, connection: Connection, pulse: Pulse) -> None:
        pragmas.apply(connection, self.case.settings)
        for pragma in HASTE:
            connection.rows(f"PRAGMA {pragma}")
        connection.rows("BEGIN")
        for statement in SCHEMA:
            connection.rows(statement)
        paths = ((PATH.format(place),) for place in with_pulses(range(self._samples), pulse))
        connection.run_many("INSERT INTO sample (path) VALUES (?)", paths)
        if self.method.phase == "query":
            computed = VALUE.format(a="a.id", b="b.id", seed=self.case.seed)
            pairs = f"SELECT a.id, b.id, {computed} FROM sample AS a JOIN sample AS b ON a.id < b.id"
            files.watched(connection, f"INSERT INTO result {pairs}", pulse)
        connection.rows("COMMIT")

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Yield the checks of the file, of both tables, and of the answers to queries."""
        written = [self._acknowledged(outcome) for outcome in outcomes if self.method.phase != "query"]
        samples, results = [preparation(self._samples)], written
        if self.method.phase == "insert":
            samples, results = written, []
        elif self.method.phase == "query":
            results = [preparation(pairs_below(self._samples, self._samples))]
        found = [
            *self.sound(pulse),
            examined("foreign keys", lambda: self.foreign_keys("result", pulse)),
            examined("samples", lambda: self._check_samples(samples, pulse)),
            examined("results", lambda: self._check_results(results, pulse)),
        ]
        if self.method.phase == "query":
            found += reading_checks(outcomes)
        # Checks of tables that are empty in this phase are skipped, and not reported.
        return (check for check in found if check.status != "skipped")

    def _acknowledged(self, outcome: Outcome) -> Acknowledged:
        rows = self.method.rows
        if self.steps_done(outcome):
            return Acknowledged("worker 1", range(rows), rows)
        if self.method.name == "1b1" and not self.method.transaction:
            return Acknowledged("worker 1", range(rows), self._written[0], int(outcome.died))
        return Acknowledged("worker 1", range(rows), 0, rows if outcome.died else 0)

    def _check_samples(self, writers: Sequence[Acknowledged], pulse: Pulse) -> Check:
        rows = self.rows("SELECT id, path FROM sample", pulse)
        # SQLite assigns the ids from 1, in the order of insertion.
        placed = ((row, place if (place := sample_place(row[1])) == row[0] - 1 else None) for row in rows)
        return check_rows("samples", placed, writers, PATH.format)

    def _check_results(self, writers: Sequence[Acknowledged], pulse: Pulse) -> Check:
        right: object = PENDING
        if self.method.phase == "query":
            right = VALUE.format(a="a_id", b="b_id", seed=self.case.seed)
        rows = self.rows(f"SELECT a_id, b_id, val, val IS {right} FROM result", pulse)
        placed = (
            ((a, b, stored), pair_place(a, b, self._samples) if is_right else None)
            for a, b, stored, is_right in rows
        )
        return check_rows("results", placed, writers, lambda place: str(pair_at(place, self._samples)))

    def discard(self) -> None:
        """Remove the file, unless the next cell may query it."""
        if self.method.phase != "query":
            self.place.discard()


# Keys.


_HAS_UNIXEPOCH = (3, 38)
"""First version of SQLite with the function unixepoch()."""
_REFERENCE = "FOREIGN KEY ({0}) REFERENCES {0}s (id) ON DELETE CASCADE ON UPDATE NO ACTION"
LISTED: Mapping[str, Callable[[int], tuple[Any, ...]]] = {
    "users": lambda number: (f"user number {number:06}",),
    "items": lambda number: (f"item number {number:06}", 1965 + number % 59),
}
"""Functions by table. Each returns the columns of a user or an item, without the id, from the number."""
HAVE_CREATED_AT = ("no-key", "pair-rowid")
"""Schemas in which a pick has the column created_at, the time of its creation."""


def definitions(picks: Picks, sqlite_version: str) -> Iterator[str]:
    """Yield the SQL statements that create the tables and the indices."""
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
    """Return an SQL condition: all columns of a pick that the INSERT does not set have their defaults.

    `span_s` has the times before and after all inserts, in seconds since 1970; None if the system clock was
    changed between these times.
    """
    parts = ["priority IS NULL", "public IS 1", "done IS 0", "when_done IS NULL"]
    parts += ["created_at IS last_updated"] * (picks.schema in HAVE_CREATED_AT)
    if span_s is None:
        parts.append("typeof(last_updated) = 'integer'")
    else:
        parts.append("last_updated BETWEEN {} AND {}".format(*span_s))
    return " AND ".join(parts)


CLOCK_TOLERANCE_S = 1.0
"""Maximum drift of the system clock from a steady clock, in seconds. A larger drift means a clock change."""


class KeysWork(ClassicWork):
    """Work of keys: a database of users, items and picks, which must have every acknowledged pick once."""

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self.picks: Picks = case.spec
        self._made: dict[str, list[tuple[Any, ...]]] = {}
        """Rows of the users and of the items, by table."""
        self._begun = 0.0, 0.0

    def create(self, pulse: Pulse) -> None:
        """Create all tables, and fill the tables of users and items."""
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
        stored = (
            (name, *row)
            for name in self._made
            for row in self.rows(f"SELECT * FROM {name} NOT INDEXED", pulse)
        )
        expected = [(name, *row) for name, rows in self._made.items() for row in rows]
        return check_list("users and items", stored, expected, [preparation(len(expected))])

    def _check_picks(self, plan: KeysPlan, pulse: Pulse) -> Check:
        """Check every pick, as stored in the table and not in an index."""
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
        """Return the times before and after all inserts, in s since 1970; None if the clock was changed."""
        begun_s, begun_steady_s = self._begun
        now_s, passed_s = time.time(), time.monotonic() - begun_steady_s
        if abs(now_s - begun_s - passed_s) > CLOCK_TOLERANCE_S:
            return None
        return int(begun_s) - 1, int(now_s) + 1

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Return `trial` with the space of the database; unchanged if data is wrong or not stored."""
        if trial.verdict.status == "failed" or stores_nothing(self.case.driver):
            return trial
        return replace(trial, space=self.place.space(pulse))


Pick = tuple[int | None, int | None]
"""Numbers of a user and an item, from 0; None if the user or the item does not exist."""


def pick_name(pick: Pick) -> str:
    user, item = pick
    return f"user {user}'s pick of item {item}"


class KeysPlan:
    """Picks that the workers had to insert, in order, and the ids of the stored picks."""

    def __init__(self, case: Case) -> None:
        self.picks: list[Pick] = []
        self.places: dict[Pick, int] = {}
        """Index of each pick in `picks`."""
        self.writers: list[Acknowledged] = []
        self.ids_by_place: dict[int, Any] = {}
        """Ids of the stored picks, by index in `picks`."""
        self._case = case
        self._transactions: list[list[range]] = []
        """Indexes in `picks` of each transaction's picks, by worker."""

    def add(self, outcome: Outcome, done: int, pulse: Pulse) -> None:
        """Add the picks of a worker with `done` acknowledged transactions."""
        users = users_of(self._case, outcome.worker)
        done = done if outcome.died else len(users)
        transactions = []
        # A worker that died may have committed another transaction, which was not acknowledged.
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


# Cycles.


class CyclesWork(ClassicWork):
    """Work of cycles: a file with a table, which must have the rows of the last acknowledged commit."""

    def create(self, pulse: Pulse) -> None:
        """Create the table. No connection stays open, so that the first cycle starts without a WAL."""
        self.place.create_tables((DEFINITION,), pulse)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Yield the checks of the file and of its table."""
        yield from self.sound(pulse)
        yield examined("last commit", lambda: self._check_table(outcomes, pulse))

    def _check_table(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Check:
        """Check the table against the worker's acknowledged steps; a dead worker may have done one more."""
        (outcome,) = outcomes
        done = self.steps_done(outcome)
        stored = [*self.rows("SELECT id, value FROM t1", pulse)]
        states = (
            committed(self.case.spec, self.salt, steps) for steps in range(done, done + 1 + outcome.died)
        )
        # SQLite assigns ids from 1 in an empty table.
        expected = nearest(stored, ([*enumerate(values, 1)] for values in states))
        writers = [Acknowledged("the worker", range(len(expected)), len(expected))]
        return check_list("last commit", stored, expected, writers)


def nearest(rows: Sequence[Row], states: Iterable[list[Row]]) -> list[Row]:
    """Return the item of `states` that differs from `rows`, the rows of a table, in the fewest rows."""
    return min(states, key=lambda state: len({*rows} ^ {*state}))
