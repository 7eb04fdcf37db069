"""Worker of a round: writes, reads or runs checkpoints, and reports violations of the checks."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from sqlstress.engine.loop import Totals, Window
from sqlstress.engine.protocols import Findings, SelfDriven
from sqlstress.experiments.hunt.proof import DAMAGED, STALE, TORN, SnapshotState, Violation, contradictions
from sqlstress.experiments.hunt.spec import (
    ACCOUNTS,
    ACKNOWLEDGED,
    BEGUN,
    CHECKPOINTER,
    HOLDER,
    LOG_ROWS,
    WORDS_PER_WRITER,
    WRITER,
    filler_of,
    role_of,
)
from sqlstress.sqlite_codes import BUSY_SNAPSHOT, IOERR_SHORT_READ, is_busy, is_damage
from sqlstress.targets.sqlite.drivers import explain

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.connections import SqliteClient
    from sqlstress.targets.sqlite.drivers import Connection, Row
    from sqlstress.targets.sqlite.place import SqlitePlace

MAX_VIOLATIONS = 5
"""Maximum number of violations that a process reports."""
HELD_S = (0.001, 0.2)
"""Shortest and longest time of a long read transaction, in seconds."""
PROTOCOL = 15
"""SQLITE_PROTOCOL: SQLite could not begin a read, because other processes kept changing the WAL."""

COUNTS = "SELECT id, n FROM writer"
PARTS = "SELECT writer, max(n) FROM part GROUP BY writer"
LOG = "SELECT writer, min(n), max(n), count(*) FROM log GROUP BY writer"


class HuntSource(SelfDriven):
    """A worker's operations, such as reads or writes, until the round ends or SQLite reports damage."""

    def __init__(
        self, case: Case, place: SqlitePlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        self.case, self._place, self._worker = case, place, worker
        self._words = memoryview(shared[0]).cast("B").cast("q")
        self._role = role_of(case.spec, worker)
        self._random = Random(f"{case.seed}:{salt}:{worker}")
        self._busy = self._busy_snapshot = 0
        self.seen = Findings(doubts=[], checked={}, last={})
        self._client: SqliteClient
        self._connection: Connection
        self._operate: Callable[[], None]
        self._connect()

    def run(self, window: Window, limit: int | None, progress: Any, stop: Any) -> Totals:
        clock, reopen, since = time.perf_counter_ns, self.case.spec.reopen, 0
        first = now = clock()
        while now < window.closes_ns and not stop[0]:
            try:
                if reopen and since >= reopen:
                    since = 0
                    self.seen.reconnected = True
                    self._client.close()
                    self._connect()
                self._operate()
                progress[0] += 1
            except Exception as error:
                if not self._is_expected(error):
                    break
            since += 1
            now = clock()
        done = self.seen.checked[DAMAGED] = progress[0]
        return Totals(
            first_ns=first,
            last_ns=now,
            operations={self._role.name: done},
            rows=done,
            busy=self._busy,
            busy_snapshot=self._busy_snapshot,
        )

    def findings(self) -> Findings:
        return self.seen

    def close(self) -> None:
        self._client.close()

    def _connect(self) -> None:
        self._client = self._place.client(self._worker)
        self._connection = self._client.connect(0)
        if not self.seen.effective:
            self.seen.effective = self._client.effective()
        prepare = {WRITER: self._make_writer, CHECKPOINTER: self._make_checkpointer}.get(
            self._role.name, self._make_reader
        )
        self._operate = prepare()

    def _is_expected(self, error: Exception) -> bool:
        """Return True for a lock error, False for damage (which is recorded). Raise other errors."""
        code = self._client.result_code(error)
        if code is not None and (is_damage(code) or code == IOERR_SHORT_READ):
            name = f"{self._role.name} {self._role.number + 1}"
            self._add_violation(Violation(DAMAGED, f"{name}: {explain(self.case.driver, error)}"))
            return False
        if code is None or not (is_busy(code) or code & 0xFF == PROTOCOL):
            raise error
        self._busy_snapshot += code == BUSY_SNAPSHOT
        self._busy += is_busy(code) and code != BUSY_SNAPSHOT
        self._connection.rollback()
        return True

    def _add_violation(self, violation: Violation) -> None:
        if len(self.seen.doubts) < MAX_VIOLATIONS:
            self.seen.doubts.append(violation)

    def _make_writer(self) -> Callable[[], None]:
        """Return a function that runs one transaction, and records its start and its commit."""
        connection, spec, random, number = self._connection, self.case.spec, self._random, self._role.number
        begin, commit = connection.writer("BEGIN IMMEDIATE"), connection.writer("COMMIT")
        part = connection.writer("UPDATE part SET n = ?, filler = ? WHERE id = ?")
        move = connection.writer("UPDATE account SET amount = amount + ? WHERE id = ?")
        count = connection.writer("UPDATE writer SET n = n + 1 WHERE id = ?")
        log = connection.writer("INSERT INTO log VALUES (?, ?, ?)")
        forget = connection.writer("DELETE FROM log WHERE writer = ? AND n <= ?")
        words = self._words[WORDS_PER_WRITER * number : WORDS_PER_WRITER * (number + 1)]
        last = self.seen.last

        def write() -> None:
            sequence = words[ACKNOWLEDGED] + 1
            keys = {number * spec.keys + random.randrange(spec.keys) for _ in range(spec.batch)}
            source, target = random.sample(range(ACCOUNTS), 2)
            filler = filler_of(sequence, spec.filler)
            words[BEGUN] = sequence
            begin(())
            for key in keys:
                part((sequence, filler, key))
            move((-1, source))
            move((1, target))
            count((number,))
            if spec.churn:
                log((number, sequence, filler))
                forget((number, sequence - LOG_ROWS))
            commit(())
            words[ACKNOWLEDGED] = sequence
            last.update(dict.fromkeys(keys, sequence))

        return write

    def _make_checkpointer(self) -> Callable[[], None]:
        rows, modes, random = self._connection.rows, self.case.spec.checkpoint, self._random

        def checkpoint() -> None:
            rows(f"PRAGMA wal_checkpoint({random.choice(modes)})")

        return checkpoint

    def _make_reader(self) -> Callable[[], None]:
        """Return a function that reads a snapshot in one transaction, and checks it.

        The transaction reads the table writer first and again at its end, to check that both reads see the
        same state. The numbers in shared memory are read before and after the transaction: a snapshot has all
        transactions acknowledged before, and none that began after.
        """
        connection, random, holds = self._connection, self._random, self._role.name == HOLDER
        begin, commit, rows = connection.writer("BEGIN"), connection.writer("COMMIT"), connection.rows
        by_table = connection.scalar("SELECT sum(amount) FROM account NOT INDEXED")
        by_index = connection.scalar("SELECT sum(amount) FROM account INDEXED BY account_by_amount")
        acknowledged, begun = (self._words[word::WORDS_PER_WRITER] for word in (ACKNOWLEDGED, BEGUN))
        churn, checked = self.case.spec.churn, self.seen.checked
        checked.update({STALE: 0, TORN: 0})
        seen = [0] * self.case.spec.writers

        def read() -> None:
            acknowledged_before = acknowledged.tolist()
            begin(())
            counts = _numbers_by_key(rows(COUNTS))
            sums = by_table(()), by_index(())
            parts = _numbers_by_key(rows(PARTS))
            log = rows(LOG) if churn else []
            if holds:
                time.sleep(random.uniform(*HELD_S))
            again = _numbers_by_key(rows(COUNTS))
            commit(())
            snapshot = SnapshotState(
                acknowledged_before, seen, counts, sums, parts, log, again, begun.tolist()
            )
            for violation in contradictions(snapshot):
                self._add_violation(violation)
            for writer, count in counts.items():
                seen[writer] = max(seen[writer], count)
            checked[STALE] += 1
            checked[TORN] += 1

        return read


def _numbers_by_key(rows: list[Row]) -> dict[int, int]:
    """Return rows (key, number) as a dict. In a damaged database, other values become -1."""
    return {key: value if isinstance(value, int) else -1 for key, value in rows}
