"""Worker of the experiment methods: it writes or queries all rows of a cell.

A cell is a method at a scale (number of rows) by a driver. spec.py explains the names of methods. The data
are samples (files), and results: a number for each pair of samples. The measured time includes making JSON or
SQL and fetching the answer, but neither opening the database nor making the rows.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, takewhile
from random import Random
from typing import TYPE_CHECKING, Any

from sqlstress import sqlite_codes as codes
from sqlstress.engine.protocols import DONE, FAILED, LIMIT, TIMEOUT, Chunk, Findings, Stamps
from sqlstress.experiments.classics.steps import BEGIN, COMMIT, QUERY, Step, StepSource
from sqlstress.statistics.units import format_duration
from sqlstress.targets.sqlite.drivers import Connection, Row

if TYPE_CHECKING:
    from sqlstress.experiments.classics.spec import Method
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.views import Operation


SCHEMA = (
    'CREATE TABLE "sample" ("id" INTEGER NOT NULL PRIMARY KEY, "path" TEXT NOT NULL)',
    'CREATE UNIQUE INDEX "sample_path" ON "sample" ("path")',
    'CREATE TABLE "result" ("a_id" INTEGER NOT NULL, "b_id" INTEGER NOT NULL, "val" REAL NOT NULL, '
    'PRIMARY KEY ("a_id", "b_id"), FOREIGN KEY ("a_id") REFERENCES "sample" ("id"), '
    'FOREIGN KEY ("b_id") REFERENCES "sample" ("id"), CHECK (a_id < b_id))',
    'CREATE INDEX "result_a_id" ON "result" ("a_id")',
    'CREATE INDEX "result_b_id" ON "result" ("b_id")',
)
"""SQL that creates the tables as Peewee does for the models in orm.py."""

PATH = "/dataset/{:06}.mat"
"""Format of a sample's path; its argument is the place of the sample."""
PENDING = -1.0
"""Value of a result that was allocated but not computed."""
VALUE = "({a} * 31 + {b} * 17 + {seed}) % 997 / 8.0"
"""SQL expression of the value of a result: from the ids `a` and `b` of its two samples, and a seed."""

Pair = tuple[int, int]


def value(a: int, b: int, seed: int) -> float:
    """Return the value of a computed result, as SQLite computes it with VALUE."""
    return (a * 31 + b * 17 + seed) % 997 / 8.0


def pairs(samples: int) -> Iterator[Pair]:
    """Yield all pairs of sample ids, the lower id first, in ascending order. Ids are 1 to `samples`."""
    return ((a, b) for a in range(1, samples) for b in range(a + 1, samples + 1))


def queried_sets(case: Case) -> tuple[Sequence[int], Sequence[int]]:
    """Return two disjoint random lists of sample ids. A cell queries the pairs with one id of each list."""
    method: Method = case.spec
    lower, higher = method.sets
    drawn = Random(f"{case.seed}:{method.scale}").sample(range(1, method.samples + 1), lower + higher)
    return drawn[:lower], drawn[lower:]


def queried_pairs(case: Case) -> list[Pair]:
    """Return all pairs with one id of each set, in random order. The lower id of a pair is first."""
    first, second = queried_sets(case)
    found = [(min(a, b), max(a, b)) for a in first for b in second]
    Random(f"{case.seed}:{case.spec.scale}:1").shuffle(found)
    return found


BATCH = 64
"""Number of rows in a step of the method 1b1, unless each row is a transaction."""


def rows_of(case: Case) -> list[Row]:
    """Return the rows that a cell writes, in order, or the pairs that it queries."""
    method: Method = case.spec
    if method.phase == QUERY:
        return queried_pairs(case)
    if method.phase == "insert":
        return [(PATH.format(number),) for number in range(method.scale)]
    return [(a, b, PENDING) for a, b in pairs(method.scale)]


def steps_of(case: Case) -> Iterator[Step]:
    """Yield the steps of a cell: a step for each statement, or for BATCH statements of a transaction."""
    method: Method = case.spec
    rows = rows_of(case)
    row_by_row = 1 if method.phase != QUERY and not method.transaction else BATCH
    size = {"1b1": row_by_row, "BLK/n": method.chunk}.get(method.name, max(1, len(rows)))
    if method.transaction:
        yield Step(BEGIN)
    for start in range(0, len(rows), size):
        yield Step(method.phase, rows[start : start + size])
    if method.transaction:
        yield Step(COMMIT)


class MethodsSource(StepSource):
    """Source of the steps of a cell (a method at a scale). A time-out or a limit of SQLite ends the steps."""

    def __init__(
        self, case: Case, place: SqlitePlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        self.case, self.method = case, case.spec
        self._client = place.client(worker)
        binding: type[Binding] = Binding
        if case.driver == "peewee":
            from sqlstress.experiments.classics.orm import Orm as binding
        self._binding: Binding = binding(self._client.connect(0), case)
        calls = {self.method.phase: self._binding.operation()}
        calls |= {BEGIN: self._binding.begin, COMMIT: self._binding.commit}
        self._answer: list[Any] = []
        self._has_failed = False
        super().__init__(shared[0], worker, self._client, calls, steps_of(case), self.method.timeout_s)

    def next_chunk(self, size: int) -> Chunk | None:
        chunk = None if self._has_failed else super().next_chunk(size)
        # A failed step ends the chunk.
        return chunk and chunk._replace(calls=takewhile(lambda _: not self._has_failed, chunk.calls))

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        self.seen.outcome, self.seen.note = self._outcome_of(error)
        self._has_failed = True
        self._ledger.settle(index)
        chunk.kinds[index] = FAILED

    def _outcome_of(self, error: Exception) -> tuple[str, str]:
        """Return TIMEOUT or LIMIT, and the reason. Raise `error` if it has another cause."""
        if self._client.was_busy(error):
            waited = format_duration(self.case.settings.busy_timeout_ms / 1000)
            return TIMEOUT, f"a lock was not to be had within {waited}"
        text = refusal(error)
        if text is None:
            raise error
        return LIMIT, text

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        if self._has_failed:
            return
        super().settle(chunk, done, results, stamps)
        if self.method.phase == QUERY:
            self._answer += chain.from_iterable(results)

    def findings(self) -> Findings:
        if self.method.phase == QUERY and self.case.verify != "none" and self.seen.outcome == DONE:
            rows = [self._binding.row(found) for found in self._answer if found is not None]
            check_answer(rows, rows_of(self.case), self.case.seed, self.seen)
        return super().findings()


# The check of an answer: it must have every queried pair once, with the stored value.


EXAMPLES = 3


def check_answer(found: Iterable[Row], wanted: Sequence[Pair], seed: int, findings: Findings) -> None:
    """Check the rows of an answer against the queried pairs, and add the problems to `findings`."""
    findings.reads_checked += len(wanted)
    for text in objections(found, wanted, seed):
        findings.bad_reads += 1
        if len(findings.bad_read_examples) < EXAMPLES:
            findings.bad_read_examples.append(text)


def objections(found: Iterable[Row], wanted: Sequence[Pair], seed: int) -> Iterator[str]:
    """Yield a text for each row that the answer `found` lacks, and each row that it should not have."""
    expected = Counter((a, b, value(a, b, seed)) for a, b in wanted)
    answered = Counter(found)
    for row in expected - answered:
        yield f"the answer lacks the result {row!r:.60}"
    for row in answered - expected:
        yield f"the answer has the result {row!r:.60}, which was not asked for or is there too often"


# SQL of the methods, in the form in which Peewee writes it.


FIELDS = {"insert": ("path",), "allocate": ("a", "b", "val"), "query": ("a", "b")}
"""Names of the values of a row or a queried pair, by phase: fields of the models, and keys in JSON."""
INSERT = {
    "insert": ('INSERT INTO "sample" ("path") VALUES ', "(?)"),
    "allocate": ('INSERT INTO "result" ("a_id", "b_id", "val") VALUES ', "(?, ?, ?)"),
}
"""Beginning of the INSERT statement, and placeholders of one row, by phase."""
_SELECT = 'SELECT "t1"."a_id", "t1"."b_id", "t1"."val" FROM "result" AS "t1"'
_PAIR = '(("t1"."a_id" = ?) AND ("t1"."b_id" = ?))'
GET_RESULT = f"{_SELECT} WHERE {_PAIR}"

ALLOCATE_SPC = (
    f"INSERT INTO result SELECT s1.id, s2.id, {PENDING:.0f} FROM sample AS s1 JOIN sample AS s2 "
    "ON s1.id < s2.id"
)
"""Statement of the method SPC that makes a result for each pair of samples inside SQLite."""

QUERY_SPC = (
    "WITH pair AS (SELECT DISTINCT "
    "CASE WHEN s1.value < s2.value THEN s1.value ELSE s2.value END AS aid, "
    "CASE WHEN s1.value < s2.value THEN s2.value ELSE s1.value END AS bid "
    "FROM json_each(?) AS s1, json_each(?) AS s2) "
    "SELECT aid, bid, r.val FROM pair JOIN result AS r ON r.a_id = pair.aid AND r.b_id = pair.bid"
)
"""Query of the method SPC that makes all pairs between two sets of ids, given as JSON, inside SQLite."""


def json_statement(phase: str) -> str:
    """Return the statement of the method JSON. Its parameter is a JSON list of objects: rows or pairs."""
    # The operator ->> is missing before SQLite 3.38, and no faster than json_extract.
    path, a, b, val = (f"json_extract(j.value, '$.{name}')" for name in ("path", "a", "b", "val"))
    if phase == "insert":
        return f"INSERT INTO sample (path) SELECT {path} FROM json_each(?) AS j"
    if phase == "allocate":
        return f"INSERT INTO result (a_id, b_id, val) SELECT {a}, {b}, {val} FROM json_each(?) AS j"
    return (
        "SELECT r.a_id, r.b_id, r.val FROM result AS r JOIN json_each(?) AS j "
        f"WHERE r.a_id = ({a}) AND r.b_id = ({b})"
    )


def query_statement(form: str, count: int) -> str:
    """Return a query for `count` pairs. `form` is the method "BLK" (joined by OR) or "VALUES" (a table)."""
    if form == "BLK":
        return f"{_SELECT} WHERE {'(' * (count - 1)}{_PAIR}{f' OR {_PAIR})' * (count - 1)}"
    values = f"VALUES {', '.join(['(?, ?)'] * count)}"
    joined = '(("t1"."a_id" = "p"."column1") AND ("t1"."b_id" = "p"."column2"))'
    return f'{_SELECT} INNER JOIN ({values}) AS "p" ON {joined}'


# The methods.


class Binding:
    """Connection of a driver, with functions that write and query rows by each method.

    A subclass for an object-relational mapper overrides the functions that are defined before `operation`.
    """

    def __init__(self, connection: Any, case: Case) -> None:
        self.case = case
        self.method: Method = case.spec
        self._connection: Connection = connection
        self._variables = self._connection.limit(codes.LIMIT_VARIABLE_NUMBER)
        """Maximum number of parameters in a statement of this SQLite."""
        self._insert, self._places = INSERT.get(self.method.phase, ("", ""))
        self._width = len(FIELDS[self.method.phase])
        """Number of parameters per row or queried pair."""

    def run(self, statement: str, params: Row) -> list[Row]:
        return self._connection.rows(statement, params)

    def begin(self, _: object) -> object:
        return self._connection.rows("BEGIN")

    def commit(self, _: object) -> object:
        return self._connection.rows("COMMIT")

    def creation(self) -> Callable[[Row], object]:
        """Return a function that inserts a row."""
        return self._connection.writer(self._insert + self._places)

    def create_all(self, rows: Sequence[Row]) -> object:
        """Insert rows by a single statement, which has a parameter for each value."""
        text = self._insert + ", ".join([self._places] * len(rows))
        return self.run(text, tuple(chain.from_iterable(rows)))

    def get(self, pair: Pair) -> Any:
        """Return the result of a pair, in a form that `row` converts; None if the pair has no result."""
        return next(iter(self._connection.rows(GET_RESULT, pair)), None)

    def select(self, wanted: Sequence[Pair]) -> list[Any]:
        """Query the results of all `wanted` pairs at once. Return them in a form that `row` converts."""
        return self.run(query_statement(self.method.name, len(wanted)), tuple(chain.from_iterable(wanted)))

    def row(self, found: Any) -> Row:
        """Return a result of `get`, `select` or `run` as a tuple (a_id, b_id, val)."""
        return tuple(found)

    def operation(self) -> Operation:
        """Return the function that writes rows, or queries pairs and returns their results."""
        if self.method.phase == QUERY:
            sets = tuple(map(json.dumps, queried_sets(self.case)))
            by_method: dict[str, Operation] = {
                "1b1": lambda wanted: list(map(self.get, wanted)),
                "JSON": lambda wanted: self.run(json_statement(QUERY), (self._json(wanted),)),
                "SPC": lambda _: self.run(QUERY_SPC, sets),
            }
            return by_method.get(self.method.name, self._select_all)
        create = self.creation()
        return {
            "1b1": lambda rows: deque(map(create, rows), 0),
            "BLK": self._create_at_once,
            "BLK/n": self._create_in_chunks,
            "JSON": lambda rows: self.run(json_statement(self.method.phase), (self._json(rows),)),
            "SPC": lambda _: self.run(ALLOCATE_SPC, ()),
        }[self.method.name]

    def record(self, row: Row) -> dict[str, Any]:
        """Return the values of a row, or of a queried pair, by name."""
        return dict(zip(FIELDS[self.method.phase], row, strict=True))

    def _json(self, rows: Iterable[Row]) -> str:
        return json.dumps([*map(self.record, rows)])

    def _create_at_once(self, rows: Sequence[Row]) -> object:
        self._check_variables(rows)
        return self.create_all(rows)

    def _create_in_chunks(self, rows: Sequence[Row]) -> None:
        size = max(1, self._variables // self._width)
        for start in range(0, len(rows), size):
            self.create_all(rows[start : start + size])

    def _select_all(self, wanted: Sequence[Pair]) -> list[Any]:
        self._check_variables(wanted)
        return self.select(wanted)

    def _check_variables(self, rows: Sequence[Row]) -> None:
        needed = len(rows) * self._width
        if needed > self._variables:
            raise LimitReached(
                f"{needed:,} parameters in one statement; this SQLite takes {self._variables:,}"
            )


_REFUSALS = (
    "parser stack overflow",
    "Expression tree is too large",
    "too many SQL variables",
    "too many terms",
    "string or blob too big",
    "Recursion limit",
)
"""Phrases in SQLite's error messages about limits. The result codes do not tell a limit from an error."""


class LimitReached(Exception):
    """A statement needs more parameters than SQLite permits."""


def refusal(error: Exception) -> str | None:
    """Return the message of an error about a limit of SQLite or Python; None for any other error."""
    if isinstance(error, RecursionError):
        return "Python's recursion limit, which Peewee met while it nested the conditions"
    text = str(error)
    found = isinstance(error, LimitReached) or any(phrase in text for phrase in _REFUSALS)
    return text if found else None
