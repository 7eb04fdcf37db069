"""The parent's half of a workload whose data is proven: what all of them do alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sqlstress.engine.protocols import Outcome, Work
from sqlstress.errors import SqlstressError, said
from sqlstress.report import Check, Verdict
from sqlstress.report.case import Case
from sqlstress.report.results import EXAMPLES
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.place import Definition, Place

# What the verdicts have in common: checks that read the data, and checks of what the workers read.


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
        return Check(name, "failed", 0, 1, (f"the database can't be read: {said(error)}",))


def reading_checks(outcomes: Sequence[Outcome]) -> list[Check]:
    """Add up what the workers found wrong in what they read."""
    found = [outcome.findings for outcome in outcomes if outcome.findings]
    reads = Check(
        "values read",
        "failed" if any(one.bad_reads for one in found) else "ok" if found else "skipped",
        sum(one.reads_checked for one in found),
        sum(one.bad_reads for one in found),
        tuple(text for one in found for text in one.bad_read_examples)[:EXAMPLES],
    )
    if not any(one.pairs_checked for one in found):
        return [reads]
    torn = Check(
        "torn transactions",
        "failed" if any(one.torn for one in found) else "ok",
        sum(one.pairs_checked for one in found),
        sum(one.torn for one in found),
        tuple(text for one in found for text in one.torn_examples)[:EXAMPLES],
    )
    return [reads, torn]


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

    def connected(self) -> None:
        pass

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        """Say whether the data is what the workers were told it is."""
        if not self.place.stores:
            return _unverified(f"the {self.case.driver} driver stores nothing")
        if self.case.verify == "none":
            return _unverified("--verify none")
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


def _unverified(reason: str) -> Verdict:
    return Verdict((Check("verification", "skipped", note=reason),))
