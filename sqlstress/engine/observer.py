"""Who is told how a measurement goes: a progress bar, a caller's function, or nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a study has come."""

    label: str
    """What is being done: "[1/8] 1 file, 1 process", "pair 3 of 10"."""
    done: float
    """How much is done; never less than it was."""
    total: float
    """Of how much: it may grow, where it is decided on the way how much is needed."""
    note: str
    """What is found or happens meanwhile: "1,234 TPS", "preparing", "B/A -2.1%"."""
    left_s: float
    """A guess of the seconds that are left."""
    label_width: int = 0
    """Characters of the longest label that is to come: a bar beside it then stands still."""
    note_width: int = 0
    """The same of the note; 0 where it is not known."""


class Observer(Protocol):
    """Called by studies and by the engine; must be quick and must not raise."""

    def progress(self, progress: Progress) -> None:
        """The study has come so far; may be called often."""

    def phase(self, name: str) -> None:
        """A trial is now preparing, starting, measuring or verifying."""

    def waiting(self) -> None:
        """The phase goes on, and is not the load; may be called often."""

    def tick(self, operations: int) -> None:
        """So many operations have been done in this trial; called about ten times a second."""


class Nobody:
    """Watches nothing."""

    def progress(self, progress: Progress) -> None:
        pass

    def phase(self, name: str) -> None:
        pass

    def waiting(self) -> None:
        pass

    def tick(self, operations: int) -> None:
        pass


NOBODY = Nobody()
