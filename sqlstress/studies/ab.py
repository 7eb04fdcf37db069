"""A/B: two arms measured in turns, pair by pair, until the gate has seen enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from sqlstress.analysis.ab import figure, look
from sqlstress.engine.failure import as_failure
from sqlstress.errors import Interrupted
from sqlstress.report import AbTest, Report, Run, Trial
from sqlstress.report.ab import ARMS
from sqlstress.report.case import Case
from sqlstress.statistics.gate import FAIL, LOOKS, UNDECIDED, Look
from sqlstress.studies.slices import Bench

Tell = Callable[[Report], None]
"""Called after every slice with the report as it is then: to save it, to show how it goes."""


def order(first: str, pair: int) -> tuple[int, int]:
    """Return in which order the arms of a pair are measured: two pairs are ABBA or BAAB.

    What drifts while we measure (heat, a neighbour on the machine) then meets both arms alike.
    """
    begins = ARMS.index(first) ^ (pair % 2)
    return begins, 1 - begins


def first_arm(seed: int) -> str:
    """Draw which arm the first pair begins with."""
    return Random(f"{seed}:order").choice(ARMS)


@dataclass
class AbStudy:
    """Measures an A/B test."""

    bench: Bench
    cases: tuple[Sequence[Case], Sequence[Case]]
    """The cells of A and of B: those of the same place are compared."""
    test: AbTest
    """What is asked, and what has been found."""
    tell: Tell
    looks: Sequence[Look] = LOOKS
    _runs: dict[tuple[int, int], Run] = field(default_factory=dict)
    """By cell and arm."""

    def measure(self) -> Report:
        """Measure until it is decided; the report says how it ended, also when it was interrupted.

        Raises SqlstressError when nothing could be measured at all.
        """
        interrupted, self.test = False, self.bench.learn(self.test)
        try:
            for pair in range(self.looks[-1].pairs):
                self._measure_pair(pair)
                if not self._ended():
                    self._look_after(pair + 1)
                if self._ended():
                    break
        except Interrupted:
            interrupted = True
        report = replace(self.report(), interrupted=interrupted)
        if report.runs:
            self.tell(report)
        return report

    def report(self) -> Report:
        """Return what has been measured so far."""
        return replace(
            self.bench.report,
            ab=self.test,
            runs=tuple(self._runs[place] for place in sorted(self._runs)),
            planned=sum(map(len, self.cases)),
        )

    def _measure_pair(self, pair: int) -> None:
        for cell in range(len(self.cases[0])):
            for arm in order(self.test.first, pair):
                self._measure_slice(pair, cell, arm)
                self.tell(self.report())
                if self._ended():
                    return

    def _measure_slice(self, pair: int, cell: int, arm: int) -> None:
        run = self._runs.get((cell, arm)) or Run(self.cases[arm][cell], arm=ARMS[arm])
        try:
            trial = self.bench.measure(arm, run.case, pair)
        except Interrupted:
            raise
        except Exception as problem:
            if not self._runs:
                raise as_failure(problem, run.case.driver) from problem
            self._runs[cell, arm] = replace(run, error=str(as_failure(problem, run.case.driver)))
        else:
            self._runs[cell, arm] = replace(run, trials=(*run.trials, trial), error=self._problem(trial))
            if trial.verdict.status == "failed":
                wrong = f"the data of {ARMS[arm]} is not what its processes were told it is"
                self.test = replace(self.test, verdict=FAIL, reason=wrong)

    def _problem(self, trial: Trial) -> str | None:
        """Return why a slice can't be one of a pair; None when it can."""
        if trial.error is None and figure(trial, self.test.metric) is None:
            return "nothing was completed within a slice: give a longer --duration"
        return trial.error

    def _ended(self) -> bool:
        """Say whether there is no sense in another slice: it is decided, or one can't be measured."""
        return self.test.verdict != UNDECIDED or any(run.error for run in self._runs.values())

    def _look_after(self, pairs: int) -> None:
        for planned in self.looks:
            if planned.pairs == pairs:
                found = look(self.report(), self.test, planned, last=planned is self.looks[-1])
                self.test = replace(self.test, looks=(*self.test.looks, found), verdict=found.verdict)
