"""The parent's half: tables that are built in, the ledger, and a look at each statement before the load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlstress.engine.proofs import examined
from sqlstress.experiments.sql import ledger
from sqlstress.experiments.sql.builtin import setup
from sqlstress.experiments.sql.experiment import read_scripts
from sqlstress.experiments.sql.script.reading import statements
from sqlstress.report import Check
from sqlstress.report.results import Tally
from sqlstress.user_work.database import explained
from sqlstress.user_work.parent import OwnWork

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Outcome
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Place


class SqlWork(OwnWork):
    """One trial."""

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self._acknowledged = ledger.shared_words(case.concurrency)
        self.shared = (*self.shared, self._acknowledged)
        own = [
            one.statement
            for script in read_scripts(case.spec, case.driver)
            for one in statements(script.commands)
        ]
        self.redefines = any(one.redefines for one in own)

    def made(self) -> Iterator[str]:
        yield from setup(self.case.spec.builtin_setup, self.case.spec.scale)
        if self.case.spec.ledger:
            yield ledger.definition(self.case.driver)

    def ready(self, pulse: Pulse) -> None:
        """See that the database understands each statement; not where scripts make the tables they use."""
        if self.redefines:
            return
        with self.place.reading(pulse) as reader:
            for script in read_scripts(self.case.spec, self.case.driver):
                for one in statements(script.commands):
                    pulse()
                    explained(reader, one.place, one.statement)

    def proofs(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        if self.case.spec.ledger:
            yield examined("ledger", lambda: self._check_ledger(outcomes, pulse))

    def _check_ledger(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Check:
        with self.place.reading(pulse) as reader:
            found = {worker: (rows, least, most) for worker, rows, least, most in reader.rows(ledger.SUMMED)}
        return check_ledger(found, list(self._acknowledged), [one.died for one in outcomes])


# Whether the ledger holds what the workers were told; who died may have committed one more.


def check_ledger(
    found: Mapping[int, tuple[int, int, int]], acknowledged: Sequence[int], dead: Sequence[bool]
) -> Check:
    """Hold the ledger against what each worker was told: numbers from 1 on, none left out, none too many.

    `found` is (how many rows, least number, largest) by worker; the others are by worker, from the first.
    """
    tally = Tally("ledger")
    for worker, (told, died) in enumerate(zip(acknowledged, dead, strict=True), 1):
        tally.checked += told
        count, least, most = found.get(worker, (0, 1, 0))
        if count < told:
            tally.problem(f"worker {worker} was told of {told:,} commits, and {count:,} of them are there")
        elif count > told + died:
            tally.problem(f"worker {worker} was told of {told:,} commits, and {count:,} are there")
        elif (least, most) != (1, count) and count:
            tally.problem(f"the commits of worker {worker} are {least:,} to {most:,}, and only {count:,}")
    for worker in found.keys() - set(range(1, len(acknowledged) + 1)):
        tally.problem(f"there are commits of worker {worker}, whom nobody started")
    return tally.check()
