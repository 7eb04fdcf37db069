"""The methods, each as one function; what a binding must offer for them, and what it refuses."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from sqlstress.experiments.methods.tables import PATH, PENDING, Own, Pair, pairs
from sqlstress.targets.sqlite.drivers import Connection, Row

if TYPE_CHECKING:
    from sqlstress.experiments.methods.experiment import Method


# The statements. Those of the bare drivers are as Peewee would write them.


INSERT_SAMPLE = 'INSERT INTO "sample" ("path") VALUES '
INSERT_RESULT = 'INSERT INTO "result" ("a_id", "b_id", "val") VALUES '
SELECT_RESULT = 'SELECT "t1"."a_id", "t1"."b_id", "t1"."val" FROM "result" AS "t1"'
_PAIR = '(("t1"."a_id" = ?) AND ("t1"."b_id" = ?))'
GET_RESULT = f"{SELECT_RESULT} WHERE {_PAIR}"

ALLOCATE_SPC = (
    f"INSERT INTO result SELECT s1.id, s2.id, {PENDING:.0f} FROM sample AS s1 JOIN sample AS s2 "
    "ON s1.id < s2.id WHERE s1.id BETWEEN ? AND ?"
)
"""Each pair whose lower id lies in a range is made inside SQLite."""

QUERY_SPC = (
    "WITH pair AS (SELECT DISTINCT "
    "CASE WHEN s1.value < s2.value THEN s1.value ELSE s2.value END AS aid, "
    "CASE WHEN s1.value < s2.value THEN s2.value ELSE s1.value END AS bid "
    "FROM json_each(?) AS s1, json_each(?) AS s2) "
    "SELECT aid, bid, r.val FROM pair JOIN result AS r ON r.a_id = pair.aid AND r.b_id = pair.bid"
)
"""All pairs between two sets of ids are made inside SQLite."""


def member(name: str, arrow: bool) -> str:
    """Return a member of the JSON object j.value; the operator ->> came with SQLite 3.38."""
    return f"j.value ->> '$.{name}'" if arrow else f"json_extract(j.value, '$.{name}')"


def insert_json(arrow: bool) -> str:
    """Return what inserts samples out of a list of objects."""
    return f"INSERT INTO sample (path) SELECT {member('path', arrow)} FROM json_each(?) AS j"


def allocate_json(arrow: bool) -> str:
    """Return what inserts results out of a list of objects."""
    members = ", ".join(member(name, arrow) for name in ("a", "b", "val"))
    return f"INSERT INTO result (a_id, b_id, val) SELECT {members} FROM json_each(?) AS j"


def query_json(arrow: bool) -> str:
    """Return the query for the pairs of a list of objects."""
    return (
        "SELECT r.a_id, r.b_id, r.val FROM result AS r JOIN json_each(?) AS j "
        f"WHERE r.a_id = ({member('a', arrow)}) AND r.b_id = ({member('b', arrow)})"
    )


def nested(pairs: int) -> str:
    """Return the query for so many pairs as Peewee nests conditions that are joined one after the other."""
    return f"{SELECT_RESULT} WHERE {'(' * (pairs - 1)}{_PAIR}{f' OR {_PAIR})' * (pairs - 1)}"


def row_values(pairs: int) -> str:
    """Return the query for so many pairs, compared as row values."""
    return f'{SELECT_RESULT} WHERE (("t1"."a_id", "t1"."b_id") IN ({_values(pairs)}))'


def values_join(pairs: int) -> str:
    """Return the query for so many pairs, joined as a table."""
    joined = '(("t1"."a_id" = "p"."column1") AND ("t1"."b_id" = "p"."column2"))'
    return f'{SELECT_RESULT} INNER JOIN ({_values(pairs)}) AS "p" ON {joined}'


def _values(pairs: int) -> str:
    return f"VALUES {', '.join(['(?, ?)'] * pairs)}"


FORMS = {"BLK": nested, "ROW": row_values, "VALUES": values_join}
"""Method → its query."""


# The course of one operation: until when it may go on, and how far it has come.


T = TypeVar("T")

INTERRUPT_EVERY_S = 0.01
"""An interrupt that meets no running statement does nothing, so it is repeated."""


class TimedOut(Exception):
    """The operation was stopped between two statements."""


class Course:
    """Stops an operation after its time-out, wherever it is by then."""

    def __init__(self, connection: Connection, timeout_s: float, told: Any) -> None:
        """`told` is one shared word: the rows that the worker knows to be written."""
        self.late = False
        self._connection, self._timeout_s, self._told = connection, timeout_s, told
        self._over = Event()
        self._watch = Thread(target=self._stop_when_late, daemon=True)

    def begin(self) -> None:
        """The operation begins now."""
        self._watch.start()

    def _stop_when_late(self) -> None:
        if self._over.wait(self._timeout_s):
            return
        self.late = True
        while not self._over.wait(INTERRUPT_EVERY_S):
            self._connection.interrupt()

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items, each when the one before it has been written; raises TimedOut."""
        told = 0
        for item in items:
            self._told[0] = told
            if self.late:
                raise TimedOut
            yield item
            told += 1
        self._told[0] = told

    def end(self) -> None:
        """The operation has ended: nothing is interrupted any more."""
        self._over.set()
        self._watch.join()


class Binding(ABC):
    """A way to SQLite, and the methods on it: each does all that is a worker's own."""

    def __init__(self, method: Method, own: Own, course: Course, variables: int, arrow: bool) -> None:
        """`variables`: how many parameters a statement takes; `arrow`: whether there is the operator ->>."""
        self.method, self.own, self.course = method, own, course
        self._variables, self._arrow = variables, arrow

    @abstractmethod
    def run(self, statement: str, params: Row) -> list[Row]:
        """Run a statement."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """Return what begins a transaction, commits it at its end, and undoes it after an error."""

    @abstractmethod
    def create_sample(self, path: str) -> object:
        """Insert a sample."""

    @abstractmethod
    def create_result(self, a: int, b: int) -> object:
        """Insert a result that is pending."""

    @abstractmethod
    def get_result(self, a: int, b: int) -> Any:
        """Return a result, in the form that the binding gives it; None if there is none."""

    @abstractmethod
    def insert_samples(self, paths: Iterable[str]) -> object:
        """Insert samples with one statement, a parameter for each."""

    @abstractmethod
    def insert_results(self, wanted: Iterable[Pair]) -> object:
        """Insert pending results with one statement, three parameters for each."""

    @abstractmethod
    def select(self, wanted: Sequence[Pair]) -> list[Any]:
        """Return results by one query of the method's kind, in the form that the binding gives them."""

    @abstractmethod
    def row(self, found: Any) -> Row:
        """Return what was found as (a_id, b_id, val)."""

    def operation(self) -> Callable[[], Any]:
        """Return the function of the method; a query's answer is a list."""
        known: dict[tuple[str, str], Callable[[], Any]] = {
            ("insert", "1b1"): self._insert_one_by_one,
            ("insert", "BLK"): self._insert_in_bulk,
            ("insert", "BLK/n"): self._insert_in_chunks,
            ("insert", "JSON"): self._insert_from_json,
            ("allocate", "1b1"): self._allocate_one_by_one,
            ("allocate", "BLK"): self._allocate_in_bulk,
            ("allocate", "BLK/n"): self._allocate_in_chunks,
            ("allocate", "JSON"): self._allocate_from_json,
            ("allocate", "SPC"): self._allocate_inside,
            ("query", "1b1"): self._query_one_by_one,
            ("query", "BLK"): self._query_in_bulk,
            ("query", "ROW"): self._query_in_bulk,
            ("query", "VALUES"): self._query_in_bulk,
            ("query", "JSON"): self._query_by_json,
            ("query", "SPC"): self._query_by_sets,
        }
        method = known[self.method.phase, self.method.name]
        return self._as_one_transaction(method) if self.method.transaction else method

    def _as_one_transaction(self, method: Callable[[], Any]) -> Callable[[], Any]:
        def whole() -> Any:
            with self.transaction():
                return method()

        return whole

    def _insert_one_by_one(self) -> None:
        for place in self.course.each(self.own.places):
            self.create_sample(PATH.format(place))

    def _insert_in_bulk(self) -> None:
        self._check_variables(len(self.own.places))
        self.insert_samples([PATH.format(place) for place in self.own.places])

    def _insert_in_chunks(self) -> None:
        paths = [PATH.format(place) for place in self.own.places]
        for chunk in self._chunks(paths, 1):
            self.insert_samples(chunk)

    def _insert_from_json(self) -> None:
        rows = [{"path": PATH.format(place)} for place in self.own.places]
        self.run(insert_json(self._arrow), (json.dumps(rows),))

    def _pairs(self) -> Iterable[Pair]:
        return pairs(self.own.ids, self.method.scale)

    def _allocate_one_by_one(self) -> None:
        for a, b in self.course.each(self._pairs()):
            self.create_result(a, b)

    def _allocate_in_bulk(self) -> None:
        wanted = list(self._pairs())
        self._check_variables(3 * len(wanted))
        self.insert_results(wanted)

    def _allocate_in_chunks(self) -> None:
        for chunk in self._chunks(list(self._pairs()), 3):
            self.insert_results(chunk)

    def _allocate_from_json(self) -> None:
        rows = [{"a": a, "b": b, "val": PENDING} for a, b in self._pairs()]
        self.run(allocate_json(self._arrow), (json.dumps(rows),))

    def _allocate_inside(self) -> None:
        self.run(ALLOCATE_SPC, (self.own.ids.start, self.own.ids.stop - 1))

    def _query_one_by_one(self) -> list[Any]:
        return [self.get_result(a, b) for a, b in self.course.each(self.own.pairs)]

    def _query_in_bulk(self) -> list[Any]:
        self._check_variables(2 * len(self.own.pairs))
        return self.select(self.own.pairs)

    def _query_by_json(self) -> list[Row]:
        wanted = [{"a": a, "b": b} for a, b in self.own.pairs]
        return self.run(query_json(self._arrow), (json.dumps(wanted),))

    def _query_by_sets(self) -> list[Row]:
        first, second = self.own.sets
        return self.run(QUERY_SPC, (json.dumps(first), json.dumps(second)))

    def _chunks(self, rows: Sequence[Any], variables: int) -> Iterable[Sequence[Any]]:
        size = max(1, min(self.method.chunk, self._variables // variables))
        return self.course.each(rows[start : start + size] for start in range(0, len(rows), size))

    def _check_variables(self, needed: int) -> None:
        if needed > self._variables:
            raise LimitReached(
                f"{needed:,} parameters in one statement; this SQLite takes {self._variables:,}"
            )

    def most_pairs(self) -> int:
        """Return how many pairs the query of the method's form takes at most, after it took no more."""
        return most(self._takes, len(self.own.pairs))

    def _takes(self, count: int) -> bool:
        try:
            self.select(self.own.pairs[:count])
        except Exception as error:
            if refusal(error) is None:
                raise
            return False
        return True


_REFUSALS = (
    "parser stack overflow",
    "Expression tree is too large",
    "too many SQL variables",
    "too many terms",
    "string or blob too big",
    "Recursion limit",
)
"""How SQLite says so; the result code is the one of any wrong statement."""


class LimitReached(Exception):
    """It was seen beforehand that a statement would be refused."""


def refusal(error: Exception) -> str | None:
    """Return what a limit's error says; None for any other error."""
    if isinstance(error, RecursionError):
        return "Python's recursion limit, which Peewee met while it nested the conditions"
    text = str(error)
    found = isinstance(error, LimitReached) or any(phrase in text for phrase in _REFUSALS)
    return text if found else None


def most(fits: Callable[[int], bool], refused: int) -> int:
    """Return the largest number below `refused` that fits, if all numbers below it do."""
    fitting = 0
    while refused - fitting > 1:
        middle = (fitting + refused) // 2
        if fits(middle):
            fitting = middle
        else:
            refused = middle
    return fitting


# The methods through a driver itself.


class Bare(Binding):
    """A connection of a driver."""

    def __init__(self, connection: Connection, *common: Any) -> None:
        """`common` is what every binding is made with."""
        super().__init__(*common)
        self._connection = connection
        self._create_sample = connection.writer(f"{INSERT_SAMPLE}(?)")
        self._create_result = connection.writer(f"{INSERT_RESULT}(?, ?, ?)")

    def run(self, statement: str, params: Row) -> list[Row]:
        return self._connection.rows(statement, params)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._connection.rows("BEGIN")
        try:
            yield
            self._connection.rows("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise

    def create_sample(self, path: str) -> object:
        return self._create_sample((path,))

    def create_result(self, a: int, b: int) -> object:
        return self._create_result((a, b, PENDING))

    def get_result(self, a: int, b: int) -> Row | None:
        return next(iter(self._connection.rows(GET_RESULT, (a, b))), None)

    def insert_samples(self, paths: Iterable[str]) -> object:
        params = tuple(paths)
        return self.run(f"{INSERT_SAMPLE}{', '.join(['(?)'] * len(params))}", params)

    def insert_results(self, wanted: Iterable[Pair]) -> object:
        rows = [(a, b, PENDING) for a, b in wanted]
        text = f"{INSERT_RESULT}{', '.join(['(?, ?, ?)'] * len(rows))}"
        return self.run(text, tuple(chain.from_iterable(rows)))

    def select(self, wanted: Sequence[Pair]) -> list[Any]:
        return self.run(FORMS[self.method.name](len(wanted)), tuple(chain.from_iterable(wanted)))

    def row(self, found: Any) -> Row:
        return tuple(found)
