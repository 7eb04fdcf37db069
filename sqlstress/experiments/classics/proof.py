"""Checks that a table has all acknowledged rows and no other rows, as pure functions.

A writer is a worker, or the parent process that prepared the table. Each writer writes a list of rows in
order. So the table must have the beginning of the list: every acknowledged row. A step is a transaction: if a
worker died during a step, the table has all rows of this step or none. The place of a row is its index in the
concatenated lists of all writers.
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
"""Row with its place. The place is None if the row should not exist."""
Named = Callable[[int], str]
"""Function that returns the name of a row from the row's place."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Rows that a writer had to write, and the number of rows whose commit was acknowledged."""

    writer: str
    """Name of the writer."""
    places: range
    """Indexes of the writer's rows among all rows of the case."""
    acknowledged: int
    """Number of acknowledged rows. They are the first rows of `places`."""
    step: int = 0
    """Number of rows in the step during which the writer died; 0 if the writer did not die."""

    def objections(self, counts: bytearray, named: Named) -> Iterator[str]:
        """Yield a text for each acknowledged row that is missing, and each other row that is present.

        `counts` has, for each place, how often its row is in the table. The rows of a dead writer's last step
        may all be present.
        """
        for place in self.places[: self.acknowledged]:
            if not counts[place]:
                yield f"{named(place)}, acknowledged to {self.writer}, is gone"
        later = self.places[self.acknowledged :]
        present = [place for place in later if counts[place]]
        # A step is a transaction, so the table has all rows of a dead writer's last step, or none.
        if present and present != [*later[: self.step]]:
            for place in present:
                yield f"{named(place)} was not acknowledged to {self.writer}"


def preparation(rows: int) -> Acknowledged:
    """Return the rows that the parent process wrote before the workers started: places 0 to `rows` - 1."""
    return Acknowledged("the preparation", range(rows), rows)


def check_rows(
    name: str,
    rows: Iterable[Placed],
    writers: Sequence[Acknowledged],
    named: Named,
    described: Callable[[Any], str] = repr,
) -> Check:
    """Check that a table has each acknowledged row once, and no other rows.

    `name` is the name of the check. `named` names a row by its place, `described` a row of the table.
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
    """Check that a table has each acknowledged row of the list `expected` once, and no other rows."""
    places = {row: place for place, row in enumerate(expected)}
    placed = ((row, places.get(row)) for row in rows)
    return check_rows(name, placed, writers, lambda place: f"{expected[place]!r:.80}")


def check_ids(by_worker: Iterable[Iterable[Sequence[Any]]], id_type: str) -> Check:
    """Check that ids have the right type, are unique, and ascend if their type promises it.

    `by_worker` has the transactions of each worker. A transaction is the sequence of ids that it inserted.
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
    """Yield a text for each id that does not exceed the previous id, or leaves a gap in a transaction."""
    latest = 0
    for numbers in transactions:
        for earlier, later in pairwise((latest, *numbers)):
            if earlier >= later:
                yield f"{later} was made after {earlier}, and is less"
            elif later - earlier > 1 and earlier != latest:
                yield f"{later} was made after {earlier}, and does not follow on it"
        latest = max(numbers, default=latest)


def short_id(one: Any) -> str:
    """Return an id, or any value that a table has instead of an id, as text of at most 40 characters."""
    return one.hex()[:40] if isinstance(one, bytes) else f"{one!r:.40}"
