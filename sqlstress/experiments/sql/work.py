"""Parent process's part of `sql`: built-in tables, checks of statements and of the ledger.

The ledger is a table of sqlstress with a row per writing transaction. The row proves that the transaction was
committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlstress.engine.proofs import examined
from sqlstress.experiments.sql.builtin import setup
from sqlstress.experiments.sql.script import statements
from sqlstress.experiments.sql.spec import read_scripts
from sqlstress.experiments.sql.worker import LEDGER, open_calls
from sqlstress.report import Check
from sqlstress.report.results import CheckCounter
from sqlstress.statistics.units import plural, verb
from sqlstress.system.sharing import shared_array
from sqlstress.target import serves
from sqlstress.user_work.database import check_statement
from sqlstress.user_work.parent import UserWork

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Outcome
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Place
    from sqlstress.user_work.rehearsal import Opener


class SqlWork(UserWork):
    """Parent process's part of a trial of SQL scripts."""

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self._acknowledged = shared_array("q", case.concurrency)
        self.shared = (*self.shared, self._acknowledged)
        scripts = read_scripts(case.spec, case.driver)
        self._statements = [command for script in scripts for command in statements(script.commands)]
        self.redefines = any(command.statement.redefines for command in self._statements)

    def rehearsal_opening(self) -> Opener:
        return open_calls

    def as_rehearsed(self) -> Case:
        # The rehearsal is a run on a copy of the data. With SQLite it uses Python's sqlite3, without a
        # ledger. At a server it uses the case as it is.
        spec = replace(self.case.spec, ledger=False, per_statement=False)
        return replace(self.case, driver="sqlite3", spec=spec) if not self.case.server else self.case

    def own_sql(self) -> Iterator[str]:
        yield from setup(self.case.spec.builtin_setup, self.case.spec.scale)
        if self.case.spec.ledger:
            key = "PRIMARY KEY (worker, number)"
            # Servers have no tables WITHOUT ROWID.
            options = "" if serves(self.case.driver) else " WITHOUT ROWID"
            yield f"CREATE TABLE {LEDGER} (worker INTEGER, number BIGINT, {key}){options}"

    def ready(self, pulse: Pulse) -> None:
        """Check that the database can compile each statement.

        Check nothing if a script changes the schema, because statements may need tables that it creates.
        `pulse` is called often, and raises Interrupted if the work must stop.
        """
        if self.redefines:
            return
        with self.place.reading(pulse) as reader:
            for command in self._statements:
                pulse()
                check_statement(reader, command.statement)

    def proofs(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        if self.case.spec.ledger:
            yield examined("ledger", lambda: self._check_ledger(outcomes, pulse))

    def _check_ledger(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Check:
        with self.place.reading(pulse) as reader:
            rows = reader.rows(
                f"SELECT worker, count(*), min(number), max(number) FROM {LEDGER} GROUP BY worker"
            )
        rows_by_worker = {worker: (count, least, most) for worker, count, least, most in rows}
        return check_ledger(rows_by_worker, list(self._acknowledged), [outcome.died for outcome in outcomes])


def check_ledger(
    found: Mapping[int, tuple[int, int, int]], acknowledged: Sequence[int], dead: Sequence[bool]
) -> Check:
    """Return the check of the ledger: one row for each acknowledged commit, and no other rows.

    `found` has (number of rows, least number, largest number) of each worker that has rows. Each worker
    numbers its commits from 1. `acknowledged` has the number of acknowledged commits of each worker, from
    worker 1 on, and `dead` whether the worker died. A dead worker may have one more row: it may have died
    between a commit and its acknowledgement.
    """
    tally = CheckCounter("ledger")
    for worker, (number, died) in enumerate(zip(acknowledged, dead, strict=True), 1):
        tally.checked += number
        count, least, most = found.get(worker, (0, 1, 0))
        if not number <= count <= number + died:
            tally.problem(
                f"{plural(number, 'commit')} of worker {worker} {verb(number, 'was', 'were')} acknowledged, "
                f"{count:,} {verb(count, 'is', 'are')} there"
            )
        elif (least, most) != (1, count) and count:
            tally.problem(f"the commits of worker {worker} are {least:,} to {most:,}, and only {count:,}")
    for worker in found.keys() - set(range(1, len(acknowledged) + 1)):
        tally.problem(f"there are commits of worker {worker}, whom nobody started")
    return tally.check()
