"""The parent's half: the table, and the proof that all acknowledged rows are in it."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlstress.engine.ordered import OperationLedger, shared_words
from sqlstress.engine.proofs import ProvenWork, examined
from sqlstress.engine.protocols import Outcome
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.report.results import CheckCounter
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.sqlite.place import SqlitePlace


class AppendsWork(ProvenWork):
    """The parent's half of one trial."""

    place: SqlitePlace

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.shared = (shared_words(case.concurrency),)

    def create(self, pulse: Pulse) -> None:
        self.place.create_tables(["CREATE TABLE log (worker INTEGER, number INTEGER)"], pulse)

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        yield from self.sound(pulse)
        yield examined("appended rows", lambda: self._appended(outcomes))

    def _appended(self, outcomes: Sequence[Outcome]) -> Check:
        tally = CheckCounter("appended rows")
        with self.place.opened() as connection:
            found = [tuple(row) for row in connection.rows("SELECT worker, number FROM log")]
        for outcome in outcomes:
            for row in range(OperationLedger(self.shared[0], outcome.worker).acknowledged()):
                tally.checked += 1
                if found.count((outcome.worker, row)) != 1:
                    tally.problem(f"row {row} of worker {outcome.worker} is not there once")
        return tally.check()
