"""A worker's half of the experiment with cycles: every statement is a step, timed apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqlstress.engine.ordered import OrderedSource, Step
from sqlstress.engine.protocols import TIMEOUT, Chunk, Findings, Stamps
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.cycles.looks import Asking, is_watched
from sqlstress.experiments.cycles.moves import (
    BEGIN,
    BEGIN_AND_COMMIT,
    CHECKPOINT,
    COMMIT,
    DELETE,
    INSERT,
    KINDS,
    STATEMENTS,
    moves_of,
    table,
)
from sqlstress.statistics.units import NS_PER_S

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.dry.store import DryPlace
    from sqlstress.targets.sqlite.connections import Client
    from sqlstress.targets.sqlite.drivers import Connection
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.views import Operation


class CyclesSource(OrderedSource):
    """Does its cycles, until its time is up. No chunk reaches beyond the end of a cycle."""

    kinds = KINDS

    def __init__(
        self,
        case: Case,
        place: SqlitePlace | DryPlace,
        worker: int,
        salt: int,
        shared: tuple[Any, ...],
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        words, looks = shared
        self._client = place.client(worker) if place.stores else None
        super().__init__(words, worker, self._client, iter(()))
        self._clock = clock
        assert case.spec
        self._cycling = case.spec
        self._made = Steps(case, worker, salt, self._client)
        self._asking = Asking(looks, worker) if is_watched(place) else None
        self._times = CycleTimes()
        self._stretches = self._stretch_by_stretch()
        self._until_ns: float | None = None

    def _stretch_by_stretch(self) -> Iterator[Iterator[Step]]:
        """Yield the steps of each cycle, then the closing one; the next is asked for when those were done."""
        for cycle in range(1, self._cycling.cycles + 1):
            yield self._made.of_cycle(cycle)
            self._times.end_cycle()
            if self._asking:
                self._asking.wait(cycle)
        if self._asking and self._asking.is_last():
            yield self._made.closing()

    def next_chunk(self, size: int) -> Chunk | None:
        if self._is_late():
            self.seen.outcome = TIMEOUT
            self.seen.note = f"{self._times.cycles} of {self._cycling.cycles} cycles were done"
            return None
        chunk = super().next_chunk(size)
        while chunk is None and (stretch := next(self._stretches, None)):
            self._steps = stretch
            chunk = super().next_chunk(size)
        return chunk

    def _is_late(self) -> bool:
        """Return whether the time is up, which begins when this is first asked."""
        if self._cycling.timeout_s is None:
            return False
        now = self._clock()
        self._until_ns = self._until_ns or now + self._cycling.timeout_s * NS_PER_S
        return now >= self._until_ns

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        super().settle(chunk, done, results, stamps)
        self._times.add(chunk.kinds[:done], stamps)

    def findings(self) -> Findings:
        self.seen.effective = self._client.effective() if self._client else {}
        self.seen.series = self._times.series()
        return self.seen

    def close(self) -> None:
        if self._client:
            self._client.close()


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


class CycleTimes:
    """Adds up the steps of a cycle until it ends."""

    def __init__(self) -> None:
        self._statements: list[int] = []
        self._bounds: list[int] = []
        self._sums = dict.fromkeys(range(256), 0)

    def add(self, kinds: Sequence[int], stamps: Stamps) -> None:
        """Count steps that were done."""
        for kind, begin, end in zip(kinds, *stamps, strict=True):
            self._sums[kind] += end - begin

    def end_cycle(self) -> None:
        """Say that the steps so far were a cycle."""
        self._statements.append(self._sums[INSERT] + self._sums[DELETE])
        self._bounds.append(self._sums[BEGIN] + self._sums[COMMIT])
        self._sums = dict.fromkeys(range(256), 0)

    @property
    def cycles(self) -> int:
        """The cycles that have ended."""
        return len(self._statements)

    def series(self) -> list[tuple[str, str, list[int]]]:
        """Return name, unit and values, one a cycle; BEGIN and COMMIT only where there are any of ours."""
        figures = ((STATEMENTS, self._statements), (BEGIN_AND_COMMIT, self._bounds))
        return [(name, "ns", values) for name, values in figures if any(values)]
