"""The ledger: a row of ours in each transaction proves that what was acknowledged is there, and that once.

A worker counts its transactions from 1, writes the number in the transaction itself, and notes in shared
memory that it was told of the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlstress.system.sharing import shared_array
from sqlstress.target import serves

if TYPE_CHECKING:
    from sqlstress.experiments.sql.script.compiling import Database, Step
    from sqlstress.experiments.sql.script.expressions import Variables


TABLE = "sqlstress_ledger"
_DEFINITION = f"CREATE TABLE {TABLE} (worker INTEGER, number BIGINT, PRIMARY KEY (worker, number))"
INSERT = f"INSERT INTO {TABLE} VALUES ({{}}, :sqlstress_number)"
NUMBER = "sqlstress_number"
"""The variable that holds the number."""
SUMMED = f"SELECT worker, count(*), min(number), max(number) FROM {TABLE} GROUP BY worker"


def definition(driver: str) -> str:
    """Return the SQL that makes the ledger: where that can be, without a number of SQLite's for each row."""
    return _DEFINITION if serves(driver) else f"{_DEFINITION} WITHOUT ROWID"


def shared_words(workers: int) -> Any:
    """Return shared memory in which each worker notes how many of its commits it was told of."""
    return shared_array("q", workers)


class Ledger:
    """One worker's rows, each in the transaction that it stands for."""

    def __init__(self, database: Database, worker: int, acknowledged: memoryview) -> None:
        """`acknowledged` is the worker's word: how many of its commits it was told of."""
        self._insert = database.runs(INSERT.format(worker))
        self._acknowledged = acknowledged

    def committed(self, commit: Step) -> Step:
        """Return a commit that writes the row before it, and is noted when it is done."""
        insert, acknowledged = self._insert, self._acknowledged

        def step(variables: Variables) -> None:
            number = acknowledged[0] + 1
            insert({NUMBER: number})
            commit(variables)
            acknowledged[0] = number

        return step
