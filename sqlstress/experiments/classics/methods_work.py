"""The parent's half: a database for each cell, and the words that it shares with the workers.

Cells that write begin with a fresh file: without samples, or with the samples whose results are to be
allocated. Cells that query share one file with all results: it is made for the first of them, and
takes on the journal mode of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlstress.engine.ordered import Ledger, shared_words
from sqlstress.engine.proofs import ProvenWork, examined, reading_checks
from sqlstress.engine.protocols import LIMIT, TIMEOUT, Outcome
from sqlstress.experiments.classics.methods import Method, tricks_of
from sqlstress.experiments.classics.methods_tables import (
    PATH,
    PENDING,
    SCHEMA,
    VALUE,
    pair_at,
    pair_place,
    part_of,
    places_before,
    sample_place,
    value,
)
from sqlstress.report import Check, Run
from sqlstress.report.case import Case
from sqlstress.report.results import Tally
from sqlstress.statistics.units import plural, verb
from sqlstress.system.interrupt import Pulse, paced
from sqlstress.system.sharing import shared_array
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import Connection, Row
from sqlstress.targets.sqlite.drivers import settings as pragmas
from sqlstress.targets.sqlite.place import SqlitePlace

# The proof, as pure functions: which rows must be there, after what the workers were told.
#
# What a worker writes has an order, so what is there of it is a beginning. It holds every row that the
# worker was told of, and at most one step more: the one of which nobody knows whether it was done.


@dataclass(frozen=True, slots=True)
class Acknowledged:
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
        counted = counts[self.places.start : self.places.stop]
        found = sum(map(bool, counted))
        gap = counted.find(0)
        if found not in (self.acknowledged, min(self.acknowledged + self.step, len(self.places))):
            if 0 <= gap < self.acknowledged:
                what = f"{shown(self.places[gap])} is gone"
            else:
                what = f"{shown(self.places[counted.find(1, self.acknowledged)])} was not acknowledged"
            return (
                f"{plural(self.acknowledged, 'row')} of {self.who} {verb(self.acknowledged, 'was', 'were')} "
                f"acknowledged, {found:,} {verb(found, 'is', 'are')} there: {what}"
            )
        if 0 <= gap < found:
            first = shown(self.places[gap])
            return f"of the {found:,} rows of {self.who} some are not its first ones: {first} is gone"
        return None


Found = tuple[Any, int | None]
"""A row, and its place; None if it belongs nowhere."""
Shown = Callable[[int], str]
"""What the row of a place is called in a counter-example."""


def ordered(found: Sequence[Found], writers: Sequence[Acknowledged]) -> Iterator[Found]:
    """Yield samples, which come in the order of their ids; those of one process have that order too.

    One that stands where another belongs has no place. Nor has one whose id is beyond the number of all
    samples: ids have no gaps.
    """
    most = sum(len(writer.places) for writer in writers)
    wrong: set[int] = set()
    seen: set[int | None] = set()
    for writer in writers:
        # One that is there twice is told for that.
        its = list(dict.fromkeys(place for _, place in found if place is not None and place in writer.places))
        wrong.update(place for place, right in zip(its, sorted(its), strict=True) if place != right)
    for row, place in found:
        again = place in seen
        seen.add(place)
        yield row, place if again or (place not in wrong and row[0] <= most) else None


def check_rows(name: str, found: Iterable[Found], writers: Sequence[Acknowledged], shown: Shown) -> Check:
    """Judge every row of a table: (row, its place or None if it belongs nowhere)."""
    tally = Tally(name)
    counts = bytearray(max((writer.places.stop for writer in writers), default=0))
    for row, place in found:
        tally.checked += 1
        if place is None or place >= len(counts):
            tally.problem(f"{row!r:.80} should not be there")
        elif counts[place]:
            tally.problem(f"{row!r:.80} is there twice")
        else:
            counts[place] = 1
    for writer in writers:
        if text := writer.objection(counts, shown):
            tally.problem(text)
    return tally.check()


HASTE = ("synchronous=off", "cache_size=-100000")
"""PRAGMAs of the connection that fills a file, which is not measured; it takes some 100 MB."""
QUERIED = "methods: what the file that is queried was made for"


class MethodsWork(ProvenWork):
    """One cell's file, shared memory and verdict."""

    place: SqlitePlace

    def __init__(self, case: Case, place: SqlitePlace, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place)
        self.method: Method = case.spec
        self._words, self._written = shared_words(case.concurrency), shared_array("q", case.concurrency)
        self.shared = (self._words, self._written)
        self._carry = carry
        (self._path,) = place.paths
        known = {"insert": 0, "allocate": self.method.scale, "query": self.method.samples}
        self._samples = known[self.method.phase]
        """How many samples are there when the cell begins."""

    def create(self, pulse: Pulse) -> None:
        """Make what the cell begins with, and see that the settings were taken."""
        wanted = None
        if self.method.phase == "query":
            # What cells have in common that query the same file.
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
        for definition in SCHEMA:
            connection.rows(definition)
        paths = ((PATH.format(place),) for place in paced(range(self._samples), pulse))
        connection.run_many("INSERT INTO sample (path) VALUES (?)", paths)
        if self.method.phase == "query":
            pairs = f"SELECT a.id, b.id, {VALUE.format(self.case.seed)} FROM sample AS a JOIN sample AS b"
            files.watched(connection, f"INSERT INTO result {pairs} ON a.id < b.id", pulse)
        connection.rows("COMMIT")

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> list[Check]:
        """Say whether the tables hold what the workers were told, and whether the answers were right."""
        written = [self._acknowledged(outcome) for outcome in outcomes if self.method.phase != "query"]
        samples, results = [prepared(self._samples)], written
        if self.method.phase == "insert":
            samples, results = written, []
        elif self.method.phase == "query":
            results = [prepared(places_before(self._samples, self._samples))]
        integrity, schema = self.sound(pulse)
        found = [
            integrity,
            examined("foreign keys", lambda: self._check_foreign_keys(pulse)),
            schema,
            examined("samples", lambda: self._check_samples(samples, pulse)),
            examined("results", lambda: self._check_results(results, pulse)),
        ]
        if self.method.phase == "query":
            found += reading_checks(outcomes)
        # Of what a cell leaves empty there is nothing to say.
        return [check for check in found if check.status != "skipped"]

    def _acknowledged(self, outcome: Outcome) -> Acknowledged:
        """Return what a worker was told; of one that died nobody knows whether its last step was done."""
        places = part_of(self.case, outcome.worker).places
        step = 1 if self.method.name == "1b1" and not self.method.transaction else len(places)
        if Ledger(self._words, outcome.worker).acknowledged():
            acknowledged = len(places)
        else:
            acknowledged = self._written[outcome.worker - 1] if step == 1 else 0
        return Acknowledged(f"worker {outcome.worker}", places, acknowledged, step if outcome.died else 0)

    def _check_samples(self, writers: Sequence[Acknowledged], pulse: Pulse) -> Check:
        """Judge the samples; one whose id is not its own belongs nowhere."""
        rows = self._rows("SELECT id, path FROM sample ORDER BY id", pulse)
        found: Iterable[Found] = ((row, sample_place(row[1])) for row in rows)
        if len(writers) == 1:
            # Ids are taken in the order of insertion…
            found = ((row, place if place == row[0] - 1 else None) for row, place in found)
        else:
            # … of which several processes have none, but each has its own.
            found = ordered([*found], writers)
        return check_rows("samples", found, writers, PATH.format)

    def _check_results(self, writers: Sequence[Acknowledged], pulse: Pulse) -> Check:
        """Judge the results; one with a wrong value belongs nowhere."""

        def placed(row: Row) -> Found:
            a, b, found = row
            place = pair_place(a, b, self._samples)
            is_computed = self.method.phase == "query" and place is not None
            return row, place if found == (value(a, b, self.case.seed) if is_computed else PENDING) else None

        rows = self._rows("SELECT a_id, b_id, val FROM result", pulse)
        return check_rows(
            "results", map(placed, rows), writers, lambda place: str(pair_at(place, self._samples))
        )

    def _rows(self, query: str, pulse: Pulse) -> Iterator[Row]:
        with self.place.opened() as connection:
            yield from paced(connection.iterate(query), pulse)

    def _check_foreign_keys(self, pulse: Pulse) -> Check:
        """Look for results without their samples."""
        tally = Tally("foreign keys")
        with self.place.opened() as connection:
            tally.checked = 2 * connection.rows("SELECT count(*) FROM result")[0][0]
            for table, row, parent, _ in files.watched(connection, "PRAGMA foreign_key_check", pulse):
                tally.problem(f"row {row} of {table} refers to no {parent}")
        return tally.check()

    def discard(self) -> None:
        """Remove the file, unless the next cell may query it."""
        if self.method.phase != "query":
            self.place.discard()


def prepared(rows: int) -> Acknowledged:
    """Return that so many rows were there when the cell began."""
    return Acknowledged("the preparation", range(rows), rows)


REASONS = {TIMEOUT: "timed out", LIMIT: "met a limit"}


def skip_reason(case: Case, runs: Sequence[Run]) -> str | None:
    """Return the reason not to measure a cell (again) after these runs of cells, if there is a reason.

    A cell with a trial that timed out is a TIMEOUT, however its other trials end.
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
