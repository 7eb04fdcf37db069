"""What is in the tables when a cell has ended: every row, and its place among those that belong there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlstress.experiments.methods.proof import Found, Told, ordered
from sqlstress.experiments.methods.spec import Method
from sqlstress.experiments.methods.tables import PENDING, pair_place, sample_place, value
from sqlstress.report import Check
from sqlstress.report.case import Case
from sqlstress.report.problems import Tally
from sqlstress.system.pulse import Pulse, paced
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import Row


class Reader:
    """Reads one file."""

    def __init__(self, case: Case, method: Method, path: Path, pulse: Pulse) -> None:
        self._case, self._method, self._path, self._pulse = case, method, path, pulse

    def samples(self, told: Sequence[Told]) -> Iterator[Found]:
        """Yield the samples, in the order of their ids; one whose id is not its own belongs nowhere."""
        rows = self._rows("SELECT id, path FROM sample ORDER BY id")
        found = ((row, sample_place(row[1])) for row in rows)
        if len(told) == 1:
            # Ids are taken in the order of insertion…
            return (
                (row, place if place is not None and row[0] == place + 1 else None) for row, place in found
            )
        # … of which several processes have none, but each has its own.
        return ordered([*found], told)

    def results(self, samples: int) -> Iterator[Found]:
        """Yield the results of so many samples; one with a wrong value belongs nowhere."""
        is_query, seed = self._method.phase == "query", self._case.seed
        for row in self._rows("SELECT a_id, b_id, val FROM result"):
            a, b, found = row
            place = pair_place(a, b, samples)
            expected = value(a, b, seed) if is_query and place is not None else PENDING
            yield row, place if found == expected else None

    def _rows(self, query: str) -> Iterator[Row]:
        with files.opened(self._case, self._path) as connection:
            yield from paced(connection.iterate(query), self._pulse)

    def foreign_keys(self) -> Check:
        """Look for results without their samples."""
        tally = Tally("foreign keys")
        with files.opened(self._case, self._path) as connection:
            tally.checked = 2 * connection.rows("SELECT count(*) FROM result")[0][0]
            for table, row, parent, _ in files.watched(connection, "PRAGMA foreign_key_check", self._pulse):
                tally.problem(f"row {row} of {table} refers to no {parent}")
        return tally.check()
