"""The parent's half of the experiment with cycles: the file, its tables, and the proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sqlstress.engine.ordered import Ledger, shared_words
from sqlstress.engine.proofs import ProvenWork, examined
from sqlstress.engine.protocols import Outcome
from sqlstress.experiments.classics.cycles_worker import (
    committed,
    definition,
    is_watched,
    table,
    words_of_looks,
)
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.report.results import Tally
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.sqlite.place import SqlitePlace


class CyclesWork(ProvenWork):
    """One trial's file, shared memory and verdict."""

    place: SqlitePlace

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.salt = salt
        self._words = shared_words(case.concurrency)
        self.shared = (self._words, words_of_looks(case.concurrency))
        self.companions = ("cycle watcher",) if is_watched(place) else ()

    def create(self, pulse: Pulse) -> None:
        """Create a table for each worker. Nobody stays connected: the first cycle finds no WAL."""
        self.place.create_tables(map(definition, range(1, self.case.concurrency + 1)), pulse)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Say whether each table holds what its worker's last acknowledged commit left, and nothing else."""
        yield from self.sound(pulse)
        yield examined("last commit", lambda: self._check_tables(outcomes, pulse))

    def _check_tables(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Check:
        tally = Tally("last commit")
        with self.place.opened() as connection:
            for outcome in outcomes:
                pulse()
                worker, name = outcome.worker, table(outcome.worker)
                done = Ledger(self._words, worker).acknowledged()
                # Of a worker that died, a step more may have been done.
                allowed = [
                    committed(self.case.spec, worker, self.salt, done + more)
                    for more in range(1 + outcome.died)
                ]
                rows = connection.rows(f"SELECT id, value FROM {name} ORDER BY id")
                check_table(tally, name, rows, allowed)
        return tally.check()


def check_table(
    tally: Tally, name: str, found: Sequence[tuple[Any, ...]], allowed: Sequence[Sequence[str]]
) -> None:
    """Count what is wrong with a table's rows: they must be those of one of the allowed states, no more.

    A row is its id and its value. Ids count from 1, in the order of insertion.

    There are two for a worker that died: it may have done one step more than it was told. Rows that are
    those of neither are held against the state that they come nearest to.
    """
    tally.checked += 1
    rows = Counter(value for _, value in found)
    lacking, foreign, state = min(
        ((wanted - rows, rows - wanted, state) for state in allowed for wanted in (Counter(state),)),
        key=lambda wrong: wrong[0].total() + wrong[1].total(),
    )
    for value in lacking.elements():
        tally.problem(f"{name} lacks the row {value!r}")
    for value in foreign.elements():
        tally.problem(f"{name} holds the row {value!r:.80}, which it must not hold")
    if not lacking and not foreign:
        for (row_id, value), (right, expected) in zip(found, enumerate(state, 1), strict=True):
            if (row_id, value) != (right, expected):
                what = f"{value!r} with id {row_id}; it must be {expected!r} with id {right}"
                tally.problem(f"row {right} of {name} is {what}")
