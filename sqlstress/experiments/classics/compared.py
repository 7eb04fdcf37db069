"""Comparison of cases (rows of a report's table) in `sqlstress methods`, `keys` and `cycles`.

A case is a combination of option values. Its measurements are trials, and all trials of a case are a run. A
group has the runs of a table's cases. The first trials of all cases are pass 1, the second trials pass 2.
Cases are compared only within a part of the table, such as the rows with one schema.
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
"""Outcomes of a run (all trials of a case).

DONE: completed. TIMEOUT: over the time limit. LIMIT: over a limit of SQLite. FAILED: no rate or time,
for example because of an error. WRONG: a check found wrong data.
"""
_FAILURES = {TIMEOUT: "TIMEOUT", LIMIT: "LIMIT", WRONG: "FAILED"}
Write = Callable[[float], str | None]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rule to rank cases (rows of a table) by rate or time, within parts such as the rows with one schema."""

    name: Callable[[Case], str]
    """Function that returns a case's name. Cases that differ only in the number of rows share a name."""
    base: str
    """Name of the case with which the others are compared, such as "1b1" (one row per statement)."""
    figure: Callable[[Trial], float]
    """Function that returns the rate or the time of a trial, by which the cases are ranked."""
    is_time: bool = False
    """Whether `figure` returns a time, so that less is better."""
    part: Callable[[Case], str] = lambda _: ""
    """Function that names the part of the table to which a case belongs; "" if the table is a single part."""
    special: str = ""
    """Method that suits few applications, such as "SPC", which makes rows by a join; "" for no method.

    If this method is among the fastest, the report also names the fastest of the others.
    """

    def rates(self, run: Run) -> dict[int, float]:
        """Return each trial's rate, by trial number. If `figure` returns a time, the rate is 1 / time."""
        figures = run.by_pass(self.figure)
        return {index: 1 / time for index, time in figures.items()} if self.is_time else figures

    def outcome(self, run: Run) -> str:
        """Return the outcome of a run (all trials of a case): DONE, TIMEOUT, LIMIT, FAILED or WRONG.

        A run is skipped if the case with fewer rows timed out or met a limit of SQLite. Then it has the
        outcome of that case, TIMEOUT or LIMIT.
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

        `write` formats the rate or time: "22k". If a case has no rate or time, its cell has the reason, such
        as TIMEOUT. The spread of times is computed from rates: 1 / time.
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
        """Return a column with ratios: the rate or time of each row divided by that of the base case.

        The base case is named `self.base`, such as "1b1" (a statement per row). It has the row's part of the
        table and the row's number of processes. If there are several such cases, the largest figure counts.
        `write` formats a ratio. `figure` returns the number to divide; `self.figure` by default. `more` has
        arguments of `Column`.
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

        Only cases with the table's first driver and largest number of processes are compared. If a method was
        measured with several numbers of rows, only its fastest case is compared.
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
        others = {name: run for name, run in named.items() if name.partition(" ")[0] != self.special}
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
