"""The parent's half of a workload whose data is proven: what all of them do alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sqlstress.engine.protocols import Findings, Outcome, Work
from sqlstress.errors import SqlstressError, message_of
from sqlstress.report import Check, Verdict
from sqlstress.report.case import Case
from sqlstress.report.results import EXAMPLES
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.place import Definition, Place

Found = TypeVar("Found", bound=Check | None)


def examined(name: str, check: Callable[[], Found]) -> Found | Check:
    """Run a check that reads the database; where that can't be read, it has failed.

    Raises what says nothing of the database: errors of ours, of the system, and of memory.
    """
    try:
        return check()
    except (SqlstressError, OSError, MemoryError):
        raise
    except Exception as error:
        return Check(name, "failed", 0, 1, (f"cannot read the database: {message_of(error)}",))


def reading_checks(outcomes: Sequence[Outcome]) -> list[Check]:
    """Add up what the workers found wrong in what they read."""
    findings = [outcome.findings for outcome in outcomes if outcome.findings]
    checks = [_read(findings, "values read", "reads_checked", "bad_reads", "bad_read_examples")]
    if any(one.pairs_checked for one in findings):
        checks.append(_read(findings, "torn transactions", "pairs_checked", "torn", "torn_examples"))
    return checks


def _read(findings: Sequence[Findings], name: str, checked: str, problems: str, examples: str) -> Check:
    wrong = sum(getattr(one, problems) for one in findings)
    return Check(
        name,
        "failed" if wrong else "ok" if findings else "skipped",
        sum(getattr(one, checked) for one in findings),
        wrong,
        tuple(text for one in findings for text in getattr(one, examples))[:EXAMPLES],
    )


class ProvenWork(Work):
    """Creates what the workers need, and proves afterwards that it holds what they were told.

    A workload inherits from it and adds `create` and `checks`, which are called only where something is
    stored: what they need to be a place of a certain target is one then.
    """

    def __init__(self, case: Case, place: Place) -> None:
        self.case, self.place = case, place
        self._created: Sequence[Definition] = ()

    def create(self, pulse: Pulse) -> None:
        """Create and fill what the workers need; calls `pulse` often, which may raise Interrupted."""
        raise NotImplementedError

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterable[Check]:
        """Hold what is stored against what the workers were told."""
        raise NotImplementedError

    def prepare(self, pulse: Pulse) -> None:
        if self.place.stores:
            self.create(pulse)
            self._created = () if self.redefines else self.place.schema()

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        """Say whether the data is what the workers were told it is."""
        if not self.place.stores or self.case.verify == "none":
            why = "--verify none" if self.place.stores else f"the {self.case.driver} driver stores nothing"
            return Verdict((Check("verification", "skipped", note=why),))
        begun = time.perf_counter()
        checks = tuple(self.checks(outcomes, pulse))
        return Verdict(checks, time.perf_counter() - begun)

    def sound(self, pulse: Pulse) -> list[Check]:
        """Return what the place says of itself: whether it is sound, and whether it is what was created."""
        found = [self.place.integrity(self.case.verify, pulse)]
        if self._created:
            found.append(examined("schema", lambda: self.place.redefined(self._created, pulse)))
        return [check for check in found if check]

    def discard(self) -> None:
        self.place.discard()
