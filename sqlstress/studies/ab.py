"""A/B: two arms measured in turns, pair by pair, until the gate has seen enough."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from sqlstress.analysis.ab import differences, estimate, figure, look, signed
from sqlstress.engine.failure import kept_reason
from sqlstress.engine.observer import Progress
from sqlstress.engine.study import Steps
from sqlstress.report import AbTest, Report, Run, Trial
from sqlstress.report.ab import ARMS
from sqlstress.report.case import Case
from sqlstress.statistics.gate import FAIL, LOOKS, UNDECIDED, Look, geometric_means
from sqlstress.studies.slices import SliceBench


def order(first: str, pair: int) -> tuple[int, int]:
    """Return in which order the arms of a pair are measured: two pairs are ABBA or BAAB.

    What drifts while we measure (heat, a neighbour on the machine) then meets both arms alike.
    """
    begins = ARMS.index(first) ^ (pair % 2)
    return begins, 1 - begins


def first_arm(seed: int) -> str:
    """Draw which arm the first pair begins with."""
    return Random(f"{seed}:order").choice(ARMS)


def how_far(report: Report, looks: Sequence[Look], elapsed_s: float) -> Progress:
    """Return which pair is being measured, how B differs from A by now, and the time to the next look."""
    pairs = sum(len(run.trials) for run in report.runs) / max(1, report.planned)
    target = next((look.pairs for look in looks if look.pairs >= pairs), looks[-1].pairs)
    left_s = elapsed_s / pairs * (target - pairs) if pairs else 0.0
    label = f"pair {min(int(pairs) + 1, target)} of {target}"
    return Progress(label, pairs, target, _so_far(report), left_s)


def _so_far(report: Report) -> str:
    """Return how B differs from A by now: "B/A -2.1% [-8.4% to +3.0%]"."""
    assert report.ab
    means = geometric_means(found) if (found := differences(report, report.ab)) else []
    if not means:
        return "B/A ?"
    now = estimate(means, report.ab.metric, 0.0)
    ends = "" if now.low is None or now.high is None else f" [{signed(now.low)} to {signed(now.high)}]"
    return f"B/A {signed(now.ratio)}{ends}"


@dataclass
class AbStudy:
    """Measures an A/B test; a step is a slice, or a look."""

    cases: tuple[Sequence[Case], Sequence[Case]]
    """The cells of A and of B: those of the same place are compared."""
    test: AbTest
    """What is asked, and what has been found."""
    looks: Sequence[Look] = LOOKS
    _runs: dict[tuple[int, int], Run] = field(default_factory=dict)
    """By cell and arm."""
    save_every_s = 0.0

    def steps(self, bench: SliceBench) -> Steps:
        """Measure until it is decided, or a slice can't be measured."""
        self.test, begun = bench.learn(self.test), time.monotonic()
        for pair in range(self.looks[-1].pairs):
            for cell, arm in self._slices(pair):
                self._measure(bench, pair, cell, arm)
                bench.observer.progress(
                    how_far(self.report(bench.report), self.looks, time.monotonic() - begun)
                )
                yield
                if self._ended():
                    return
            if self._look_after(pair + 1, self.report(bench.report)):
                yield
                if self._ended():
                    return

    def report(self, blank: Report) -> Report:
        """Return what has been measured, and what was decided of it."""
        return replace(
            blank,
            ab=self.test,
            runs=tuple(self._runs[place] for place in sorted(self._runs)),
            planned=sum(map(len, self.cases)),
        )

    def _slices(self, pair: int) -> list[tuple[int, int]]:
        """Return the slices of a pair in their order, each by its cell and arm."""
        return [(cell, arm) for cell in range(len(self.cases[0])) for arm in order(self.test.first, pair)]

    def _measure(self, bench: SliceBench, pair: int, cell: int, arm: int) -> None:
        run = self._runs.get((cell, arm)) or Run(self.cases[arm][cell], arm=ARMS[arm])
        try:
            trial = bench.measure(arm, run.case, pair)
        except Exception as problem:
            error = kept_reason(problem, run.case.driver, nothing_yet=not self._runs)
            self._runs[cell, arm] = replace(run, error=error)
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

    def _look_after(self, pairs: int, report: Report) -> bool:
        """Take the look that is due after so many pairs; return whether one was."""
        due = next((planned for planned in self.looks if planned.pairs == pairs), None)
        if due:
            found = look(report, self.test, due, last=due is self.looks[-1])
            self.test = replace(self.test, looks=(*self.test.looks, found), verdict=found.verdict)
        return due is not None
