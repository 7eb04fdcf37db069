"""The parent's half of the experiment with cycles: the file, its tables, verification."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlstress.engine import ledger
from sqlstress.engine.examine import examined, integrity_check, schema_check, unverified
from sqlstress.engine.protocols import Outcome, Work
from sqlstress.experiments.cycles import looks
from sqlstress.experiments.cycles.moves import committed, definition, table
from sqlstress.experiments.cycles.proof import check_table
from sqlstress.report import Check, Verdict
from sqlstress.report.case import Case
from sqlstress.report.problems import Tally
from sqlstress.system.pulse import Pulse
from sqlstress.targets import DRY
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers.base import Row
from sqlstress.targets.sqlite.integrity import schema

WATCHER = "cycle watcher"


class CyclesWork(Work):
    """One trial's file, shared memory and verdict."""

    def __init__(self, case: Case, folder: Path, salt: int, carry: dict[Any, Any]) -> None:
        self.case, self.folder, self.salt = case, folder, salt
        self._schema: list[Row] = []
        self._words = ledger.shared_words(case.concurrency)
        self.shared = (self._words, looks.shared_words(case.concurrency))
        self.companions = (WATCHER,) if looks.is_watched(case) else ()

    def prepare(self, pulse: Pulse) -> None:
        """Create a table for each worker. Nobody stays connected: the first cycle finds no WAL."""
        if self.case.driver == DRY:
            return
        files.remove(self.case, self.folder)
        pulse()
        workers = range(1, self.case.concurrency + 1)
        files.create_tables(self.case, self._path, map(definition, workers))
        self._schema = schema(self.case, self._path)

    @property
    def _path(self) -> Path:
        return files.paths(self.case, self.folder)[0]

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        """Say whether each table holds what its worker's last acknowledged commit left, and nothing else."""
        if self.case.driver == DRY or self.case.verify == "none":
            return unverified(self.case)
        begun = time.perf_counter()
        checks = (
            integrity_check(self.case, self.folder, pulse),
            examined("schema", lambda: schema_check(self.case, self.folder, self._schema, pulse)),
            examined("last commit", lambda: self._check_tables(outcomes, pulse)),
        )
        return Verdict(checks, time.perf_counter() - begun)

    def _check_tables(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Check:
        tally = Tally("last commit")
        with files.opened(self.case, self._path) as connection:
            for outcome in outcomes:
                pulse()
                name = table(outcome.worker)
                found = connection.rows(f"SELECT id, value FROM {name} ORDER BY id")
                check_table(tally, name, found, self._allowed(outcome))
        return tally.check()

    def _allowed(self, outcome: Outcome) -> list[list[str]]:
        """Return what a worker's table may hold: of one that died, a step more may have been done."""
        done = ledger.Ledger(self._words, outcome.worker).acknowledged()
        assert self.case.cycling
        cycling = self.case.cycling
        return [
            committed(cycling, outcome.worker, self.salt, done + more) for more in range(1 + outcome.died)
        ]

    def discard(self) -> None:
        """Remove the file."""
        files.remove(self.case, self.folder)
