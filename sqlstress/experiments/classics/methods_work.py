"""The parent's half of methods: creation of the database file of a cell, and the check of its rows.

A cell is one measured case. A cell that writes begins with a new file. Cells that query share one file, which
already has all results; each cell sets the journal mode of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlstress.engine.proofs import examined, reading_checks
from sqlstress.engine.protocols import LIMIT, TIMEOUT, Outcome
from sqlstress.experiments.classics.methods import Method, tricks_of
from sqlstress.experiments.classics.methods_tables import (
    PATH,
    PENDING,
    SCHEMA,
    VALUE,
    pair_at,
    pair_place,
    pairs_below,
    sample_place,
)
from sqlstress.experiments.classics.proof import Acknowledged, check_rows, preparation
from sqlstress.experiments.classics.work import ClassicWork
from sqlstress.report import Check, Run
from sqlstress.report.case import Case
from sqlstress.system.interrupt import Pulse, with_pulses
from sqlstress.system.sharing import shared_array
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import Connection
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.place import SqlitePlace

HASTE = ("synchronous=off", "cache_size=-100000")
"""PRAGMAs of the connection that fills a file. Filling is not measured; its cache takes about 100 MB."""
QUERIED = "methods: the queried file"


class MethodsWork(ClassicWork):
    """The file of a cell, which must hold every acknowledged sample and result once."""

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self.method: Method = case.spec
        self._written = shared_array("q", 1)
        self.shared = (self._words, self._written)
        (self._path,) = place.paths
        known = {"insert": 0, "allocate": self.method.scale, "query": self.method.samples}
        self._samples = known[self.method.phase]
        """Number of samples when the cell begins."""

    def create(self, pulse: Pulse) -> None:
        """Fill the file, unless an earlier cell has left the data to query, and set its journal mode."""
        wanted = None
        if self.method.phase == "query":
            settings = replace(self.case.settings, journal_mode="")
            wanted = self._path, self.case.seed, self.method.samples, settings
        if wanted is None or self._carry.get(QUERIED) != wanted:
            self._carry[QUERIED] = None
            self.place.discard()
            with self.place.opened() as connection:
                self._fill(connection, pulse)
            self._carry[QUERIED] = wanted
        files.first_write(self.case, self._path)

    def _fill(self, connection: Connection, pulse: Pulse) -> None:
        pragmas.apply(connection, self.case.settings)
        for pragma in HASTE:
            connection.rows(f"PRAGMA {pragma}")
        connection.rows("BEGIN")
        for statement in SCHEMA:
            connection.rows(statement)
        paths = ((PATH.format(place),) for place in with_pulses(range(self._samples), pulse))
        connection.run_many("INSERT INTO sample (path) VALUES (?)", paths)
        if self.method.phase == "query":
            computed = VALUE.format(a="a.id", b="b.id", seed=self.case.seed)
            pairs = f"SELECT a.id, b.id, {computed} FROM sample AS a JOIN sample AS b ON a.id < b.id"
            files.watched(connection, f"INSERT INTO result {pairs}", pulse)
        connection.rows("COMMIT")

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterator[Check]:
        """Yield the checks of the file, of both tables, and of the answers to queries."""
        written = [self._acknowledged(outcome) for outcome in outcomes if self.method.phase != "query"]
        samples, results = [preparation(self._samples)], written
        if self.method.phase == "insert":
            samples, results = written, []
        elif self.method.phase == "query":
            results = [preparation(pairs_below(self._samples, self._samples))]
        found = [
            *self.sound(pulse),
            examined("foreign keys", lambda: self.foreign_keys("result", pulse)),
            examined("samples", lambda: self._check_samples(samples, pulse)),
            examined("results", lambda: self._check_results(results, pulse)),
        ]
        if self.method.phase == "query":
            found += reading_checks(outcomes)
        # A cell leaves some tables empty.
        return (check for check in found if check.status != "skipped")

    def _acknowledged(self, outcome: Outcome) -> Acknowledged:
        rows = self.method.rows
        if self.steps_done(outcome):
            return Acknowledged("worker 1", range(rows), rows)
        if self.method.name == "1b1" and not self.method.transaction:
            return Acknowledged("worker 1", range(rows), self._written[0], int(outcome.died))
        return Acknowledged("worker 1", range(rows), 0, rows if outcome.died else 0)

    def _check_samples(self, writers: Sequence[Acknowledged], pulse: Pulse) -> Check:
        rows = self.rows("SELECT id, path FROM sample", pulse)
        # SQLite numbers rows from 1 in the order of insertion.
        placed = ((row, place if (place := sample_place(row[1])) == row[0] - 1 else None) for row in rows)
        return check_rows("samples", placed, writers, PATH.format)

    def _check_results(self, writers: Sequence[Acknowledged], pulse: Pulse) -> Check:
        right: object = PENDING
        if self.method.phase == "query":
            right = VALUE.format(a="a_id", b="b_id", seed=self.case.seed)
        rows = self.rows(f"SELECT a_id, b_id, val, val IS {right} FROM result", pulse)
        placed = (
            ((a, b, stored), pair_place(a, b, self._samples) if is_right else None)
            for a, b, stored, is_right in rows
        )
        return check_rows("results", placed, writers, lambda place: str(pair_at(place, self._samples)))

    def discard(self) -> None:
        """Remove the file, unless the next cell may query it."""
        if self.method.phase != "query":
            self.place.discard()


REASONS = {TIMEOUT: "timed out", LIMIT: "met a limit"}


def skip_reason(case: Case, runs: Sequence[Run]) -> str | None:
    """Return the reason not to measure a cell (again) after the runs of other cells, or None.

    A cell counts as timed out if any of its trials timed out, even if its other trials succeed.
    """
    for run in runs:
        scale = run.case.spec.scale
        # The cells of a method at all its scales are one series.
        if (
            scale > case.spec.scale
            or replace(run.case, spec=replace(run.case.spec, scale=case.spec.scale)) != case
        ):
            continue
        outcome = next((trial.outcome for trial in run.trials if trial.outcome in REASONS), None)
        if outcome and (scale < case.spec.scale or outcome == TIMEOUT):
            return f"{tricks_of(case)} {REASONS[outcome]} at {scale:,} already"
    return None
