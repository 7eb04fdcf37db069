"""Methods of writing and querying rows with Peewee, an object-relational mapper, as its users write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar

import peewee

from sqlstress.experiments.classics.methods_worker import Binding, Pair
from sqlstress.targets.sqlite.drivers import Row

if TYPE_CHECKING:
    from sqlstress.report.case import Case


class Sample(peewee.Model):
    """Sample: a file with a unique path."""

    id = peewee.AutoField()
    path = peewee.TextField(unique=True)

    class Meta:
        table_name = "sample"


class Result(peewee.Model):
    """Result: a value for a pair of samples; -1 means that the value is not computed yet."""

    a = peewee.ForeignKeyField(Sample)
    b = peewee.ForeignKeyField(Sample)
    val = peewee.FloatField(default=-1)
    a_id: int  # Peewee adds a_id and b_id: the stored ids, where a and b are Sample objects.
    b_id: int

    class Meta:
        table_name = "result"
        primary_key = peewee.CompositeKey("a", "b")
        constraints: ClassVar = [peewee.Check("a_id < b_id")]


MODELS = (Sample, Result)


class Orm(Binding):
    """Functions that write and query rows through Peewee's models."""

    def __init__(self, connection: Any, case: Case) -> None:
        super().__init__(connection, case)
        self._database: peewee.SqliteDatabase = connection.database
        self._database.bind(MODELS)
        self._model: Any = Sample if self.method.phase == "insert" else Result

    def run(self, statement: str, params: Row) -> list[Row]:
        cursor = self._database.execute_sql(statement, params)  # type: ignore[no-untyped-call]
        return list(cursor.fetchall())

    def creation(self) -> Callable[[Row], object]:
        return lambda row: self._model.create(**self.record(row))

    def create_all(self, rows: Sequence[Row]) -> object:
        return self._model.insert_many(map(self.record, rows)).execute()

    def get(self, pair: Pair) -> Result | None:
        a, b = pair
        return Result.get_or_none((Result.a == a) & (Result.b == b))

    def select(self, wanted: Sequence[Pair]) -> list[Any]:
        return list(FORMS[self.method.name](wanted))

    def row(self, found: Any) -> Row:
        return (found.a_id, found.b_id, found.val) if isinstance(found, Result) else tuple(found)


def nested(wanted: Sequence[Pair]) -> Any:
    """Return the query of the method BLK: a condition for each pair, joined by OR."""
    conditions = [(Result.a == a) & (Result.b == b) for a, b in wanted]
    return Result.select().where(reduce(or_, conditions))


def values_join(wanted: Sequence[Pair]) -> Any:
    """Return the query of the method VALUES, which joins the pairs as a table."""
    given = peewee.ValuesList(wanted, alias="p")
    same = (Result.a == given.c.column1) & (Result.b == given.c.column2)
    return Result.select().join(given, on=same)


FORMS: dict[str, Callable[[Sequence[Pair]], Any]] = {"BLK": nested, "VALUES": values_join}
"""Functions that return the query for a list of pairs, by name of the method."""
