"""Parent process's part of a round: creates the database, and checks its final contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlstress.engine.protocols import Outcome, Work
from sqlstress.experiments.hunt.proof import (
    DAMAGED,
    STALE,
    SUMS,
    TORN,
    TOTAL,
    WRITES,
    Writer,
    losses,
    mixtures,
)
from sqlstress.experiments.hunt.spec import (
    ACCOUNTS,
    ACKNOWLEDGED,
    BEGUN,
    EACH,
    TABLES,
    WORDS_PER_WRITER,
    WRITER,
    role_of,
)
from sqlstress.report import Verdict
from sqlstress.report.results import CheckCounter
from sqlstress.system.sharing import shared_array
from sqlstress.targets.sqlite.drivers import explain
from sqlstress.targets.sqlite.place import SqlitePlace

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.sqlite.drivers import Connection


class HuntWork(Work):
    """Database of a round, and shared memory in which each writer stores numbers of its transactions."""

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        self.case, self._place = case, place
        words = shared_array("q", WORDS_PER_WRITER * case.spec.writers)
        self.shared = (words,)
        self._words = memoryview(words).cast("B").cast("q")

    def prepare(self, pulse: Pulse) -> None:
        self._place.create_tables(TABLES, pulse)
        spec = self.case.spec
        with self._place.opened() as connection:
            connection.rows("BEGIN")
            connection.run_many(
                "INSERT INTO writer VALUES (?, 0)", ((number,) for number in range(spec.writers))
            )
            connection.run_many(
                "INSERT INTO part VALUES (?, ?, 0, zeroblob(?))",
                ((key, key // spec.keys, spec.filler) for key in range(spec.writers * spec.keys)),
            )
            connection.run_many(
                "INSERT INTO account VALUES (?, ?)", ((number, EACH) for number in range(ACCOUNTS))
            )
            connection.rows("COMMIT")

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        tallies = {name: CheckCounter(name) for name in (WRITES, SUMS, STALE, TORN, DAMAGED)}
        for findings in (outcome.findings for outcome in outcomes if outcome.findings):
            for name, count in findings.checked.items():
                tallies[name].checked += count
            for check, text in findings.doubts:
                tallies[check].problem(text)
        integrity = self._place.integrity("full", pulse)
        try:
            with self._place.opened() as connection:
                self._compare(connection, outcomes, tallies[WRITES], tallies[SUMS])
        except Exception as error:
            tallies[WRITES].problem(f"cannot read the rows: {explain(self.case.driver, error)}")
        checks = (tally.check() for tally in tallies.values() if tally.checked or tally.problems)
        return Verdict((*checks, integrity))

    def _compare(
        self, connection: Connection, outcomes: Sequence[Outcome], writes: CheckCounter, sums: CheckCounter
    ) -> None:
        """Compare the database with the acknowledged transactions.

        Problems of rows and of the number of transactions are added to `writes`, a wrong sum of all accounts
        to `sums`.
        """
        counts: dict[int, Any] = dict(connection.rows("SELECT id, n FROM writer"))
        rows: Any = connection.rows("SELECT id, n, filler FROM part")
        parts = {row: transaction for row, transaction, _ in rows}
        for outcome in outcomes:
            role, number = role_of(self.case.spec, outcome.worker)
            if role == WRITER:
                words = self._words[WORDS_PER_WRITER * number : WORDS_PER_WRITER * (number + 1)]
                last = self._last_by_row(number, outcome)
                writes.checked += 1 + len(last)
                for text in losses(Writer(number, words[ACKNOWLEDGED], words[BEGUN], last), counts, parts):
                    writes.problem(text)
        for row in parts.keys() - range(self.case.spec.writers * self.case.spec.keys):
            writes.problem(f"row {row} is there, and nobody wrote it")
        for text in mixtures(rows, self.case.spec.filler):
            writes.problem(text)
        (total,) = connection.rows("SELECT total(amount) FROM account")[0]
        sums.checked += 1
        if total != TOTAL:
            sums.problem(f"the sum of all accounts is {total:,.0f} instead of {TOTAL:,}")

    def _last_by_row(self, number: int, outcome: Outcome) -> dict[int, int]:
        """Return the number of the last acknowledged transaction that wrote each of a writer's rows.

        The number is 0 for a row that the writer never wrote. The result is empty if the writer died, because
        it then returned no record of its writes.
        """
        if outcome.findings is None:
            return {}
        keys = self.case.spec.keys
        return {row: outcome.findings.last.get(row, 0) for row in range(number * keys, (number + 1) * keys)}

    def discard(self) -> None:
        self._place.discard()
