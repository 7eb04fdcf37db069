"""The parent's halves: the file of a trial, the memory that it shares with the workers, and the proof.

The files of cycles and keys are new for each trial. Cells of methods that write begin with a new file;
cells that query share a file with all results, which takes on the journal mode of each.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from operator import itemgetter
from typing import Any

from sqlstress.engine.ordered import Ledger, shared_words
from sqlstress.engine.proofs import ProvenWork, examined, reading_checks
from sqlstress.engine.protocols import LIMIT, TIMEOUT, Outcome
from sqlstress.experiments.classics.cycles_worker import (
    committed,
    definition,
    is_watched,
    table,
    words_of_looks,
)
from sqlstress.experiments.classics.keys import Picks
from sqlstress.experiments.classics.keys_worker import MAKERS, picked_by, users_of
from sqlstress.experiments.classics.methods import Method, tricks_of
from sqlstress.experiments.classics.methods_tables import (
    PATH,
    PENDING,
    SCHEMA,
    VALUE,
    pair_at,
    pair_place,
    part_of,
    places_before,
    sample_place,
)
from sqlstress.experiments.classics.proof import (
    Acknowledged,
    Placed,
    check_ids,
    check_list,
    check_rows,
    check_states,
    in_order,
    preparation,
    short_id,
)
from sqlstress.report import Check, Run, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import Tally
from sqlstress.system.interrupt import Pulse, paced
from sqlstress.system.sharing import shared_array
from sqlstress.target import stores_nothing
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import Connection, Row, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.place import SqlitePlace


class ClassicWork(ProvenWork):
    """The common part: a shared ledger of completed steps, and checks of the one file."""

    place: SqlitePlace

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.salt, self._carry = salt, carry
        self._words = shared_words(case.concurrency)
        self.shared: tuple[Any, ...] = (self._words,)

    def steps_done(self, outcome: Outcome) -> int:
        """Return the number of acknowledged steps of a worker."""
        return Ledger(self._words, outcome.worker).acknowledged()

    def rows(self, query: str, pulse: Pulse) -> Iterator[Row]:
        """Yield the rows of a query; calls `pulse` often."""
        with self.place.opened() as connection:
            yield from paced(connection.iterate(query), pulse)

    def foreign_keys(self, child: str, pulse: Pulse) -> Check:
        """Check that every row of a table refers to existing rows; the table has two foreign keys."""
        tally = Tally("foreign keys")
        with self.place.opened() as connection:
            tally.checked = 2 * connection.rows(f"SELECT count(*) FROM {child}")[0][0]
            for name, rowid, parent, _ in files.watched(connection, "PRAGMA foreign_key_check", pulse):
                row = "a row" if rowid is None else f"row {rowid}"
                tally.problem(f"{row} of {name} refers to a row of {parent} that is not there")
        return tally.check()


# Cycles.


class CyclesWork(ClassicWork):
    """A file with a table for each worker, which must hold what the last acknowledged commit left."""

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self.shared = (self._words, words_of_looks(case.concurrency))
        self.companions = ("cycle watcher",) if is_watched(place) else ()

    def create(self, pulse: Pulse) -> None:
        """Create the tables. No connection stays open, so the first cycle finds no WAL."""
        self.place.create_tables(map(definition, range(1, self.case.concurrency + 1)), pulse)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Yield the checks of the file and of its tables."""
        yield from self.sound(pulse)
        yield examined("last commit", lambda: self._check_tables(outcomes, pulse))

    def _check_tables(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Check:
        tally = Tally("last commit")
        with self.place.opened() as connection:
            for outcome in outcomes:
                pulse()
                done, name = self.steps_done(outcome), table(outcome.worker)
                states = [
                    committed(self.case.spec, outcome.worker, self.salt, done + more)
                    for more in range(1 + outcome.died)
                ]
                check_states(
                    tally, name, connection.rows(f"SELECT id, value FROM {name} ORDER BY id"), states
                )
        return tally.check()


# Keys. The tables are those of the publication, in the order in which it came to them; docs/keys.md says
# what its text leaves open.


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
        made = ((name, *row) for name, rows in self._made.items() for row in rows)
        return check_list("users and items", stored, made)

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


# Methods.


HASTE = ("synchronous=off", "cache_size=-100000")
"""PRAGMAs of the connection that fills a file, which is not measured; it takes about 100 MB."""
QUERIED = "methods: what the file that is queried was made for"


class MethodsWork(ClassicWork):
    """The file of a cell, which must hold every acknowledged sample and result once."""

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self.method: Method = case.spec
        self._written = shared_array("q", case.concurrency)
        self.shared = (self._words, self._written)
        (self._path,) = place.paths
        known = {"insert": 0, "allocate": self.method.scale, "query": self.method.samples}
        self._samples = known[self.method.phase]
        """Number of samples when the cell begins."""

    def create(self, pulse: Pulse) -> None:
        """Fill the file, unless an earlier cell has left what this one queries, and set its journal mode."""
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
        paths = ((PATH.format(place),) for place in paced(range(self._samples), pulse))
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
            results = [preparation(places_before(self._samples, self._samples))]
        found = [
            *self.sound(pulse),
            examined("foreign keys", lambda: self.foreign_keys("result", pulse)),
            examined("samples", lambda: self._check_samples(samples, pulse)),
            examined("results", lambda: self._check_results(results, pulse)),
        ]
        if self.method.phase == "query":
            found += reading_checks(outcomes)
        # A cell leaves some tables empty.
        return (check for check in found if check.status != "skipped")

    def _acknowledged(self, outcome: Outcome) -> Acknowledged:
        places = part_of(self.case, outcome.worker).places
        step = 1 if self.method.name == "1b1" and not self.method.transaction else len(places)
        if self.steps_done(outcome):
            acknowledged = len(places)
        else:
            acknowledged = self._written[outcome.worker - 1] if step == 1 else 0
        return Acknowledged(f"worker {outcome.worker}", places, acknowledged, step if outcome.died else 0)

    def _check_samples(self, writers: Sequence[Acknowledged], pulse: Pulse) -> Check:
        rows = self.rows("SELECT id, path FROM sample ORDER BY id", pulse)
        placed: Iterable[Placed] = ((row, sample_place(row[1])) for row in rows)
        if len(writers) == 1:
            # SQLite numbers rows in the order of insertion.
            placed = ((row, place if place == row[0] - 1 else None) for row, place in placed)
        else:
            placed = in_order([*placed], writers)
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


REASONS = {TIMEOUT: "timed out", LIMIT: "met a limit"}


def skip_reason(case: Case, runs: Sequence[Run]) -> str | None:
    """Return the reason not to measure a cell (again) after these runs of cells, if there is a reason.

    A cell with a trial that timed out is a TIMEOUT, however its other trials end.
    """
    for run in runs:
        scale = run.case.spec.scale
        # The cells of a method at all its scales are one series.
        if (
            scale > case.spec.scale
            or replace(run.case, spec=replace(run.case.spec, scale=case.spec.scale)) != case
        ):
            continue
        outcome = next((trial.outcome for trial in run.trials if trial.outcome in REASONS), None)
        if outcome and (scale < case.spec.scale or outcome == TIMEOUT):
            return f"{tricks_of(case)} {REASONS[outcome]} at {scale:,} already"
    return None
