"""A/B: two arms measured in turns, pair by pair, until the gate has seen enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from sqlstress.analysis.ab import differences, estimate, figure, look, signed
from sqlstress.analysis.wording import plural
from sqlstress.engine.failure import kept_reason
from sqlstress.engine.observer import Progress
from sqlstress.engine.study import Steps
from sqlstress.report import AbTest, Report, Run, Trial
from sqlstress.report import Look as Found
from sqlstress.report.ab import ARMS
from sqlstress.report.case import Case
from sqlstress.statistics.gate import FAIL, INCONCLUSIVE, UNDECIDED, Look, geometric_means
from sqlstress.studies.slices import SliceBench


def order(first: str, seed: int, pair: int) -> tuple[int, int]:
    """Return in which order the arms of a pair are measured: the seed draws it, for each pair anew.

    Then it is chance alone that gives a drift, a neighbour or whatever the machine does to one arm or the
    other, and that chance is known: it is what the signed-rank test counts. Fixed turns share a period of
    theirs with whatever else comes around, and give it to one arm each time.
    """
    drawn = Random(f"{seed}:order:{pair}").getrandbits(1) if pair else 0
    begins = ARMS.index(first) ^ drawn
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
    looks: Sequence[Look]
    """When one looks, in order: after the last it ends."""
    clock: Callable[[], float] = time.monotonic
    """Seconds since any moment."""
    _runs: dict[tuple[int, int], Run] = field(default_factory=dict)
    """By cell and arm."""
    save_every_s = 0.0

    def steps(self, bench: SliceBench) -> Steps:
        """Measure until it is decided, the time is over, or a slice can't be measured."""
        self.test, begun = bench.learn(self.test), self.clock()
        for pair in range(self.looks[-1].pairs):
            for cell, arm in self._slices(pair):
                self._measure(bench, pair, cell, arm)
                bench.observer.progress(how_far(self.report(bench.report), self.looks, self.clock() - begun))
                yield
                if self._ended():
                    return
            elapsed_s = self.clock() - begun
            last = pair + 1 == self.looks[-1].pairs or self._over(pair + 1, elapsed_s)
            if due := self._rest(pair + 1) if last else self._planned(pair + 1):
                found = replace(look(self.report(bench.report), self.test, due), seconds=elapsed_s)
                self._keep(_at_the_end(found) if last else found)
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
        arms = order(self.test.first, self.cases[0][0].seed, pair)
        return [(cell, arm) for cell in range(len(self.cases[0])) for arm in arms]

    def _measure(self, bench: SliceBench, pair: int, cell: int, arm: int) -> None:
        run = self._runs.get((cell, arm)) or Run(bench.told(arm, self.cases[arm][cell]), arm=ARMS[arm])
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
            if trial.failed:
                return f"nothing was completed within a slice: {plural(trial.failed, 'operation')} failed"
            return "nothing was completed within a slice: give a longer --duration"
        return trial.error

    def _ended(self) -> bool:
        """Say whether there is no sense in another slice: it is decided, or one can't be measured."""
        return self.test.verdict != UNDECIDED or any(run.error for run in self._runs.values())

    def _over(self, pairs: int, elapsed_s: float) -> bool:
        """Say whether another pair would end too late."""
        limit_s = self.test.max_time_s
        return limit_s is not None and elapsed_s / pairs * (pairs + 1) > limit_s

    def _planned(self, pairs: int) -> Look | None:
        """Return the look that is due after so many pairs."""
        return next((planned for planned in self.looks if planned.pairs == pairs), None)

    def _rest(self, pairs: int) -> Look:
        """Return the last look, which may err as often as those before it left of the whole."""
        whole, spent = (sum(one.alpha for one in taken) for taken in (self.looks, self.test.looks))
        return Look(pairs, whole - spent)

    def _keep(self, found: Found) -> None:
        self.test = replace(self.test, looks=(*self.test.looks, found), verdict=found.verdict)


def _at_the_end(found: Found) -> Found:
    return replace(found, verdict=INCONCLUSIVE) if found.verdict == UNDECIDED else found
