"""Carries out the transactions of one or more files, by several connections of one thread.

One thread makes a run reproducible, and loses little: only one connection of a file can write at a time
anyway. What else happens to a file happens on the way: connections close and open again; in WAL mode a
reader keeps its snapshot, so that checkpoints end halfway, and checkpoints of every kind are asked for.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Protocol

from sqlstress.experiments.power_loss.proof import History, Span
from sqlstress.experiments.power_loss.transactions import READ, carry_out, transactions
from sqlstress.report.case import Case
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.disk.operations import Operation, WriteBack
from sqlstress.targets.sqlite.drivers import Connection
from sqlstress.targets.sqlite.drivers import settings as pragmas

TRANSACTIONS = 100
"""Transactions of a run, over all files."""
FEWEST = 12
"""Transactions of each file, if there are many files."""
DEFAULT_PAGE = 4096

_REOPENED_EVERY = 11
_PAUSED_EVERY = 2 * _REOPENED_EVERY
_PINNED_EVERY, _PINNED_FOR = 9, 4
_CHECKPOINTED = 0.1
"""Share of the transactions after which a checkpoint is asked for."""


class RecordedDisk(Protocol):
    """What keeps a log of all that connections do."""

    log: list[Operation]

    def connect(self, path: Path) -> Connection:
        """Open a database file."""


class Load:
    """Works on all files of a case; `histories` tells what was done to each."""

    def __init__(self, case: Case, folder: Path, disk: RecordedDisk) -> None:
        self.effective: dict[str, str] = {}
        """The settings as SQLite answered them after the first write."""
        self._random = Random(f"{case.seed}:load")
        each = max(FEWEST, TRANSACTIONS // case.buckets)
        self._files = [_File(case, path, each, disk) for path in files.paths(case, folder)]

    @property
    def histories(self) -> list[History]:
        """What was done to each file."""
        return [file.history for file in self._files]

    def run(self) -> None:
        """Carry out all transactions, each file's in their order, and close the files."""
        turns = [file for file in self._files for _ in file.history.transactions]
        self._random.shuffle(turns)
        try:
            for file in turns:
                file.step(self._random)
                self.effective = self.effective or file.read_back()
        finally:
            for file in self._files:
                file.close()


class _File:
    """One file, its connections, and how far it has come."""

    def __init__(self, case: Case, path: Path, count: int, disk: RecordedDisk) -> None:
        self._case, self._path, self._disk = case, path, disk
        random, page_size = Random(f"{case.seed}:{path.name}"), case.settings.page_size or DEFAULT_PAGE
        self.history = History(path.name, list(transactions(random, count, page_size)))
        self._connections: list[Connection] = []
        self._pinned: Connection | None = None

    def step(self, random: Random) -> None:
        """Carry out the next transaction, by one connection or the other, and what else is due."""
        number = len(self.history.spans)
        if number % _REOPENED_EVERY == 0:
            self.close()
            if number and number % _PAUSED_EVERY == 0:
                self._disk.log.append(WriteBack())
            self._open()
        self._pin_or_release(number)
        free = [connection for connection in self._connections if connection is not self._pinned]
        writer = free[number % len(free)]
        begun = len(self._disk.log)
        carry_out(writer, self.history.transactions[number], first=number == 0)
        self.history.spans.append(Span(begun, len(self._disk.log)))
        if self._is_wal and random.random() < _CHECKPOINTED:
            writer.rows(f"PRAGMA wal_checkpoint({random.choice(('PASSIVE', 'RESTART', 'TRUNCATE'))})")

    def read_back(self) -> dict[str, str]:
        """Return the settings, read back. Raises UsageError or EnvironmentFailure if one was not taken."""
        answers = pragmas.read_back(self._connections[0], self._case.settings)
        pragmas.check(self._case.settings, answers)
        return answers

    def close(self) -> None:
        """Close the connections: the last one ends the WAL."""
        for connection in self._connections:
            connection.close()
        self._connections, self._pinned = [], None

    @property
    def _is_wal(self) -> bool:
        return self._case.settings.journal_mode == "wal"

    def _open(self) -> None:
        for _ in range(self._case.concurrency):
            self._connections.append(self._disk.connect(self._path))
            pragmas.apply(self._connections[-1], self._case.settings)

    def _pin_or_release(self, number: int) -> None:
        """Let the first connection keep a snapshot now and then: in WAL mode the others can write."""
        phase = number % _PINNED_EVERY
        if phase == 0 and number and self._is_wal and len(self._connections) > 1:
            self._pinned = self._connections[0]
            self._pinned.rows("BEGIN")
            self._pinned.rows(READ)
        elif phase == _PINNED_FOR and self._pinned:
            self._pinned.rollback()
            self._pinned = None
