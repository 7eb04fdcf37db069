"""The proof, as pure functions: which rows must be there, after what the workers were told.

What a worker writes has an order, so what is there of it is a beginning. It holds every row that the
worker was told of, and at most one step more: the one of which nobody knows whether it was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlstress.report import Check
from sqlstress.report.problems import Tally


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

    def objection(self, counts: bytearray, shown: Shown) -> str | None:
        """Say what is wrong with the rows found, counted by place; None when nothing is."""
        own = counts[self.places.start : self.places.stop]
        found = sum(map(bool, own))
        gap = own.find(0)
        if found not in (self.acknowledged, min(self.acknowledged + self.step, len(self.places))):
            if 0 <= gap < self.acknowledged:
                what = f"{shown(self.places[gap])} is gone"
            else:
                what = f"it was not told of {shown(self.places[own.find(1, self.acknowledged)])}"
            return f"{self.who} was told of {self.acknowledged:,} rows, and {found:,} are there: {what}"
        if 0 <= gap < found:
            first = shown(self.places[gap])
            return f"of the {found:,} rows of {self.who} some are not its first ones: {first} is gone"
        return None


Found = tuple[Any, int | None]
"""A row, and its place; None if it belongs nowhere."""
Shown = Callable[[int], str]
"""What the row of a place is called in a counter-example."""


def ordered(found: Sequence[Found], told: Sequence[Told]) -> Iterator[Found]:
    """Yield samples, which come in the order of their ids; those of one process have that order too.

    One that stands where another belongs has no place. Nor has one whose id is beyond the number of all
    samples: ids have no gaps.
    """
    most = sum(len(one.places) for one in told)
    wrong: set[int] = set()
    seen: set[int | None] = set()
    for one in told:
        # One that is there twice is told for that.
        its = list(dict.fromkeys(place for _, place in found if place is not None and place in one.places))
        wrong.update(place for place, right in zip(its, sorted(its), strict=True) if place != right)
    for row, place in found:
        again = place in seen
        seen.add(place)
        yield row, place if again or (place not in wrong and row[0] <= most) else None


def check_rows(name: str, found: Iterable[Found], told: Sequence[Told], shown: Shown) -> Check:
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
        if text := one.objection(counts, shown):
            tally.problem(text)
    return tally.check()
