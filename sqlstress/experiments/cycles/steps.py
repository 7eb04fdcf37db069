"""A worker's steps: its moves as calls of its connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlstress.engine.ordered import Step
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.cycles.moves import CHECKPOINT, DELETE, INSERT, KINDS, moves_of, table

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.keyvalue import Operation
    from sqlstress.targets.sqlite.client import Client
    from sqlstress.targets.sqlite.drivers import Connection


class Steps:
    """Makes the steps of one worker, who has a connection and a table of its own."""

    def __init__(self, case: Case, worker: int, salt: int, client: Client | None) -> None:
        """Without a client the steps do nothing."""
        self._worker, self._salt = worker, salt
        self._cycling = case.spec
        self._calls = _prepared(client, table(worker)) if client else [_nothing] * len(KINDS)

    def of_cycle(self, cycle: int) -> Iterator[Step]:
        """Yield the steps of a cycle, counted from 1."""
        left_over = self._cycling.rows if cycle > 1 else 0
        rows = {INSERT: 1, DELETE: self._cycling.rows + left_over}
        for kind, value in moves_of(self._cycling, cycle, self._worker, self._salt):
            yield Step(kind, self._calls[kind], (value,) if kind == INSERT else (), rows.get(kind, 0))

    def closing(self) -> Iterator[Step]:
        """Yield the step after the last cycle."""
        yield Step(CHECKPOINT, self._calls[CHECKPOINT], (), 0)


def _prepared(client: Client, name: str) -> list[Operation]:
    """Return the call of each kind of step. It waits for its turn where it begins to write."""
    connection = client.connect(0)
    calls: list[Operation] = [
        connection.writer(sql)
        for sql in (
            "BEGIN IMMEDIATE",
            f"INSERT INTO {name} (value) VALUES (?)",
            f"DELETE FROM {name}",
            "COMMIT",
        )
    ]
    if client.waits_outside:
        # Nothing is to be undone: a statement that was BUSY did nothing, and a COMMIT can be tried again.
        calls = [client.retried(call, lambda: None) for call in calls]
    return [*calls, lambda _: _checkpoint(connection)]


def _checkpoint(connection: Connection) -> None:
    # Closing the connection would do it too, but nobody could see that it was kept from its end.
    ((busy, *_),) = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    if busy:
        raise EnvironmentFailure(
            "the closing checkpoint met a lock that stayed taken: end what else reads the database."
        )


def _nothing(params: object) -> None:
    """Stand for a call where nothing is stored."""
