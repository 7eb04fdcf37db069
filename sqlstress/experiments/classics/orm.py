"""Ways to write and query rows with Peewee, an object-relational mapper: row by row or in bulk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar

import peewee

from sqlstress.experiments.classics.worker import QUERY, Pair, record, sql_operations
from sqlstress.targets.sqlite.drivers import Row

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.views import Operation


class Sample(peewee.Model):
    """Row of the table sample: a file of a dataset, with a unique path."""

    id = peewee.AutoField()
    path = peewee.TextField(unique=True)

    class Meta:
        table_name = "sample"


class Result(peewee.Model):
    """Row of the table result: a number for a pair of samples (files). It is -1 before it is computed."""

    a = peewee.ForeignKeyField(Sample)
    b = peewee.ForeignKeyField(Sample)
    val = peewee.FloatField(default=-1)
    a_id: int  # Peewee adds a_id and b_id, the ids of the samples. a and b are Sample objects.
    b_id: int

    class Meta:
        table_name = "result"
        primary_key = peewee.CompositeKey("a", "b")
        constraints: ClassVar = [peewee.Check("a_id < b_id")]


MODELS = (Sample, Result)


def orm_operations(case: Case, connection: Any) -> dict[str, Operation]:
    """Return functions that write or query rows, by method, such as "1b1" (one row per statement)."""
    phase, database = case.spec.phase, connection.database
    database.bind(MODELS)
    model: Any = Sample if phase == "insert" else Result

    def run(statement: str, params: Row) -> list[Row]:
        return list(database.execute_sql(statement, params).fetchall())

    def create(rows: Sequence[Row]) -> None:
        for row in rows:
            model.create(**record(phase, row))

    def insert_many(rows: Sequence[Row]) -> object:
        return model.insert_many([record(phase, row) for row in rows]).execute()

    def get(pairs: Sequence[Pair]) -> list[Result]:
        found = (Result.get_or_none((Result.a == a) & (Result.b == b)) for a, b in pairs)
        return [result for result in found if result]

    inserts = {"1b1": create, "BLK": insert_many, "BLK/n": insert_many}
    queries = {"1b1": get, "BLK": lambda pairs: list(nested(pairs))}
    return sql_operations(case, connection, run) | (queries if phase == QUERY else inserts)


def nested(wanted: Sequence[Pair]) -> Any:
    """Return one query for all pairs of sample ids: (a = 1 AND b = 2) OR (a = 1 AND b = 3) OR ..."""
    conditions = [(Result.a == a) & (Result.b == b) for a, b in wanted]
    return Result.select().where(reduce(or_, conditions))
