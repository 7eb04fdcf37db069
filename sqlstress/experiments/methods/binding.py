"""The methods, each as one function; what a binding must offer for them, and what it refuses."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from sqlstress.experiments.methods import sql
from sqlstress.experiments.methods.course import Course
from sqlstress.experiments.methods.tables import PATH, PENDING, Own, Pair, pairs
from sqlstress.targets.sqlite.drivers import Row

if TYPE_CHECKING:
    from sqlstress.experiments.methods.spec import Method


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
        self.run(sql.insert_json(self._arrow), (json.dumps(rows),))

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
        self.run(sql.allocate_json(self._arrow), (json.dumps(rows),))

    def _allocate_inside(self) -> None:
        self.run(sql.ALLOCATE_SPC, (self.own.ids.start, self.own.ids.stop - 1))

    def _query_one_by_one(self) -> list[Any]:
        return [self.get_result(a, b) for a, b in self.course.each(self.own.pairs)]

    def _query_in_bulk(self) -> list[Any]:
        self._check_variables(2 * len(self.own.pairs))
        return self.select(self.own.pairs)

    def _query_by_json(self) -> list[Row]:
        wanted = [{"a": a, "b": b} for a, b in self.own.pairs]
        return self.run(sql.query_json(self._arrow), (json.dumps(wanted),))

    def _query_by_sets(self) -> list[Row]:
        first, second = self.own.sets
        return self.run(sql.QUERY_SPC, (json.dumps(first), json.dumps(second)))

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
