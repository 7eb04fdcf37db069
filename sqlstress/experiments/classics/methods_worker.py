"""Worker of the experiment methods: writes or queries all rows of a case.

A case is a method (see spec.py) at a scale (number of rows) with a driver. The data are samples (files), and
results: a number for each pair of samples. The measured time includes making JSON or SQL and fetching the
answer, but neither opening the database nor making the rows. An answer is the list of rows that the queries
return. A step is a statement, or several, that the timed loop measures as a whole.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from random import Random
from typing import TYPE_CHECKING, Any

from sqlstress.engine.protocols import DONE, FAILED, LIMIT, Chunk, Findings, Stamps
from sqlstress.experiments.classics.steps import BEGIN, COMMIT, QUERY, Step, StepSource
from sqlstress.targets.sqlite.drivers import Connection, Row

if TYPE_CHECKING:
    from sqlstress.experiments.classics.spec import Method
    from sqlstress.report.case import Case
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
"""Format of a sample's path, from the sample's number."""
PENDING = -1.0
"""Value of a result that is allocated but not computed."""
VALUE = "({a} * 31 + {b} * 17 + {seed}) % 997 / 8.0"
"""SQL expression of a result's value, from the ids `a` and `b` of its samples and a seed."""

Pair = tuple[int, int]


def value(a: int, b: int, seed: int) -> float:
    """Return the value of a computed result, as SQLite computes it with VALUE."""
    return (a * 31 + b * 17 + seed) % 997 / 8.0


def pairs(samples: int) -> Iterator[Pair]:
    """Yield all pairs of sample ids from 1 to `samples`, the lower id first, in ascending order."""
    return ((a, b) for a in range(1, samples) for b in range(a + 1, samples + 1))


def queried_sets(case: Case) -> tuple[Sequence[int], Sequence[int]]:
    """Return two disjoint random lists of sample ids. The case queries each pair with one id of each list."""
    method: Method = case.spec
    lower, higher = method.sets
    drawn = Random(f"{case.seed}:{method.scale}").sample(range(1, method.samples + 1), lower + higher)
    return drawn[:lower], drawn[lower:]


def queried_pairs(case: Case) -> list[Pair]:
    """Return all pairs with one id of each queried set in random order, the lower id first."""
    first, second = queried_sets(case)
    found = [(min(a, b), max(a, b)) for a in first for b in second]
    Random(f"{case.seed}:{case.spec.scale}:1").shuffle(found)
    return found


BATCH = 64
"""Number of rows per step of the method 1b1.

If each row is a transaction, a step has one row instead.
"""


def rows_of(case: Case) -> list[Row]:
    """Return the rows that a case writes, in order, or the pairs that it queries."""
    method: Method = case.spec
    if method.phase == QUERY:
        return queried_pairs(case)
    if method.phase == "insert":
        return [(PATH.format(number),) for number in range(method.scale)]
    return [(a, b, PENDING) for a, b in pairs(method.scale)]


class MethodsSource(StepSource):
    """Source of a case's operations, until a limit of SQLite is met."""

    @staticmethod
    def steps_of(case: Case, worker: int, salt: int) -> Iterator[Step]:
        """Yield the steps of a case: one for each statement.

        The method 1b1 has a statement for each row. If it queries, or if one transaction has all rows, a step
        runs BATCH statements.
        """
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

    def calls(self, client: Any) -> dict[str, Operation]:
        connection, method = client.connect(0), self.case.spec
        operations: Callable[..., dict[str, Operation]] = sql_operations
        if self.case.driver == "peewee":
            from sqlstress.experiments.classics.orm import orm_operations as operations
        self._answer: list[Any] = []
        return {
            method.phase: operations(self.case, connection)[method.name],
            BEGIN: lambda _: connection.rows("BEGIN"),
            COMMIT: lambda _: connection.rows("COMMIT"),
        }

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        # Only a statement for all rows meets a limit. It is the only step of the case, so no step must be
        # cancelled.
        text = refusal(error)
        if text is None:
            raise error
        self.seen.outcome, self.seen.note = LIMIT, text
        self._ledger.settle(index)
        chunk.kinds[index] = FAILED

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        if self.seen.outcome == LIMIT:
            return
        super().settle(chunk, done, results, stamps)
        if self.case.spec.phase == QUERY:
            self._answer += chain.from_iterable(results)

    def findings(self) -> Findings:
        if self.case.spec.phase == QUERY and self.case.verify != "none" and self.seen.outcome == DONE:
            wanted = rows_of(self.case)
            wrong = [*objections(map(as_row, self._answer), wanted, self.case.seed)]
            self.seen.reads_checked, self.seen.bad_reads = len(wanted), len(wrong)
            self.seen.bad_read_examples = wrong[:EXAMPLES]
        return super().findings()


# Check of an answer (the rows that the queries return). An answer must have every queried pair once, with the
# stored value.


EXAMPLES = 3
"""Maximum number of wrong rows in a report."""


def as_row(result: Any) -> Row:
    """Return a result, perhaps an object of a mapper, as a tuple (a_id, b_id, val)."""
    return result if isinstance(result, tuple) else (result.a_id, result.b_id, result.val)


def objections(found: Iterable[Row], wanted: Sequence[Pair], seed: int) -> Iterator[str]:
    """Yield a text for each row that the answer `found` lacks, and for each superfluous row."""
    expected = Counter((a, b, value(a, b, seed)) for a, b in wanted)
    answered = Counter(found)
    for row in expected - answered:
        yield f"the answer lacks the result {row!r:.60}"
    for row in answered - expected:
        yield f"the answer has the result {row!r:.60}, which was not asked for or is there too often"


# SQL of the methods, in the form in which Peewee writes it.


FIELDS = {"insert": ("path",), "allocate": ("a", "b", "val"), "query": ("a", "b")}
"""Names of the values of a row or queried pair, by phase: fields of models, and keys in JSON."""
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
"""Query of the method SPC for all pairs with one id of each of two sets.

Each of the two parameters is a set as a JSON list.
"""


def json_statement(phase: str) -> str:
    """Return the statement of the method JSON, whose parameter is a JSON list of rows or pairs."""
    # The operator ->> is not used: SQLite lacks it before 3.38, and it is no faster than json_extract.
    path, a, b, val = (f"json_extract(j.value, '$.{name}')" for name in ("path", "a", "b", "val"))
    if phase == "insert":
        return f"INSERT INTO sample (path) SELECT {path} FROM json_each(?) AS j"
    if phase == "allocate":
        return f"INSERT INTO result (a_id, b_id, val) SELECT {a}, {b}, {val} FROM json_each(?) AS j"
    return (
        "SELECT r.a_id, r.b_id, r.val FROM result AS r JOIN json_each(?) AS j "
        f"WHERE r.a_id = ({a}) AND r.b_id = ({b})"
    )


def bulk_statement(phase: str, count: int) -> str:
    """Return a statement for `count` rows or pairs, with a parameter for each value."""
    if phase == QUERY:
        return f"{_SELECT} WHERE {'(' * (count - 1)}{_PAIR}{f' OR {_PAIR})' * (count - 1)}"
    beginning, places = INSERT[phase]
    return beginning + ", ".join([places] * count)


def record(phase: str, row: Row) -> dict[str, Any]:
    """Return the values of a row or queried pair, by name."""
    return dict(zip(FIELDS[phase], row, strict=True))


Run = Callable[[str, Row], list[Row]]
"""Function that runs a statement with parameters and returns the rows."""


def sql_operations(case: Case, connection: Connection, run: Run | None = None) -> dict[str, Operation]:
    """Return, by name of the method, the function that does a case's phase with this method.

    Each function writes rows, or queries pairs and returns their results. `run` runs a statement; by default,
    the connection does.
    """
    phase, run = case.spec.phase, run or connection.rows

    def one_by_one(rows: Sequence[Row]) -> object:
        return deque(map(write, rows), 0) if write else [*chain.from_iterable(map(get, rows))]

    def in_bulk(rows: Sequence[Row]) -> object:
        return run(bulk_statement(phase, len(rows)), tuple(chain.from_iterable(rows)))

    def from_json(rows: Sequence[Row]) -> object:
        return run(json_statement(phase), (json.dumps([record(phase, row) for row in rows]),))

    def inside(_: object) -> object:
        return run(QUERY_SPC, sets) if sets else run(ALLOCATE_SPC, ())

    write = connection.writer("".join(INSERT[phase])) if phase != QUERY else None
    get = partial(run, GET_RESULT)
    sets = tuple(map(json.dumps, queried_sets(case))) if phase == QUERY else ()
    return {
        "1b1": one_by_one,
        "BLK": in_bulk,
        "BLK/n": in_bulk,
        "JSON": from_json,
        "SPC": inside,
    }


_REFUSALS = (
    "parser stack overflow",
    "Expression tree is too large",
    "too many SQL variables",
    "too many terms",
    "string or blob too big",
    "Recursion limit",
)
"""Phrases in SQLite's messages about limits.

Result codes do not suffice, because they do not distinguish limits from other errors.
"""


def refusal(error: Exception) -> str | None:
    """Return the message of an error about a limit of SQLite or Python; None for other errors."""
    if isinstance(error, RecursionError):
        return "Python's recursion limit, which Peewee met while it nested the conditions"
    text = str(error)
    return text if any(phrase in text for phrase in _REFUSALS) else None
