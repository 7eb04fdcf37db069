"""The methods through a driver itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from sqlstress.experiments.methods import sql
from sqlstress.experiments.methods.binding import Binding
from sqlstress.experiments.methods.tables import PENDING, Pair
from sqlstress.targets.sqlite.drivers import Connection, Row


class Bare(Binding):
    """A connection of a driver."""

    def __init__(self, connection: Connection, *common: Any) -> None:
        """`common` is what every binding is made with."""
        super().__init__(*common)
        self._connection = connection
        self._create_sample = connection.writer(f"{sql.INSERT_SAMPLE}(?)")
        self._create_result = connection.writer(f"{sql.INSERT_RESULT}(?, ?, ?)")

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
        return next(iter(self._connection.rows(sql.GET_RESULT, (a, b))), None)

    def insert_samples(self, paths: Iterable[str]) -> object:
        params = tuple(paths)
        return self.run(f"{sql.INSERT_SAMPLE}{', '.join(['(?)'] * len(params))}", params)

    def insert_results(self, wanted: Iterable[Pair]) -> object:
        rows = [(a, b, PENDING) for a, b in wanted]
        text = f"{sql.INSERT_RESULT}{', '.join(['(?, ?, ?)'] * len(rows))}"
        return self.run(text, tuple(chain.from_iterable(rows)))

    def select(self, wanted: Sequence[Pair]) -> list[Any]:
        return self.run(sql.FORMS[self.method.name](len(wanted)), tuple(chain.from_iterable(wanted)))

    def row(self, found: Any) -> Row:
        return tuple(found)
