"""Worker of the experiment methods: it runs a single operation, which writes or queries all rows of a cell.

A cell is a method at a scale (number of rows) by a driver. spec.py explains the names of methods. The data
are samples (files), and results: a number for each pair of samples. The place of a row is its index from 0 in
the order of writing. The measured time includes making rows, JSON or SQL and fetching the answer, but not
opening the database.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from sqlstress import sqlite_codes as codes
from sqlstress.engine.ordered import OrderedSource, OrderedStep
from sqlstress.engine.protocols import FAILED, LIMIT, TIMEOUT, Chunk, Findings, Stamps
from sqlstress.statistics.units import format_duration
from sqlstress.targets.sqlite.drivers import Connection, Row

if TYPE_CHECKING:
    from sqlstress.experiments.classics.spec import Method
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.place import SqlitePlace


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
"""SQL expression of the value of a computed result, from the ids of its samples and a seed."""

Pair = tuple[int, int]


def value(a: int, b: int, seed: int) -> float:
    """Return the value of a computed result, as SQLite computes it with VALUE."""
    return (a * 31 + b * 17 + seed) % 997 / 8.0


def sample_place(path: object) -> int | None:
    """Return the place of the sample with this path; None if no sample can have this path."""
    digits = path[9:-4] if isinstance(path, str) else ""
    return int(digits) if digits.isdecimal() and PATH.format(int(digits)) == path else None


def pairs(samples: int) -> Iterator[Pair]:
    """Yield all pairs of sample ids, the lower id first, in ascending order. Ids are 1 to `samples`."""
    return ((a, b) for a in range(1, samples) for b in range(a + 1, samples + 1))


def pairs_below(a: int, samples: int) -> int:
    """Return the number of pairs whose lower id is below `a`."""
    return (a - 1) * samples - a * (a - 1) // 2


def pair_place(a: object, b: object, samples: int) -> int | None:
    """Return the place of the result of a pair; None if there is no such pair."""
    if isinstance(a, int) and isinstance(b, int) and 1 <= a < b <= samples:
        return pairs_below(a, samples) + b - a - 1
    return None


def pair_at(place: int, samples: int) -> Pair:
    """Return the pair of sample ids whose result has this place."""
    a = bisect_right(range(1, samples + 1), place, key=lambda a: pairs_below(a, samples))
    return a, a + 1 + place - pairs_below(a, samples)


def queried_sets(case: Case) -> tuple[Sequence[int], Sequence[int]]:
    """Return two disjoint random lists of sample ids. A cell queries the pairs with one id of each list."""
    method: Method = case.spec
    lower, higher = method.sets
    drawn = Random(f"{case.seed}:{method.scale}").sample(range(1, method.samples + 1), lower + higher)
    return drawn[:lower], drawn[lower:]


def queried_pairs(case: Case, sets: tuple[Sequence[int], Sequence[int]]) -> list[Pair]:
    """Return all pairs with one id of each set, in random order. The lower id of a pair is first."""
    first, second = sets
    found = [(min(a, b), max(a, b)) for a in first for b in second]
    Random(f"{case.seed}:{case.spec.scale}:1").shuffle(found)
    return found


T = TypeVar("T")


class MethodsSource(OrderedSource):
    """Source of the single step of a cell, which writes or queries all rows."""

    def __init__(
        self, case: Case, place: SqlitePlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        self.case, self.method = case, case.spec
        self.kinds = (self.method.phase,)
        words, written = shared
        self._client = place.client(worker)
        connection = self._client.connect(0)
        # A row without a commit takes microseconds. Reading the clock for each row would cost some percent.
        look_every = 16 if self.method.name == "1b1" and self.method.transaction else 1
        self._course = CellCourse(self.method.timeout_s, memoryview(written).cast("B").cast("q"), look_every)
        binding: type[Binding] = Binding
        if case.driver == "peewee":
            from sqlstress.experiments.classics.orm import Orm as binding
        self._binding: Binding = binding(connection, case, self._course)
        super().__init__(words, worker, self._client, self._step())

    def _step(self) -> Iterator[OrderedStep]:
        self._course.begin()
        yield OrderedStep(0, lambda _: self._binding.run_method(), None, self.method.rows)

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        self._ledger.settle(0)
        self.seen.outcome, self.seen.note = self._outcome_of(error)
        chunk.kinds[index] = FAILED

    def _outcome_of(self, error: Exception) -> tuple[str, str]:
        """Return TIMEOUT or LIMIT, and the reason. Raise `error` if it has another cause."""
        if isinstance(error, TimedOut):
            return TIMEOUT, f"given up after {format_duration(self.method.timeout_s)}"
        if self._client.was_busy(error):
            waited = format_duration(self.case.settings.busy_timeout_ms / 1000)
            return TIMEOUT, f"a lock was not to be had within {waited}"
        text = refusal(error)
        if text is None:
            raise error
        return LIMIT, text

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        if chunk.kinds[0] == FAILED:
            return
        super().settle(chunk, done, results, stamps)
        if self._course.is_late():
            self.seen.outcome = TIMEOUT
            self.seen.note = f"took longer than {format_duration(self.method.timeout_s)}"
        if self.method.phase == "query" and self.case.verify != "none":
            rows = [self._binding.row(found) for found in results[0] if found is not None]
            check_answer(rows, self._binding.pairs, self.case.seed, self.seen)


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


# The time limit and the progress of the operation.


class TimedOut(Exception):
    """The operation was stopped between two statements, after its time limit."""


class CellCourse:
    """Time limit of a cell, and the number of its acknowledged rows."""

    def __init__(self, timeout_s: float, written: Any, look_every: int = 1) -> None:
        """`written` is shared memory for the number of written items.

        The clock is read before every `look_every`-th item.
        """
        self._timeout_s, self._written, self._look_every = timeout_s, written, look_every
        self._until_s = 0.0

    def begin(self) -> None:
        """Start the time limit."""
        self._until_s = time.monotonic() + self._timeout_s

    def is_late(self) -> bool:
        return time.monotonic() >= self._until_s

    def steps(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items; raise TimedOut after the time limit. An item counts when the next is requested."""
        written = 0
        look_every = self._look_every
        for item in items:
            self._written[0] = written
            if not written % look_every and self.is_late():
                raise TimedOut
            yield item
            written += 1
        self._written[0] = written


# The methods.


class Binding:
    """Connection of a driver, with functions that write and query rows by each method.

    A subclass for an object-relational mapper overrides the functions that are defined before `run_method`.
    """

    def __init__(self, connection: Any, case: Case, course: CellCourse) -> None:
        self.course = course
        self.method: Method = case.spec
        self.sets = queried_sets(case) if self.method.phase == "query" else ((), ())
        """Two lists of sample ids whose pairs are queried; empty lists if the phase is not query."""
        self.pairs = queried_pairs(case, self.sets)
        self._connection: Connection = connection
        self._variables = self._connection.limit(codes.LIMIT_VARIABLE_NUMBER)
        """Maximum number of parameters in a statement of this SQLite."""
        self._insert, self._places = INSERT.get(self.method.phase, ("", ""))
        self._width = {"insert": 1, "allocate": 3, "query": 2}[self.method.phase]
        """Number of parameters per row or queried pair."""

    def run(self, statement: str, params: Row) -> list[Row]:
        return self._connection.rows(statement, params)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction: commit at the end, or roll back after an error."""
        self._connection.rows("BEGIN")
        try:
            yield
            self._connection.rows("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise

    def rows(self) -> Iterator[Any]:
        """Return the rows to write, in the form that `creation` and `create_all` take."""
        if self.method.phase == "insert":
            return ((PATH.format(place),) for place in range(self.method.scale))
        return ((a, b, PENDING) for a, b in pairs(self.method.scale))

    def creation(self) -> Callable[[Any], object]:
        """Return a function that inserts a row."""
        return self._connection.writer(self._insert + self._places)

    def create_all(self, rows: Sequence[Any]) -> object:
        """Insert rows by a single statement, which has a parameter for each value."""
        text = self._insert + ", ".join([self._places] * len(rows))
        return self.run(text, tuple(chain.from_iterable(rows)))

    def get(self, a: int, b: int) -> Any:
        """Return the result of a pair, in a form that `row` converts; None if the pair has no result."""
        return next(iter(self._connection.rows(GET_RESULT, (a, b))), None)

    def select(self, wanted: Sequence[Pair]) -> list[Any]:
        """Return the results of pairs from one query (BLK or VALUES), in a form that `row` converts."""
        return self.run(query_statement(self.method.name, len(wanted)), tuple(chain.from_iterable(wanted)))

    def row(self, found: Any) -> Row:
        """Return a result of `get`, `select` or `run` as a tuple (a_id, b_id, val)."""
        return tuple(found)

    def run_method(self) -> list[Any] | None:
        """Write or query all rows; a query returns its results."""
        run = self._query if self.method.phase == "query" else self._write
        if not self.method.transaction:
            return run()
        with self.transaction():
            return run()

    def objects(self) -> Iterator[dict[str, Any]]:
        """Return the rows to write, each as a dictionary of values by name of the column."""
        if self.method.phase == "insert":
            return ({"path": PATH.format(place)} for place in range(self.method.scale))
        return ({"a": a, "b": b, "val": PENDING} for a, b in pairs(self.method.scale))

    def _write(self) -> None:
        name = self.method.name
        if name == "1b1":
            create = self.creation()
            for row in self.course.steps(self.rows()):
                create(row)
        elif name == "BLK":
            self._check_variables()
            self.create_all([*self.rows()])
        elif name == "BLK/n":
            rows = [*self.rows()]
            size = max(1, min(self.method.chunk, self._variables // self._width))
            for chunk in self.course.steps(rows[start : start + size] for start in range(0, len(rows), size)):
                self.create_all(chunk)
        elif name == "JSON":
            self.run(json_statement(self.method.phase), (json.dumps([*self.objects()]),))
        else:
            self.run(ALLOCATE_SPC, ())

    def _query(self) -> list[Any]:
        name, wanted = self.method.name, self.pairs
        if name == "1b1":
            return [self.get(a, b) for a, b in self.course.steps(wanted)]
        if name == "JSON":
            objects = [{"a": a, "b": b} for a, b in wanted]
            return self.run(json_statement("query"), (json.dumps(objects),))
        if name == "SPC":
            return self.run(QUERY_SPC, tuple(map(json.dumps, self.sets)))
        self._check_variables()
        return self.select(wanted)

    def _check_variables(self) -> None:
        needed = self.method.rows * self._width
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
