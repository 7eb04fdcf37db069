"""The proof, as pure functions: tables hold the acknowledged rows, and nothing else.

A worker writes the rows of a list in the order of the list. So the table holds the beginning of that list:
every acknowledged row, and perhaps the rows of one more step if the worker died. The place of a row is its
index in the concatenated lists of all workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from sqlstress.experiments.classics.keys_worker import ASCENDING, SIZE
from sqlstress.report import Check
from sqlstress.report.results import CheckCounter

Placed = tuple[Any, int | None]
"""A row, and its place: an index into the lists of all workers, or None if the row should not exist."""
Named = Callable[[int], str]
"""Returns the name of the row at a place, for counter-examples."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The rows that one worker was to write, and the number of acknowledged ones."""

    writer: str
    """Name in counter-examples."""
    places: range
    """Places of the rows, in their order."""
    acknowledged: int
    """Number of acknowledged rows."""
    step: int = 0
    """Number of rows of the step during which the worker died; 0 if it did not die."""

    def objections(self, counts: bytearray, named: Named) -> Iterator[str]:
        """Yield an objection for each acknowledged row that is gone, and for later rows that are present."""
        for place in self.places[: self.acknowledged]:
            if not counts[place]:
                yield f"{named(place)}, acknowledged to {self.writer}, is gone"
        later = self.places[self.acknowledged :]
        present = [place for place in later if counts[place]]
        # The step of a dead worker is there as a whole or not at all.
        if present and present != [*later[: self.step]]:
            for place in present:
                yield f"{named(place)} was not acknowledged to {self.writer}"


def preparation(rows: int) -> Acknowledged:
    """Return the rows that the parent has written before the workers begin."""
    return Acknowledged("the preparation", range(rows), rows)


def check_rows(
    name: str,
    rows: Iterable[Placed],
    writers: Sequence[Acknowledged],
    named: Named,
    described: Callable[[Any], str] = repr,
) -> Check:
    """Check that a table has each acknowledged row once, and no other rows."""
    tally = CheckCounter(name)
    counts = bytearray(max((writer.places.stop for writer in writers), default=0))
    for row, place in rows:
        tally.checked += 1
        if place is None or place >= len(counts):
            tally.problem(f"{described(row):.80} should not be there")
        elif counts[place]:
            tally.problem(f"{described(row):.80} is there twice")
        else:
            counts[place] = 1
    for writer in writers:
        for text in writer.objections(counts, named):
            tally.problem(text)
    return tally.check()


def check_list(
    name: str, rows: Iterable[Any], expected: Sequence[Any], writers: Sequence[Acknowledged]
) -> Check:
    """Check rows against the list of all expected rows; the place of a row is its index in that list."""
    places = {row: place for place, row in enumerate(expected)}
    placed = ((row, places.get(row)) for row in rows)
    return check_rows(name, placed, writers, lambda place: f"{expected[place]!r:.80}")


def check_ids(by_worker: Iterable[Iterable[Sequence[Any]]], id_type: str) -> Check:
    """Check ids by worker and transaction: type, uniqueness, and the order that the type promises."""
    tally = CheckCounter("identifiers")
    seen: set[Any] = set()
    for transactions in by_worker:
        fitting = [[pick_id for pick_id in ids if _fits(pick_id, id_type)] for ids in transactions]
        for ids in transactions:
            for pick_id in ids:
                tally.checked += 1
                if not _fits(pick_id, id_type):
                    tally.problem(f"{short_id(pick_id)} is not of the type {id_type}")
                elif pick_id in seen:
                    tally.problem(f"{short_id(pick_id)} is there twice")
                seen.add(pick_id)
        if id_type == "int":
            for text in _gaps(fitting):
                tally.problem(text)
        elif id_type in ASCENDING:
            for earlier, later in pairwise(chain.from_iterable(fitting)):
                if earlier > later:
                    tally.problem(f"{short_id(later)} was made after {short_id(earlier)}, and is less")
    return tally.check()


def _fits(one: Any, id_type: str) -> bool:
    if id_type == "int":
        return isinstance(one, int)
    return isinstance(one, bytes) and len(one) == SIZE


def _gaps(transactions: Iterable[Sequence[int]]) -> Iterator[str]:
    """Yield objections to integer ids, unless they ascend, and are consecutive within each transaction."""
    latest = 0
    for numbers in transactions:
        for earlier, later in pairwise((latest, *numbers)):
            if earlier >= later:
                yield f"{later} was made after {earlier}, and is less"
            elif later - earlier > 1 and earlier != latest:
                yield f"{later} was made after {earlier}, and does not follow on it"
        latest = max(numbers, default=latest)


def short_id(one: Any) -> str:
    """Return an id, or the value stored instead of an id, as text of at most 40 characters."""
    return one.hex()[:40] if isinstance(one, bytes) else f"{one!r:.40}"
