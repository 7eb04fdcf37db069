"""A worker's steps: its moves as calls of its connection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sqlstress.engine.ordered import Step
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.cycles.moves import CHECKPOINT, DELETE, INSERT, KINDS, moves_of, table
from sqlstress.targets import DRY, Operation
from sqlstress.targets.sqlite.connecting import connect, waits_outside
from sqlstress.targets.sqlite.drivers import Waiting, load_driver
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.partition import file_names

if TYPE_CHECKING:
    from sqlstress.report.case import Case


class Steps:
    """Makes the steps of one worker, who has a connection and a table of its own."""

    def __init__(self, case: Case, folder: Path, worker: int, salt: int, waiting: Waiting) -> None:
        self._case, self._worker, self._salt = case, worker, salt
        self._cycling = case.spec
        if case.driver == DRY:
            self._connection = None
            self._calls: list[Operation] = [_nothing] * len(KINDS)
        else:
            self._connection = connect(case, folder / file_names(case.buckets)[0], waiting)
            self._calls = self._prepared(waiting)

    def _prepared(self, waiting: Waiting) -> list[Operation]:
        """Return the call of each kind of step. It waits for its turn where it begins to write."""
        assert self._connection
        name = table(self._worker)
        calls: list[Operation] = [
            self._connection.writer(sql)
            for sql in (
                "BEGIN IMMEDIATE",
                f"INSERT INTO {name} (value) VALUES (?)",
                f"DELETE FROM {name}",
                "COMMIT",
            )
        ]
        if waits_outside(self._case):
            result_code = load_driver(self._case.driver).result_code
            # Nothing is to be undone: a statement that was BUSY did nothing, and a COMMIT can be tried again.
            calls = [waiting.retried(call, result_code, lambda: None) for call in calls]
        return [*calls, self._checkpoint]

    def _checkpoint(self, _params: object) -> None:
        # Closing the connection would do it too, but nobody could see that it was kept from its end.
        assert self._connection
        ((busy, *_),) = self._connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            raise EnvironmentFailure(
                "the closing checkpoint met a lock that stayed taken: end what else reads the database."
            )

    def of_cycle(self, cycle: int) -> Iterator[Step]:
        """Yield the steps of a cycle, counted from 1."""
        left_over = self._cycling.rows if cycle > 1 else 0
        rows = {INSERT: 1, DELETE: self._cycling.rows + left_over}
        for kind, value in moves_of(self._cycling, cycle, self._worker, self._salt):
            yield Step(kind, self._calls[kind], (value,) if kind == INSERT else (), rows.get(kind, 0))

    def closing(self) -> Iterator[Step]:
        """Yield the step after the last cycle."""
        yield Step(CHECKPOINT, self._calls[CHECKPOINT], (), 0)

    def effective(self) -> dict[str, str]:
        """Return the settings as SQLite answers them."""
        return pragmas.read_back(self._connection, self._case.settings) if self._connection else {}

    def close(self) -> None:
        """Close the connection; a transaction that is open is undone."""
        if self._connection:
            self._connection.close()


def _nothing(params: object) -> None:
    """Stand for a call of the dry driver."""
