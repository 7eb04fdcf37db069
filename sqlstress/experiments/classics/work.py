"""Creation and check of the database of a trial (measurement) in `sqlstress methods`, `keys` and `cycles`.

`sqlstress methods` stores samples (files of a dataset) and results (numbers for pairs of samples).
`sqlstress keys` stores users, items and picks (rows that link a user with an item). The parent process checks
the database after the workers end. A row is acknowledged if a worker saw its commit succeed.
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
from sqlstress.experiments.classics import worker
from sqlstress.experiments.classics.proof import check_ids, check_rows, short_id
from sqlstress.experiments.classics.spec import Method, Picks
from sqlstress.report import Check, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import CheckCounter
from sqlstress.system.interrupt import Pulse, with_pulses
from sqlstress.target import stores_nothing
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import Connection, Row
from sqlstress.targets.sqlite.place import SqlitePlace


class ClassicWork(ProvenWork):
    """Base class of the three experiments. An object creates and checks the database of one trial."""

    place: SqlitePlace
    definitions: Iterable[str]
    """SQL statements that create the tables and indices."""

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.salt = salt
        self._words = shared_words(case.concurrency)
        self.shared: tuple[Any, ...] = (self._words,)

    def create(self, pulse: Pulse) -> None:
        """Create and fill the tables. Then close the connection, so that SQLite deletes the WAL."""
        self.place.create_tables(self.definitions, pulse)
        with self.place.opened() as connection:
            connection.rows("BEGIN IMMEDIATE")
            self.fill(connection, pulse)
            connection.rows("COMMIT")

    def fill(self, connection: Connection, pulse: Pulse) -> None:
        """Insert rows that must be there before the workers start. By default, there are none."""

    def tables(self, outcome: Outcome, pulse: Pulse) -> list[list[Row]]:
        """Return the list of rows that a worker committed; two lists if it died and a commit is uncertain."""
        done = OperationLedger(self._words, outcome.worker).acknowledged()
        steps = worker.SOURCES[self.case.workload].steps_of(self.case, outcome.worker, self.salt)
        return worker.possible_tables(with_pulses(steps, pulse), done, outcome.died)

    def rows(self, query: str, pulse: Pulse) -> Iterator[Row]:
        with self.place.opened() as connection:
            yield from with_pulses(connection.iterate(query), pulse)

    def foreign_keys(self, child: str, pulse: Pulse) -> Check:
        """Check that the two foreign keys of each row of the table `child` refer to rows that exist."""
        tally = CheckCounter("foreign keys")
        with self.place.opened() as connection:
            tally.checked = 2 * connection.rows(f"SELECT count(*) FROM {child}")[0][0]
            for name, rowid, parent, _ in files.watched(connection, "PRAGMA foreign_key_check", pulse):
                row = "a row" if rowid is None else f"row {rowid}"
                tally.problem(f"{row} of {name} refers to a row of {parent} that is not there")
        return tally.check()


def numbered(tables: Iterable[Iterable[Row]]) -> list[list[Row]]:
    """Add ids to each list of rows, as SQLite does: [("a",), ("b",)] becomes [(1, "a"), (2, "b")]."""
    return [[(number, *row) for number, row in enumerate(rows, 1)] for rows in tables]


# Methods.


FILL_RESULTS = """
INSERT INTO result SELECT a.id, b.id, (a.id * 31 + b.id * 17 + ?) % 997 / 8.0
FROM sample AS a JOIN sample AS b ON a.id < b.id ORDER BY a.id, b.id"""
"""SQL that stores the result `worker.value` for each pair of samples. Inserts from Python are slower."""


class MethodsWork(ClassicWork):
    """Tables of samples (files) and results (numbers for sample pairs). Checks find missing or wrong rows."""

    definitions = worker.METHODS_TABLES

    @property
    def _initial_samples(self) -> int:
        method: Method = self.case.spec
        return {"insert": 0, "allocate": method.scale, "query": method.samples}[method.phase]

    def _initial_results(self) -> list[Row]:
        computed = worker.pairs(self._initial_samples) if self.case.spec.phase == "query" else ()
        return [(a, b, worker.value(a, b, self.case.seed)) for a, b in computed]

    def fill(self, connection: Connection, pulse: Pulse) -> None:
        paths = ((worker.PATH.format(number),) for number in with_pulses(range(self._initial_samples), pulse))
        connection.run_many("INSERT INTO sample (path) VALUES (?)", paths)
        if self.case.spec.phase == "query":
            connection.rows(FILL_RESULTS, (self.case.seed,))

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        (outcome,) = outcomes
        samples = [[(worker.PATH.format(number),) for number in range(self._initial_samples)]]
        results = [self._initial_results()]
        if self.case.spec.phase == "insert":
            samples = self.tables(outcome, pulse)
        elif self.case.spec.phase == "allocate":
            results = self.tables(outcome, pulse)
        stored_samples = self.rows("SELECT id, path FROM sample", pulse)
        stored_results = self.rows("SELECT a_id, b_id, val FROM result", pulse)
        found = [
            *self.sound(pulse),
            examined("foreign keys", lambda: self.foreign_keys("result", pulse)),
            examined("samples", lambda: check_rows("samples", stored_samples, [numbered(samples)])),
            examined("results", lambda: check_rows("results", stored_results, [results])),
        ]
        if self.case.spec.phase == "query":
            found += reading_checks(outcomes)
        # A check of an empty table has the status "skipped". It is not reported.
        return (check for check in found if check.status != "skipped")


# Keys.


NOW = "CAST(strftime('%s', 'now') AS INT)"
"""SQL expression for the current Unix time. unixepoch() is not used: SQLite lacks it before 3.38."""
_REFERENCE = "FOREIGN KEY ({0}) REFERENCES {0}s (id) ON DELETE CASCADE ON UPDATE NO ACTION"
LISTED: Mapping[str, Callable[[int], tuple[Any, ...]]] = {
    "users": lambda number: (f"user number {number:06}",),
    "items": lambda number: (f"item number {number:06}", 1965 + number % 59),
}
"""Functions by table. Each converts a number to a row without its id: 7 to ("user number 000007",)."""
HAVE_CREATED_AT = ("no-key", "pair-rowid")
"""Names of the schemas in which the table picks has the column created_at."""


def definitions(picks: Picks) -> Iterator[str]:
    id_type = "INTEGER" if picks.id_type == "int" else "BLOB"
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
            *[f"created_at INT NOT NULL DEFAULT ({NOW})"] * (picks.schema in HAVE_CREATED_AT),
            f"last_updated INT NOT NULL DEFAULT ({NOW})",
            _REFERENCE.format("user"),
            _REFERENCE.format("item"),
            *["PRIMARY KEY (user, item)"] * picks.schema.startswith("pair-"),
        ]
    )
    yield f"CREATE TABLE picks (\n    {columns}\n)" + " WITHOUT ROWID" * picks.schema.endswith("-norowid")
    yield "CREATE INDEX picks_by_user ON picks (user)"
    yield "CREATE INDEX picks_by_item ON picks (item)"


def as_inserted(picks: Picks, span_s: tuple[int, int] | None) -> str:
    """Return an SQL condition that a row of picks has the default in each column that workers do not write.

    The default in the columns last_updated and created_at is the time of the row's insert. It must be in
    `span_s`: a time before the first insert and a time after the last, in seconds since 1970. If the system
    clock was changed between them, `span_s` is None. Then last_updated must only be an integer.
    """
    parts = ["priority IS NULL", "public IS 1", "done IS 0", "when_done IS NULL"]
    parts += ["created_at IS last_updated"] * (picks.schema in HAVE_CREATED_AT)
    if span_s is None:
        parts.append("typeof(last_updated) = 'integer'")
    else:
        parts.append("last_updated BETWEEN {} AND {}".format(*span_s))
    return " AND ".join(parts)


CLOCK_TOLERANCE_S = 1.0
"""Maximum drift of the system clock from a monotonic clock, in s. A greater drift means it was changed."""


class KeysWork(ClassicWork):
    """Tables of users, items and picks (rows that link user and item). Checks find missing or wrong rows."""

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self.picks: Picks = case.spec
        self._made: dict[str, list[tuple[Any, ...]]] = {}  # Rows of users and items, by table.
        self.definitions = tuple(definitions(self.picks))
        self._begun = 0.0, 0.0

    def fill(self, connection: Connection, pulse: Pulse) -> None:
        self._begun = time.time(), time.monotonic()
        for name, values in LISTED.items():
            ids = iter(worker.MAKERS[self.picks.id_type](), None) if self.picks.id_type != "int" else count(1)
            numbers = with_pulses(range(getattr(self.picks, name)), pulse)
            made = [(row_id, *values(number)) for number, row_id in zip(numbers, ids, strict=False)]
            places = ", ".join("?" * len(made[0]))
            connection.run_many(f"INSERT INTO {name} VALUES ({places})", with_pulses(made, pulse))
            self._made[name] = made

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        tables = [self.tables(outcome, pulse) for outcome in outcomes]
        ids: dict[Any, Any] = {}
        yield from self.sound(pulse)
        yield examined("users and items", lambda: self._check_lists(pulse))
        yield examined(
            "picks", lambda: check_rows("picks", self._stored_picks(ids, pulse), tables, pick_name)
        )
        yield examined("foreign keys", lambda: self.foreign_keys("picks", pulse))
        if self.picks.own_id:
            by_worker = (
                [
                    (number, ids[pick])
                    for step in worker.KeysSource.steps_of(self.case, outcome.worker, self.salt)
                    for number, pick in worker.numbered_picks(self.picks, step)
                    if pick in ids
                ]
                for outcome in outcomes
            )
            yield check_ids(by_worker, self.picks.id_type)

    def _check_lists(self, pulse: Pulse) -> Check:
        stored = (
            (name, *row)
            for name in self._made
            for row in self.rows(f"SELECT * FROM {name} NOT INDEXED", pulse)
        )
        expected = [(name, *row) for name, rows in self._made.items() for row in rows]
        return check_rows("users and items", stored, [[expected]])

    def _stored_picks(self, ids: dict[Any, Any], pulse: Pulse) -> Iterator[Row | str]:
        """Yield (user, item) of each row, or an error text. Store the row's id in `ids[user, item]`."""
        users, items = (
            {row[0]: number for number, row in enumerate(self._made[name])} for name in ("users", "items")
        )
        pick_id = "id" if self.picks.own_id else "NULL"
        intact = as_inserted(self.picks, self._span())
        query = f"SELECT {pick_id}, user, item, {intact} FROM picks NOT INDEXED"
        for own_id, user, item, is_intact in self.rows(query, pulse):
            if user not in users or item not in items:
                yield f"a pick of {short_id(item)} by {short_id(user)}, which do not both exist,"
                continue
            pick = users[user], items[item]
            ids[pick] = own_id
            yield pick if is_intact else f"{pick_name(pick)} with other values"

    def _span(self) -> tuple[int, int] | None:
        """Return a time before and a time after all inserts, in s since 1970; None if the clock changed."""
        begun_s, begun_steady_s = self._begun
        now_s, passed_s = time.time(), time.monotonic() - begun_steady_s
        if abs(now_s - begun_s - passed_s) > CLOCK_TOLERANCE_S:
            return None
        return int(begun_s) - 1, int(now_s) + 1

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Return `trial` with sizes of the file and the tables, unless a check failed or there is no file."""
        if trial.verdict.status == "failed" or stores_nothing(self.case.driver):
            return trial
        return replace(trial, space=self.place.space(pulse))


def pick_name(pick: Row | str) -> str:
    """Convert the numbers (3, 7) to "user 3's pick of item 7". If `pick` is a text, return it unchanged."""
    if isinstance(pick, str):
        return pick
    user, item = pick
    return f"user {user}'s pick of item {item}"


# Cycles.


class CyclesWork(ClassicWork):
    """Table of `sqlstress cycles`. It must have the rows that it had after the last acknowledged commit."""

    definitions = (worker.CYCLES_TABLE,)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        (outcome,) = outcomes
        tables = numbered(self.tables(outcome, pulse))
        stored = self.rows("SELECT id, value FROM t1", pulse)
        yield from self.sound(pulse)
        yield examined("last commit", lambda: check_rows("last commit", stored, [tables]))


WORKS: dict[str, type[ClassicWork]] = {"methods": MethodsWork, "keys": KeysWork, "cycles": CyclesWork}
