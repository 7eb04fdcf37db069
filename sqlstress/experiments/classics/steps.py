"""Steps of methods, keys and cycles, which a worker runs in order, and the rows that their commits leave.

The worker and the check of the data compute the steps independently from the case.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.ordered import OrderedSource, OrderedStep
from sqlstress.engine.protocols import TIMEOUT, Chunk
from sqlstress.statistics.units import NS_PER_S, format_duration

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.sqlite.connections import SqliteClient
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.views import Operation

BEGIN, DELETE, QUERY, COMMIT, CHECKPOINT = "begin", "delete", "query", "commit", "checkpoint"
"""Kinds of steps that insert no rows; other kinds insert the rows of the step."""


class Step(NamedTuple):
    """Operation of a worker; without an open transaction, a transaction by itself."""

    kind: str
    rows: Sequence[Any] = ()
    """Rows to insert, or keys of the rows to query."""
    removed: int = 0
    """Number of rows that a DELETE removes."""


def committed(steps: Iterable[Step]) -> list[Any]:
    """Return the rows that a table has after the last commit of these steps, in order of insertion.

    The table is empty before the steps.
    """
    rows: list[Any] = []
    before: list[Any] | None = None  # Rows before the open transaction.
    for kind, inserted, _ in steps:
        if kind == BEGIN:
            before = rows.copy()
        elif kind == COMMIT:
            before = None
        elif kind == DELETE:
            rows.clear()
        elif kind != QUERY:
            rows += inserted
    return rows if before is None else before


def possible_tables(steps: Iterable[Step], done: int, died: bool) -> list[list[Any]]:
    """Return the lists of rows that a worker may have left, after `done` acknowledged steps.

    There are two if the worker died, because it may have done one more step.
    """
    remaining = iter(steps)
    acknowledged = [*islice(remaining, done)]
    tables = [committed(acknowledged)]
    if died:
        tables.append(committed([*acknowledged, *islice(remaining, 1)]))
    return tables


class StepSource(OrderedSource):
    """Source of a worker's steps for the timed loop, until the time limit of the case, if it has one."""

    def __init__(
        self, case: Case, place: SqlitePlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        self.case, self.worker, self.salt = case, worker, salt
        client = place.client(worker) if place.stores else None
        self._calls = self.calls(client)
        self.kinds = tuple(self._calls)
        super().__init__(shared[0], worker, client, iter(()))
        self._groups = self.groups()
        self._until_ns: float | None = None

    @staticmethod
    def steps_of(case: Case, worker: int, salt: int) -> Iterator[Step]:
        """Yield the steps of a worker, by its number from 1. `salt` differs between trials."""
        raise NotImplementedError

    def calls(self, client: SqliteClient | None) -> dict[str, Operation]:
        """Return the function that runs a step, by kind. `client` is None with the driver `dry`."""
        raise NotImplementedError

    def params(self, step: Step) -> Any:
        """Return the argument of the step's function."""
        return step.rows

    def groups(self) -> Iterator[Iterable[Step]]:
        """Yield the steps in groups. The next group is taken when all steps of the last are done."""
        yield self.steps_of(self.case, self.worker, self.salt)

    def timeout_note(self) -> str:
        """Return the explanation of a time-out in the report."""
        return f"took longer than {format_duration(self.case.spec.timeout_s)}"

    def next_chunk(self, size: int) -> Chunk | None:
        timeout_s = getattr(self.case.spec, "timeout_s", None)
        if timeout_s is not None:
            now = time.perf_counter_ns()
            # The time limit starts with the first chunk.
            self._until_ns = self._until_ns or now + timeout_s * NS_PER_S
            if now >= self._until_ns:
                self.seen.outcome, self.seen.note = TIMEOUT, self.timeout_note()
                return None
        chunk = super().next_chunk(size)
        if chunk is None and (group := next(self._groups, None)) is not None:
            self._steps = map(self._operation, group)
            chunk = super().next_chunk(size)
        return chunk

    def _operation(self, step: Step) -> OrderedStep:
        rows = len(step.rows) + step.removed
        return OrderedStep(self.kinds.index(step.kind), self._calls[step.kind], self.params(step), rows)
