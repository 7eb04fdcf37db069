"""Whether the data is what the workers were told it is: Check, Verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was proved, or was not."""

    name: str
    """What was checked, such as "last write"."""
    status: str
    """ok, failed, unknown or skipped."""
    checked: int = 0
    """How many things were looked at: keys, files, pairs, counters."""
    problems: int = 0
    """How many of them were wrong."""
    counterexamples: tuple[str, ...] = ()
    """The first wrong ones, in words."""
    note: str = ""
    """What limits the check, such as the share of keys covered."""


BY_THE_STORE = ("quick_check", "integrity_check", "bt_index_check", "lmdb.verify")
"""Names of the checks by which a store looks at its own data: SQLite's two, PostgreSQL's, LMDB's."""
CHECK_STATUSES = ("failed", "unknown", "ok", "skipped")
"""What a check can say, the worst first."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Is the data what the workers were told it is?"""

    checks: tuple[Check, ...] = ()
    """What was proved, or was not."""
    seconds: float = 0.0
    """How long the verification took, after the window."""

    @property
    def status(self) -> str:
        """The worst of its checks: failed, unknown, ok, or skipped when nothing was checked."""
        found = {check.status for check in self.checks}
        return next((status for status in CHECK_STATUSES if status in found), "skipped")

    @property
    def is_sound(self) -> bool:
        """Whether the store has looked at its own data, each time, and found nothing wrong."""
        said = [check.status for check in self.checks if check.name in BY_THE_STORE]
        return bool(said) and set(said) == {"ok"}

    @property
    def counterexamples(self) -> tuple[str, ...]:
        """The counter-examples of all checks."""
        return tuple(text for check in self.checks for text in check.counterexamples)
