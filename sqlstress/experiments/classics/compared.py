"""Comparison of cases in reports of `sqlstress methods`, `sqlstress keys` and `sqlstress cycles`.

A case (a set of option values) is a row of a table. A run is all its trials. A group has a table's runs.
Cases are compared only within a part of the table, such as the rows with one schema. In pass 1, each case has
its first trial; in pass 2, its second. A difference is reported only if significant over the passes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.answers import inconclusive_findings, is_conclusive, leaders, more_trials
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, PairwiseTests
from sqlstress.experiments.classics import sentences
from sqlstress.experiments.classics.sentences import Fastest
from sqlstress.experiments.classics.spec import REASONS
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.show import case_table
from sqlstress.show.blocks import Column
from sqlstress.show.case_table import Row
from sqlstress.statistics.compare import MIN_PASSES

DONE, TIMEOUT, LIMIT, FAILED, WRONG = "done", "timeout", "limit", "failed", "wrong"
"""Outcomes of a run.

DONE: completed. TIMEOUT: over the time limit. LIMIT: over a limit of SQLite. FAILED: no rate or time,
for example because of an error. WRONG: a check found wrong data.
"""
_FAILURES = {TIMEOUT: "TIMEOUT", LIMIT: "LIMIT", WRONG: "FAILED"}
Write = Callable[[float], str | None]


@dataclass(frozen=True, slots=True)
class Compared:
    """Rule to rank cases (rows of a table) by rate or time, within parts such as the rows with one schema."""

    name: Callable[[Case], str]
    """Function that returns a case's name, without the number of rows: "JSON + WAL" (journal mode WAL)."""
    base: str
    """Name of the case with which the others are compared, such as "1b1" (one row per statement)."""
    figure: Callable[[Trial], float]
    """Function that returns the rate or the time of a trial, by which the cases are ranked."""
    is_time: bool = False
    """Whether `figure` returns a time, so that less is better."""
    part: Callable[[Case], str] = lambda _: ""
    """Function that names the part of the table with a case: "insert with peewee"; "" if all is one part."""
    special: str = ""
    """First word of the names of cases that only some applications can use; "" if there are none.

    For example, "SPC" (SQL makes the rows) cannot write rows from outside. If such a case is among the
    fastest, the report also names the fastest of the other cases.
    """

    def rates(self, run: Run) -> dict[int, float]:
        """Return the rate of each trial of a run, by the trial's number. A time of 2 counts as rate 0.5."""
        figures = run.by_pass(self.figure)
        return {index: 1 / time for index, time in figures.items()} if self.is_time else figures

    def outcome(self, run: Run) -> str:
        """Return the outcome of a run (all trials of a case): DONE, TIMEOUT, LIMIT, FAILED or WRONG.

        If the run of 100 rows timed out or met a limit, that of 1000 is skipped and has the same outcome.
        """
        if run.skipped is not None:
            return next((outcome for outcome, reason in REASONS.items() if reason in run.skipped), FAILED)
        if run.verdict.status == "failed":
            return WRONG
        unfinished = next((trial.outcome for trial in run.valid if trial.outcome != DONE), None)
        if unfinished:
            return unfinished if unfinished in (TIMEOUT, LIMIT) else FAILED
        return DONE if run.by_pass(self.figure) else FAILED

    def main_cell(self, write: Write) -> case_table.Cell:
        """Return a function that makes a cell: a rate or time with its spread over the trials, "22k ±8%".

        `write` formats the rate or time: "22k". A case without one has the reason in its cell, such as
        TIMEOUT. The spread of a time is computed from its inverse, the rate.
        """

        def cell(row: Row) -> str:
            outcome = self.outcome(row.run)
            if outcome != DONE or row.trial is None:
                return _FAILURES.get(outcome, case_table.FAILED)
            return case_table.marked_cell(row.run, write(self.figure(row.trial)), self.rates(row.run))

        return cell

    def relative_column(
        self,
        name: str,
        rows: Iterable[Row],
        write: Write,
        figure: Callable[[Trial], float | None] | None = None,
        **more: Any,
    ) -> Column[Row]:
        """Return a column with each row's rate or time, divided by that of the case `self.base`, such as 1b1.

        Both are in the same part, such as one phase, and have as many processes. If 1b1 has 8 rows/s at one
        scale (number of rows) and 10 at another, the divisor is 10. `write` formats a ratio. `figure` returns
        what is divided, instead of `self.figure`. `more` goes to Column.
        """

        def value(row: Row) -> float | None:
            is_known = row.trial and self.outcome(row.run) == DONE
            return (figure or self.figure)(row.trial) if row.trial and is_known else None

        def key(row: Row) -> Hashable:
            return self.part(row.run.case), row.run.case.concurrency

        bases: dict[Hashable, float] = {}
        for row in rows:
            if self.name(row.run.case) == self.base:
                bases[key(row)] = max(value(row) or 0.0, bases.get(key(row), 0.0))

        def cell(row: Row) -> str | None:
            over, under = value(row), bases.get(key(row))
            return write(over / under) if over and under else None

        return Column(name, (self.base, "= 1"), cell=cell, **more)

    def findings(self, group: Group) -> Iterator[Finding]:
        """Yield a finding on the fastest cases of each part of the table, such as each phase or schema.

        Only rows with the first row's driver and the most processes are compared, such as sqlite3 with 4. If
        a method has several scales, such as BLK with 100 and with 10,000 rows, the fastest counts.
        """
        most = max(run.case.concurrency for run in group.runs)
        done = [
            run
            for run in group.runs
            if self.outcome(run) == DONE
            and (run.case.driver, run.case.concurrency) == (group.case.driver, most)
        ]
        known = [run for run in done if len(self.rates(run)) >= MIN_PASSES]
        best: dict[str, dict[str, Run]] = {self.part(run.case): {} for run in known}
        for run in sorted(known, key=lambda run: median(self.rates(run).values()), reverse=True):
            best[self.part(run.case)].setdefault(self.name(run.case), run)
        compared = [run for named in best.values() for run in named.values()]
        tested = group.pairwise_tests(compared, self.rates) if compared else None
        if tested:
            found = [self._part(part, named, tested) for part, named in best.items() if len(named) > 1]
            yield from found
            yield from inconclusive_findings(tested, found, group.case)
        elif len(done) > 1:
            yield Finding(shared.cannot_tell, advice=more_trials(group.case))

    def _part(self, part: str, named: Mapping[str, Run], tested: PairwiseTests) -> Finding:
        leads = [self._lead(named, tested)]
        others = {name: run for name, run in named.items() if name.split()[0] != self.special}
        if others and not {*leads[0].names} <= {*others}:
            leads.append(self._lead(others, tested, self.special))
        return Finding(sentences.fastest, part=part, leads=tuple(leads))

    def _lead(self, named: Mapping[str, Run], tested: PairwiseTests, without: str = "") -> Fastest:
        lead = leaders(tested, list(named.values()), divide_error_by=1 + bool(self.special))
        names = tuple(name for name, run in named.items() if any(run is near for near in lead.runs))
        ratio = None
        if self.base in named and self.base not in names:
            ratio = tested.ratio(named[self.base], lead.best)
        return Fastest(
            names, self.base, ratio if is_conclusive(ratio) else None, lead.equal, lead.unclear, without
        )
