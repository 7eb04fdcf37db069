"""Steps of methods, keys and cycles, which a worker runs in order, and the rows that their commits leave.

The worker and the check of the data compute the steps independently from the case.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.ordered import OrderedSource, OrderedStep
from sqlstress.engine.protocols import TIMEOUT, Chunk
from sqlstress.statistics.units import NS_PER_S, format_duration

if TYPE_CHECKING:
    from sqlstress.targets.views import Operation, WaitingConnections

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
    """Source of a worker's steps for the timed loop, in chunks, until the time limit."""

    def __init__(
        self,
        words: Any,
        worker: int,
        client: WaitingConnections | None,
        calls: Mapping[str, Operation],
        steps: Iterable[Step],
        timeout_s: float | None = None,
    ) -> None:
        """`calls` has the function of each kind of step. `timeout_s` is in seconds; None means no limit."""
        self.kinds = tuple(calls)
        super().__init__(words, worker, client, self._operations(calls, steps))
        self._timeout_s = timeout_s
        self._until_ns: float | None = None

    def params(self, step: Step) -> Any:
        """Return the argument of the step's function."""
        return step.rows

    def _operations(self, calls: Mapping[str, Operation], steps: Iterable[Step]) -> Iterator[OrderedStep]:
        for step in steps:
            rows = len(step.rows) + step.removed
            yield OrderedStep(self.kinds.index(step.kind), calls[step.kind], self.params(step), rows)

    def timeout_note(self) -> str:
        """Return the explanation of a time-out in the report."""
        return f"took longer than {format_duration(self._timeout_s or 0)}"

    def next_chunk(self, size: int) -> Chunk | None:
        if self._timeout_s is not None:
            now = time.perf_counter_ns()
            # The time limit starts with the first chunk.
            self._until_ns = self._until_ns or now + self._timeout_s * NS_PER_S
            if now >= self._until_ns:
                self.seen.outcome, self.seen.note = TIMEOUT, self.timeout_note()
                return None
        return super().next_chunk(size)
