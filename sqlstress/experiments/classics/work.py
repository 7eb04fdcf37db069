"""The parent's half that methods, keys and cycles share: one file, and a shared ledger of completed steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlstress.engine.ordered import OperationLedger, shared_words
from sqlstress.engine.proofs import ProvenWork
from sqlstress.engine.protocols import Outcome
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.report.results import CheckCounter
from sqlstress.system.interrupt import Pulse, with_pulses
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import Row
from sqlstress.targets.sqlite.place import SqlitePlace


class ClassicWork(ProvenWork):
    """File of a trial, and the ledger in which each worker notes its completed steps."""

    place: SqlitePlace

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.salt, self._carry = salt, carry
        self._words = shared_words(case.concurrency)
        self.shared: tuple[Any, ...] = (self._words,)

    def steps_done(self, outcome: Outcome) -> int:
        """Return the number of acknowledged steps of a worker."""
        return OperationLedger(self._words, outcome.worker).acknowledged()

    def rows(self, query: str, pulse: Pulse) -> Iterator[Row]:
        """Yield the rows of a query; calls `pulse` often."""
        with self.place.opened() as connection:
            yield from with_pulses(connection.iterate(query), pulse)

    def foreign_keys(self, child: str, pulse: Pulse) -> Check:
        """Check that every row of a table refers to existing rows; the table has two foreign keys."""
        tally = CheckCounter("foreign keys")
        with self.place.opened() as connection:
            tally.checked = 2 * connection.rows(f"SELECT count(*) FROM {child}")[0][0]
            for name, rowid, parent, _ in files.watched(connection, "PRAGMA foreign_key_check", pulse):
                row = "a row" if rowid is None else f"row {rowid}"
                tally.problem(f"{row} of {name} refers to a row of {parent} that is not there")
        return tally.check()
