"""The proof, as pure functions: which rows must be there, after what the workers were told.

What a worker writes has an order, so what is there of it is a beginning. It holds every row that the
worker was told of, and at most one step more: the one of which nobody knows whether it was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlstress.report import Check
from sqlstress.workloads.problems import Tally


@dataclass(frozen=True, slots=True)
class Told:
    """What one worker was told."""

    who: str
    """What it is called in a counter-example."""
    places: range
    """Where the rows are that it was to write, in their order."""
    acknowledged: int
    """How many of them it was told are written."""
    step: int = 0
    """Rows of the step that was under way when it ended; 0: none was."""

    def objection(self, counts: bytearray) -> str | None:
        """Say what is wrong with the rows found, counted by place; None when nothing is."""
        found = sum(map(bool, counts[self.places.start : self.places.stop]))
        if found not in (self.acknowledged, min(self.acknowledged + self.step, len(self.places))):
            return f"{self.who} was told of {self.acknowledged:,} rows, and {found:,} are there"
        if not all(counts[self.places.start : self.places.start + found]):
            return f"of the {found:,} rows of {self.who} some are not its first ones"
        return None


def check_rows(name: str, found: Iterable[tuple[object, int | None]], told: Sequence[Told]) -> Check:
    """Judge every row of a table: (row, its place or None if it belongs nowhere)."""
    tally = Tally(name)
    counts = bytearray(max((one.places.stop for one in told), default=0))
    for row, place in found:
        tally.checked += 1
        if place is None or place >= len(counts):
            tally.problem(f"{row!r:.80} should not be there")
        elif counts[place]:
            tally.problem(f"{row!r:.80} is there twice")
        else:
            counts[place] = 1
    for one in told:
        if text := one.objection(counts):
            tally.problem(text)
    return tally.check()
