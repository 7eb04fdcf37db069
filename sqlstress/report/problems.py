"""What a check has looked at, and what was wrong with it."""

from __future__ import annotations

from sqlstress.report.verdict import CHECK_STATUSES, Check

EXAMPLES = 5
"""Counter-examples that a check keeps."""


def added(one: Check, other: Check) -> Check:
    """Return two checks of the same name as one."""
    statuses = {one.status, other.status}
    return Check(
        one.name,
        next(status for status in CHECK_STATUSES if status in statuses),
        one.checked + other.checked,
        one.problems + other.problems,
        (*one.counterexamples, *other.counterexamples)[:EXAMPLES],
        one.note or other.note,
    )


class Tally:
    """Collects one check's problems and its first counter-examples."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checked = 0
        self.problems = 0
        self.counterexamples: list[str] = []

    def problem(self, text: str) -> None:
        """Count a problem."""
        self.problems += 1
        if len(self.counterexamples) < EXAMPLES:
            self.counterexamples.append(text)

    def check(self, note: str = "") -> Check:
        """Return the check, failed when there was a problem, skipped when nothing was looked at."""
        status = "failed" if self.problems else "ok" if self.checked else "skipped"
        return Check(self.name, status, self.checked, self.problems, tuple(self.counterexamples), note)
