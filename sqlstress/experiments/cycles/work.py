"""The parent's half of the experiment with cycles: the file, its tables, verification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlstress.engine import ledger
from sqlstress.engine.examine import examined
from sqlstress.engine.protocols import Outcome
from sqlstress.engine.proven import ProvenWork
from sqlstress.experiments.cycles import looks
from sqlstress.experiments.cycles.moves import committed, definition, table
from sqlstress.experiments.cycles.proof import check_table
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.report.problems import Tally
from sqlstress.system.pulse import Pulse
from sqlstress.targets.sqlite.place import SqlitePlace

WATCHER = "cycle watcher"


class CyclesWork(ProvenWork):
    """One trial's file, shared memory and verdict."""

    place: SqlitePlace

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.salt = salt
        self._words = ledger.shared_words(case.concurrency)
        self.shared = (self._words, looks.shared_words(case.concurrency))
        self.companions = (WATCHER,) if looks.is_watched(place) else ()

    def create(self, pulse: Pulse) -> None:
        """Create a table for each worker. Nobody stays connected: the first cycle finds no WAL."""
        workers = range(1, self.case.concurrency + 1)
        self.place.create_tables(map(definition, workers), pulse)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Say whether each table holds what its worker's last acknowledged commit left, and nothing else."""
        yield from self.sound(pulse)
        yield examined("last commit", lambda: self._check_tables(outcomes, pulse))

    def _check_tables(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Check:
        tally = Tally("last commit")
        with self.place.opened() as connection:
            for outcome in outcomes:
                pulse()
                name = table(outcome.worker)
                found = connection.rows(f"SELECT id, value FROM {name} ORDER BY id")
                check_table(tally, name, found, self._allowed(outcome))
        return tally.check()

    def _allowed(self, outcome: Outcome) -> list[list[str]]:
        """Return what a worker's table may hold: of one that died, a step more may have been done."""
        done = ledger.Ledger(self._words, outcome.worker).acknowledged()
        assert self.case.spec
        cycling = self.case.spec
        return [
            committed(cycling, outcome.worker, self.salt, done + more) for more in range(1 + outcome.died)
        ]
