"""Who is told how a measurement goes: a progress bar, or nobody."""

from __future__ import annotations

from typing import Protocol

from sqlstress.report import Run
from sqlstress.report.case import Case


class Observer(Protocol):
    """Called by the engine; must be quick and must not raise."""

    def case_begins(self, index: int, total: int, case: Case) -> None:
        """Case number `index` (from 0) of `total` begins."""

    def phase(self, name: str) -> None:
        """A trial is now preparing, starting, measuring or verifying."""

    def waiting(self) -> None:
        """The phase goes on, and is not the load; may be called often."""

    def tick(self, operations: int) -> None:
        """So many operations have been done in this trial; called about ten times a second."""

    def case_ends(self, run: Run) -> None:
        """A case has been measured, and saved."""


class Nobody:
    """Watches nothing."""

    def case_begins(self, index: int, total: int, case: Case) -> None:
        pass

    def phase(self, name: str) -> None:
        pass

    def waiting(self) -> None:
        pass

    def tick(self, operations: int) -> None:
        pass

    def case_ends(self, run: Run) -> None:
        pass
