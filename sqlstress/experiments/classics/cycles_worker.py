"""Worker of the experiment cycles. A cycle inserts rows, deletes all rows, and inserts rows again.

Each statement is a step of the timed loop, so that each statement has its own latency.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.ordered import OrderedSource, OrderedStep
from sqlstress.engine.protocols import TIMEOUT, Chunk, Findings, Stamps
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.statistics.units import NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

    from sqlstress.experiments.classics.spec import Cycling
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.sqlite.connections import SqliteClient
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.sqlite.walindex import OpenIndex, WalIndex
    from sqlstress.targets.views import Operation


# The statements, and the rows of the table after each of them.


KINDS = ("begin", "insert", "delete", "commit", "checkpoint")
BEGIN, INSERT, DELETE, COMMIT, CHECKPOINT = range(len(KINDS))
SQL = ("BEGIN IMMEDIATE", "INSERT INTO t1 (value) VALUES (?)", "DELETE FROM t1", "COMMIT")
"""SQL of each kind of step, in the order of KINDS, without the checkpoint."""


class Move(NamedTuple):
    """Statement of a cycle."""

    kind: int
    """Index into KINDS."""
    value: str = ""
    """Value of the row that an INSERT writes; empty for other statements."""


DEFINITION = "CREATE TABLE t1 (id INTEGER PRIMARY KEY, value TEXT NOT NULL)"
"""SQL that creates the table. AUTOINCREMENT would make each insert write a second page."""


def moves_of(cycling: Cycling, cycle: int, salt: int) -> Iterator[Move]:
    """Yield the statements of a cycle. Cycles are numbered from 1.

    `salt` is a number that differs between trials. It is part of each row's value, so that values are unique.
    """
    prefix = f"salt {salt} cycle {cycle}"
    if cycling.transaction == "cycle" or (cycling.transaction == "run" and cycle == 1):
        yield Move(BEGIN)
    for insertion in (1, 2):
        if insertion == 2:
            yield Move(DELETE)
        for row in range(1, cycling.rows + 1):
            yield Move(INSERT, f"{prefix} insertion {insertion} row {row}")
    if cycling.transaction == "cycle" or (cycling.transaction == "run" and cycle == cycling.cycles):
        yield Move(COMMIT)


def committed(cycling: Cycling, salt: int, done: int) -> list[str]:
    """Return the committed values in the table after `done` statements, in the order of insertion."""
    cycles = range(1, cycling.cycles + 1)
    moves = (move for cycle in cycles for move in moves_of(cycling, cycle, salt))
    rows: list[str] = []
    durable: list[str] = []
    for kind, value in islice(moves, done):
        if kind == INSERT:
            rows.append(value)
        elif kind == DELETE:
            rows.clear()
        elif kind == COMMIT:
            durable = rows.copy()
    return rows if cycling.transaction == "none" else durable


# The steps of a worker.


class CyclesSource(OrderedSource):
    """Source of the steps of all cycles. It ends early at the time limit.

    The timed loop takes steps in chunks. A chunk ends at the end of a cycle, because the state of the WAL is
    read between two cycles.
    """

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
        (words,) = shared
        client = place.client(worker) if place.stores else None
        super().__init__(words, worker, client, iter(()))
        self._cycling, self._salt, self._clock = case.spec, salt, clock
        self._calls = calls_of(client) if client else [lambda _: None] * len(KINDS)
        has_wal = case.settings.journal_mode == "wal"
        self._looks = Looks(place.paths[0]) if place.stores and has_wal else None
        self._sums = [0] * len(KINDS)
        """Time of the current cycle by kind of step, in ns."""
        self._statements: list[int] = []
        self._bounds: list[int] = []
        self._parts = self._part_by_part()
        self._until_ns: float | None = None

    def _part_by_part(self) -> Iterator[Iterator[OrderedStep]]:
        """Yield the steps of each cycle, then the closing checkpoint. Run the steps before the next item."""
        for cycle in range(1, self._cycling.cycles + 1):
            yield self._steps_of(cycle)
            self._statements.append(self._sums[INSERT] + self._sums[DELETE])
            self._bounds.append(self._sums[BEGIN] + self._sums[COMMIT])
            self._sums = [0] * len(KINDS)
            if self._looks:
                self._looks.take()
        if self._looks:
            yield iter((OrderedStep(CHECKPOINT, self._calls[CHECKPOINT], (), 0),))

    def _steps_of(self, cycle: int) -> Iterator[OrderedStep]:
        left_over = self._cycling.rows if cycle > 1 else 0
        rows = {INSERT: 1, DELETE: self._cycling.rows + left_over}
        for kind, value in moves_of(self._cycling, cycle, self._salt):
            yield OrderedStep(kind, self._calls[kind], (value,) if kind == INSERT else (), rows.get(kind, 0))

    def next_chunk(self, size: int) -> Chunk | None:
        if self._cycling.timeout_s is not None:
            now = self._clock()
            # The time limit starts with the first chunk.
            self._until_ns = self._until_ns or now + self._cycling.timeout_s * NS_PER_S
            if now >= self._until_ns:
                self.seen.outcome = TIMEOUT
                self.seen.note = f"{len(self._statements)} of {self._cycling.cycles} cycles were done"
                return None
        chunk = super().next_chunk(size)
        while chunk is None and (part := next(self._parts, None)):
            self._steps = part
            chunk = super().next_chunk(size)
        return chunk

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        super().settle(chunk, done, results, stamps)
        for kind, begin, end in zip(chunk.kinds[:done], *stamps, strict=True):
            self._sums[kind] += end - begin

    def findings(self) -> Findings:
        figures = ((STATEMENTS, self._statements), (BEGIN_AND_COMMIT, self._bounds))
        self.seen.series = [(name, "ns", values) for name, values in figures if any(values)]
        if self._looks:
            self.seen.series += self._looks.series()
        return super().findings()

    def close(self) -> None:
        if self._looks and os.name == "nt":
            self._looks.close()
        super().close()
        if self._looks:
            self._looks.close()


def calls_of(client: SqliteClient) -> list[Operation]:
    """Return a function for each kind of step, in the order of KINDS. The function runs the statement."""
    connection = client.connect(0)
    calls: list[Operation] = [connection.writer(sql) for sql in SQL]

    def checkpoint(_: object) -> None:
        # Closing the connection would also run a checkpoint, but would not report a lock that prevented it.
        ((busy, *_),) = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            raise EnvironmentFailure(
                "the final checkpoint timed out waiting for a lock. Close other programs that read the "
                "database."
            )

    return [*calls, checkpoint]


# The state of the WAL at the end of each cycle.


class Looks:
    """States of the WAL after each cycle, read from the wal-index (-shm). Reading ends if it fails once."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._index: OpenIndex | None = None
        self._states: list[tuple[int, int, int]] = []
        """Number of frames, of checkpointed frames, and of restarts of the WAL, after each cycle."""
        self._salt: int | None = None
        self._is_over = False

    def take(self) -> None:
        """Read and store the state of the WAL. Call it at the end of each cycle."""
        # Imported only when needed, because an import delays the start of a worker.
        from sqlstress.targets.sqlite.walindex import OpenIndex

        if self._is_over:
            return
        try:
            self._index = self._index or OpenIndex(self._database)
            seen = self._index.read()
        except (OSError, ValueError):
            seen = None
        if seen:
            self.note(seen)
        self._is_over = seen is None

    def note(self, seen: WalIndex) -> None:
        """Store a state. A new salt (a random number in the WAL's header) means that the WAL restarted."""
        restarts = self._states[-1][2] if self._states else 0
        if seen.frames:  # A WAL without frames still has the salt of its last frames.
            restarts += self._salt not in (None, seen.salt)
            self._salt = seen.salt
        self._states.append((seen.frames, seen.checkpointed, restarts))

    def series(self) -> list[tuple[str, str, list[int]]]:
        """Return each series of states as (name, unit, values per cycle); empty without states."""
        from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS

        figures = ((WAL_FRAMES, "frames"), (CHECKPOINTED_FRAMES, "frames"), (WAL_RESTARTS, "restarts"))
        values = zip(*self._states, strict=True)
        return [(name, unit, [*of_figure]) for (name, unit), of_figure in zip(figures, values, strict=False)]

    def close(self) -> None:
        """Close the wal-index: on Windows before the connections, else after (see `OpenIndex.close`)."""
        if self._index:
            self._index.close()
