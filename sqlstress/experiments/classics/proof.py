"""Checks that a table has all acknowledged rows and no other rows, as pure functions.

Each worker writes a list of rows in order. So the table must have the beginning of the list: every
acknowledged row. If the worker died during a step, all rows of this step may be there, too. The place of a
row is its index in the concatenated lists of all workers.
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
"""Row with its place; None if the row should not exist."""
Named = Callable[[int], str]
"""Function from the place of a row to the name of the row."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Rows that a worker had to write, and the number of rows that were acknowledged to it."""

    writer: str
    """Name of the worker."""
    places: range
    """Places of the worker's rows."""
    acknowledged: int
    """Number of rows, from the beginning of `places`, that were acknowledged."""
    step: int = 0
    """Number of rows in the step during which the worker died; 0 if it did not die."""

    def objections(self, counts: bytearray, named: Named) -> Iterator[str]:
        """Yield a text for each acknowledged row that is gone, and for each later row that is present.

        `counts` has the number of rows in the table by place.
        """
        for place in self.places[: self.acknowledged]:
            if not counts[place]:
                yield f"{named(place)}, acknowledged to {self.writer}, is gone"
        later = self.places[self.acknowledged :]
        present = [place for place in later if counts[place]]
        # The step is a transaction, so all rows of a dead worker's step are there, or none of them.
        if present and present != [*later[: self.step]]:
            for place in present:
                yield f"{named(place)} was not acknowledged to {self.writer}"


def preparation(rows: int) -> Acknowledged:
    """Return the rows that the parent process has written before the workers start."""
    return Acknowledged("the preparation", range(rows), rows)


def check_rows(
    name: str,
    rows: Iterable[Placed],
    writers: Sequence[Acknowledged],
    named: Named,
    described: Callable[[Any], str] = repr,
) -> Check:
    """Check that a table has each acknowledged row once, and no other rows.

    `name` is that of the check. `described` returns the name of a row in the table.
    """
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
    """Check that a table has the rows of the list `expected`."""
    places = {row: place for place, row in enumerate(expected)}
    placed = ((row, places.get(row)) for row in rows)
    return check_rows(name, placed, writers, lambda place: f"{expected[place]!r:.80}")


def check_ids(by_worker: Iterable[Iterable[Sequence[Any]]], id_type: str) -> Check:
    """Check the type of ids, that they are unique, and the order that their type promises.

    `by_worker` has the transactions of each worker; a transaction is the sequence of its ids.
    """
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
    """Yield a text for each integer id that is not above the last, or leaves a gap in a transaction."""
    latest = 0
    for numbers in transactions:
        for earlier, later in pairwise((latest, *numbers)):
            if earlier >= later:
                yield f"{later} was made after {earlier}, and is less"
            elif later - earlier > 1 and earlier != latest:
                yield f"{later} was made after {earlier}, and does not follow on it"
        latest = max(numbers, default=latest)


def short_id(one: Any) -> str:
    """Return an id, or another value in the place of an id, as text of at most 40 characters."""
    return one.hex()[:40] if isinstance(one, bytes) else f"{one!r:.40}"
