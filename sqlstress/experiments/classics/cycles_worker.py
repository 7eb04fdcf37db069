"""A worker's half of the experiment with cycles: every statement is a step, timed apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.ordered import OrderedSource, Step
from sqlstress.engine.protocols import TIMEOUT, Chunk, Findings, Stamps
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.statistics.units import NS_PER_S
from sqlstress.system.sharing import shared_array

if TYPE_CHECKING:
    from sqlstress.experiments.classics.cycles import Cycling
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.place import Place
    from sqlstress.targets.sqlite.connections import Client
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.views import Operation


# What a worker does to its table, move by move, and what the table holds after so many of them.


KINDS = ("begin", "insert", "delete", "commit", "checkpoint")
BEGIN, INSERT, DELETE, COMMIT, CHECKPOINT = range(len(KINDS))


class Move(NamedTuple):
    """One statement."""

    kind: int
    """Index into KINDS."""
    value: str = ""
    """What an INSERT writes."""


def table(worker: int) -> str:
    """Return the name of a worker's own table."""
    return f"t{worker}"


def definition(worker: int) -> str:
    """Return what creates a worker's table: without AUTOINCREMENT, so an insert writes one page."""
    return f"CREATE TABLE {table(worker)} (id INTEGER PRIMARY KEY, value TEXT NOT NULL)"


def moves_of(cycling: Cycling, cycle: int, worker: int, salt: int) -> Iterator[Move]:
    """Yield the moves of one cycle (from 1), BEGIN and COMMIT where they fall; no two rows have one value."""
    who = f"salt {salt} worker {worker} cycle {cycle}"
    if cycling.transaction == "cycle" or (cycling.transaction == "run" and cycle == 1):
        yield Move(BEGIN)
    for insertion in (1, 2):
        if insertion == 2:
            yield Move(DELETE)
        for row in range(1, cycling.rows + 1):
            yield Move(INSERT, f"{who} insertion {insertion} row {row}")
    if cycling.transaction == "cycle" or (cycling.transaction == "run" and cycle == cycling.cycles):
        yield Move(COMMIT)


def committed(cycling: Cycling, worker: int, salt: int, done: int) -> list[str]:
    """Return the values that a worker's table must hold after its first `done` moves, in their order."""
    cycles = range(1, cycling.cycles + 1)
    moves = (move for cycle in cycles for move in moves_of(cycling, cycle, worker, salt))
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


# The steps of its cycles.


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
        client = place.client(worker) if place.stores else None
        super().__init__(words, worker, client, iter(()))
        self._cycling, self._worker, self._salt, self._clock = case.spec, worker, salt, clock
        self._calls = calls_of(client, table(worker)) if client else [lambda _: None] * len(KINDS)
        self._asking = Asking(looks, worker) if is_watched(place) else None
        self._sums = [0] * len(KINDS)
        """ns in the steps of each kind, of this cycle."""
        self._statements: list[int] = []
        self._bounds: list[int] = []
        self._stretches = self._stretch_by_stretch()
        self._until_ns: float | None = None

    def _stretch_by_stretch(self) -> Iterator[Iterator[Step]]:
        """Yield the steps of each cycle, then the closing one; the next is asked for when those were done."""
        for cycle in range(1, self._cycling.cycles + 1):
            yield self._steps_of(cycle)
            self._statements.append(self._sums[INSERT] + self._sums[DELETE])
            self._bounds.append(self._sums[BEGIN] + self._sums[COMMIT])
            self._sums = [0] * len(KINDS)
            if self._asking:
                self._asking.wait(cycle)
        if self._asking and self._asking.is_last():
            yield iter((Step(CHECKPOINT, self._calls[CHECKPOINT], (), 0),))

    def _steps_of(self, cycle: int) -> Iterator[Step]:
        left_over = self._cycling.rows if cycle > 1 else 0
        rows = {INSERT: 1, DELETE: self._cycling.rows + left_over}
        for kind, value in moves_of(self._cycling, cycle, self._worker, self._salt):
            yield Step(kind, self._calls[kind], (value,) if kind == INSERT else (), rows.get(kind, 0))

    def next_chunk(self, size: int) -> Chunk | None:
        if self._cycling.timeout_s is not None:
            now = self._clock()
            # Its time begins with its first chunk.
            self._until_ns = self._until_ns or now + self._cycling.timeout_s * NS_PER_S
            if now >= self._until_ns:
                self.seen.outcome = TIMEOUT
                self.seen.note = f"{len(self._statements)} of {self._cycling.cycles} cycles were done"
                return None
        chunk = super().next_chunk(size)
        while chunk is None and (stretch := next(self._stretches, None)):
            self._steps = stretch
            chunk = super().next_chunk(size)
        return chunk

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        super().settle(chunk, done, results, stamps)
        for kind, begin, end in zip(chunk.kinds[:done], *stamps, strict=True):
            self._sums[kind] += end - begin

    def findings(self) -> Findings:
        figures = ((STATEMENTS, self._statements), (BEGIN_AND_COMMIT, self._bounds))
        self.seen.series = [(name, "ns", values) for name, values in figures if any(values)]
        return super().findings()


def calls_of(client: Client, name: str) -> list[Operation]:
    """Return the call of each kind of move on a table."""
    connection = client.connect(0)
    statements = (
        "BEGIN IMMEDIATE",
        f"INSERT INTO {name} (value) VALUES (?)",
        f"DELETE FROM {name}",
        "COMMIT",
    )
    calls: list[Operation] = [connection.writer(sql) for sql in statements]

    def checkpoint(_: object) -> None:
        # Closing the connection would do it too, but nobody could see that it was kept from its end.
        ((busy, *_),) = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            raise EnvironmentFailure(
                "the final checkpoint timed out waiting for a lock. Close other programs that read the "
                "database."
            )

    return [*calls, checkpoint]


# A look at the WAL at the end of each cycle: the worker asks for it, and waits until it was taken.
#
# The worker can't look itself: on POSIX, closing one of the database's files would drop its locks. So a
# process beside it looks, and what it sees belongs to that cycle exactly, since nothing is written
# meanwhile. Each worker has a line of shared 64-bit words: the cycle for which it asks, the cycle for
# which a look was taken, and whether it has done all its cycles.


_WORDS = 8
ASKED, TAKEN, FINISHED = range(3)
POLL_S = 100e-6
PATIENCE_S = 2.0
"""A worker that waited so long asks no more: who looks has died, and the trial says so."""


def is_watched(place: Place) -> bool:
    """Return whether there is a WAL to look at."""
    return place.stores and place.case.settings.journal_mode == "wal"


def words_of_looks(workers: int) -> Any:
    """Return the shared words of so many workers."""
    return shared_array("q", _WORDS * workers)


def lines_of(words: Any) -> list[Any]:
    """Return each worker's own words."""
    view = memoryview(words).cast("B").cast("q")
    return [view[start : start + _WORDS] for start in range(0, len(view), _WORDS)]


class Asking:
    """A worker's side; `watcher` has the other one."""

    def __init__(self, words: Any, worker: int) -> None:
        """`worker` counts from 1."""
        self._lines = lines_of(words)
        self._line = self._lines[worker - 1]
        self._answered = True

    def wait(self, cycle: int) -> None:
        """Ask for the look at the end of a cycle (from 1), and wait until it was taken."""
        if not self._answered:
            return
        self._line[ASKED] = cycle
        until = time.perf_counter() + PATIENCE_S
        while self._line[TAKEN] < cycle and self._answered:
            time.sleep(POLL_S)
            self._answered = time.perf_counter() < until

    def is_last(self) -> bool:
        """Say that all cycles are done; return whether every worker has said so."""
        self._line[FINISHED] = 1
        return all(line[FINISHED] for line in self._lines)
