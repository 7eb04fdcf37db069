"""The parent's half of a workload whose data is proven: what all of them do alike."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from sqlstress.engine.examine import examined
from sqlstress.engine.protocols import Outcome, Work
from sqlstress.report import Check, Verdict
from sqlstress.report.case import Case
from sqlstress.system.pulse import Pulse
from sqlstress.targets.place import Definition, Place


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
