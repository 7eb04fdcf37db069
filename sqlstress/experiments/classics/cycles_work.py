"""The parent's half of cycles: a new file for each trial, and the proof of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlstress.engine.proofs import examined
from sqlstress.engine.protocols import Outcome
from sqlstress.experiments.classics.cycles_worker import (
    committed,
    definition,
    table,
    words_of_finished,
)
from sqlstress.experiments.classics.proof import Acknowledged, check_list
from sqlstress.experiments.classics.work import ClassicWork
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.sqlite.drivers import Row
from sqlstress.targets.sqlite.place import SqlitePlace


class CyclesWork(ClassicWork):
    """A file with a table for each worker, which must hold the rows of the last acknowledged commit."""

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self.shared = (self._words, words_of_finished(case.concurrency))

    def create(self, pulse: Pulse) -> None:
        """Create the tables. No connection stays open, so the first cycle finds no WAL."""
        self.place.create_tables(map(definition, range(1, self.case.concurrency + 1)), pulse)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Yield the checks of the file and of its tables."""
        yield from self.sound(pulse)
        yield examined("last commit", lambda: self._check_tables(outcomes, pulse))

    def _check_tables(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Check:
        stored: list[Row] = []
        expected: list[Row] = []
        writers = []
        for outcome in outcomes:
            name, begin = table(outcome.worker), len(expected)
            rows = [(name, *row) for row in self.rows(f"SELECT id, value FROM {name}", pulse)]
            stored += rows
            expected += nearest(rows, self._states(outcome))
            places = range(begin, len(expected))
            writers.append(Acknowledged(f"worker {outcome.worker}", places, len(places)))
        return check_list("last commit", stored, expected, writers)

    def _states(self, outcome: Outcome) -> Iterator[list[Row]]:
        """Yield the rows after the acknowledged steps; of a dead worker also those after the next step."""
        done, name = self.steps_done(outcome), table(outcome.worker)
        for steps in range(done, done + 1 + outcome.died):
            values = committed(self.case.spec, outcome.worker, self.salt, steps)
            # SQLite numbers the rows of an empty table from 1.
            yield [(name, number, value) for number, value in enumerate(values, 1)]


def nearest(rows: Sequence[Row], states: Iterator[list[Row]]) -> list[Row]:
    """Return the state that differs from the rows of a table in the fewest rows."""
    return min(states, key=lambda state: len({*rows} ^ {*state}))
