"""Worker of the experiment cycles. A cycle inserts rows, deletes all rows, and inserts rows again.

Each statement is a step of the timed loop, so that it has its own latency.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlstress.engine.protocols import Chunk, Findings, Stamps
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.experiments.classics.steps import BEGIN, CHECKPOINT, COMMIT, DELETE, Step, StepSource

if TYPE_CHECKING:
    from pathlib import Path

    from sqlstress.experiments.classics.spec import Cycling
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.sqlite.connections import SqliteClient
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.sqlite.walindex import OpenIndex, WalIndex
    from sqlstress.targets.views import Operation


DEFINITION = "CREATE TABLE t1 (id INTEGER PRIMARY KEY, value TEXT NOT NULL)"
"""SQL that creates the table.

It has no AUTOINCREMENT, with which each insert would also write a page of the table sqlite_sequence.
"""
INSERT = "insert"
SQL = {
    BEGIN: "BEGIN IMMEDIATE",
    INSERT: "INSERT INTO t1 (value) VALUES (?)",
    DELETE: "DELETE FROM t1",
    COMMIT: "COMMIT",
}
"""SQL of each kind of statement, without the checkpoint."""


def cycle_steps(cycling: Cycling, cycle: int, salt: int) -> Iterator[Step]:
    """Yield the statements of a cycle, by its number from 1. `salt` makes the values of rows unique."""
    prefix = f"salt {salt} cycle {cycle}"
    left_over = cycling.rows if cycle > 1 else 0
    in_transaction = cycling.transaction == "run"
    if in_transaction and cycle == 1:
        yield Step(BEGIN)
    for insertion in (1, 2):
        if insertion == 2:
            yield Step(DELETE, removed=cycling.rows + left_over)
        for row in range(1, cycling.rows + 1):
            yield Step(INSERT, ((f"{prefix} insertion {insertion} row {row}",),))
    if in_transaction and cycle == cycling.cycles:
        yield Step(COMMIT)


class CyclesSource(StepSource):
    """Source of the statements of all cycles.

    A chunk of steps ends with a cycle, because the state of the WAL is read between two cycles.
    """

    def __init__(
        self, case: Case, place: SqlitePlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        super().__init__(case, place, worker, salt, shared)
        has_wal = case.settings.journal_mode == "wal"
        self._wal_states = WalStates(place.paths[0]) if place.stores and has_wal else None
        self._sums: Counter[str] = Counter()
        """Sum of the times of the current cycle's statements, by kind of statement, in ns."""
        self._statements: list[int] = []
        self._bounds: list[int] = []

    @staticmethod
    def steps_of(case: Case, worker: int, salt: int) -> Iterator[Step]:
        for cycle in range(1, case.spec.cycles + 1):
            yield from cycle_steps(case.spec, cycle, salt)

    def groups(self) -> Iterator[Iterable[Step]]:
        """Yield the statements of each cycle, and at last the closing checkpoint."""
        for cycle in range(1, self.case.spec.cycles + 1):
            yield cycle_steps(self.case.spec, cycle, self.salt)
            self._statements.append(self._sums[INSERT] + self._sums[DELETE])
            self._bounds.append(self._sums[BEGIN] + self._sums[COMMIT])
            self._sums.clear()
            if self._wal_states:
                self._wal_states.read()
        if self._wal_states:
            yield [Step(CHECKPOINT)]

    def calls(self, client: SqliteClient | None) -> dict[str, Operation]:
        if client is None:
            return dict.fromkeys((*SQL, CHECKPOINT), lambda _: None)
        connection = client.connect(0)

        def checkpoint(_: object) -> None:
            # Closing the connection would also run a checkpoint, but would hide that a lock prevented the
            # checkpoint. So it is run explicitly.
            ((busy, *_),) = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
            if busy:
                raise EnvironmentFailure(
                    "the final checkpoint timed out waiting for a lock. Close other programs that read the "
                    "database."
                )

        return {**{kind: connection.writer(sql) for kind, sql in SQL.items()}, CHECKPOINT: checkpoint}

    def params(self, step: Step) -> Any:
        return step.rows[0] if step.rows else ()

    def timeout_note(self) -> str:
        return f"{len(self._statements)} of {self.case.spec.cycles} cycles were done"

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        super().settle(chunk, done, results, stamps)
        for kind, begin, end in zip(chunk.kinds[:done], *stamps, strict=True):
            self._sums[self.kinds[kind]] += end - begin

    def findings(self) -> Findings:
        figures = ((STATEMENTS, self._statements), (BEGIN_AND_COMMIT, self._bounds))
        self.seen.series = [(name, "ns", values) for name, values in figures if any(values)]
        if self._wal_states:
            self.seen.series += self._wal_states.series()
        return super().findings()

    def close(self) -> None:
        if self._wal_states and os.name == "nt":
            self._wal_states.close()
        super().close()
        if self._wal_states:
            self._wal_states.close()


# The state of the WAL at the end of each cycle.


class WalStates:
    """States of the WAL after each cycle, from the wal-index (-shm), until it cannot be opened or read."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._index: OpenIndex | None = None
        self._states: list[WalIndex] = []
        self._failed = False

    def read(self) -> None:
        """Read and store the state of the WAL at the end of a cycle."""
        # Imported only when needed, because an import delays the start of a worker.
        from sqlstress.targets.sqlite.walindex import OpenIndex

        state = None
        with suppress(OSError, ValueError):
            self._index = self._index or OpenIndex(self._database)
            state = self._index.read()
        self._failed |= state is None
        if state and not self._failed:
            self._states.append(state)

    def series(self) -> list[tuple[str, str, list[int]]]:
        """Return the WAL's series as (name, unit, value of each cycle); empty without values."""
        return wal_series(self._states) if self._states else []

    def close(self) -> None:
        """Close the wal-index. Call this before the connections close on Windows, and afterwards elsewhere.

        On Windows, SQLite cannot delete an open file. On POSIX, closing the file drops this process's locks.
        """
        if self._index:
            self._index.close()


def wal_series(states: Sequence[WalIndex]) -> list[tuple[str, str, list[int]]]:
    """Return the series of these states, one per cycle, as (name, unit, value of each cycle).

    A new WAL salt (random number in the WAL's header) means that a writer restarted the WAL at its beginning.
    It is not the salt of a trial.
    """
    from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS

    salt, restarts = None, [0]
    for state in states:
        is_restarted = state.frames > 0 and salt not in (None, state.salt)
        restarts.append(restarts[-1] + is_restarted)
        salt = state.salt if state.frames else salt  # A WAL without frames still has its former salt.
    return [
        (WAL_FRAMES, "frames", [state.frames for state in states]),
        (CHECKPOINTED_FRAMES, "frames", [state.checkpointed for state in states]),
        (WAL_RESTARTS, "restarts", restarts[1:]),
    ]
