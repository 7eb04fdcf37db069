"""Presets measured in turns: a round has a slice of each, in an order that is drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from sqlstress.engine.failure import kept_reason
from sqlstress.engine.observer import Progress
from sqlstress.engine.session import Bench
from sqlstress.engine.study import Steps
from sqlstress.errors import UsageError
from sqlstress.experiments.presets.result import PresetComparison
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import Case
from sqlstress.report.gain import Gain
from sqlstress.statistics.ratios import Passes

ERROR = 0.05
"""With this probability at most, anything that is said of any two presets is wrong."""
NOTHING = "nothing was completed within a slice: give a longer --duration"


class PresetStudy:
    """Measures presets; a step is a slice."""

    save_every_s = 0.0

    def __init__(
        self,
        comparison: PresetComparison,
        cases: Mapping[str, Case],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`comparison` says what is to be done, and has what was found; `cases` are those of the presets."""
        self.comparison, self._clock, self._begun = comparison, clock, 0.0
        self._runs = {name: Run(case, arm=name) for name, case in cases.items()}
        self._presets = {one.name: one for one in comparison.presets}

    def report(self, blank: Report) -> Report:
        """Return what was found by now, and the slices, preset by preset."""
        runs = tuple(run for run in self._runs.values() if run.trials or run.error)
        results = {"presets": self.comparison} if runs else {}
        return replace(blank, runs=runs, planned=len(self._runs), results=results)

    def steps(self, bench: Bench) -> Steps:
        """Measure round by round, until there are enough, time is over, or nothing is left to compare."""
        self._begun = self._clock()
        for number in range(self.comparison.planned):
            order = [name for name, run in self._runs.items() if run.error is None]
            Random(f"{self.comparison.case.seed}:presets:{number}").shuffle(order)
            for name in order:
                self._measure(bench, name, number)
                self._learn(number)
                self._tell(bench, number)
                yield
                if self.comparison.wrong or self.comparison.error:
                    return
            if self._is_over(number + 1):
                return

    def _measure(self, bench: Bench, name: str, number: int) -> None:
        run = self._runs[name]
        try:
            trial = bench.runner.run(run.case, number)
        except Exception as problem:
            nothing_yet = not any(one.trials for one in self._runs.values())
            base = name == self.comparison.against
            # What SQLite does not take is no reason to leave out the others.
            refused = isinstance(problem, UsageError) and not base
            error = kept_reason(problem, run.case.driver, nothing_yet=nothing_yet and not refused)
            self._fail(name, error, ends=not refused)
        else:
            self._take(name, trial)

    def _take(self, name: str, trial: Trial) -> None:
        self._runs[name] = run = replace(self._runs[name], trials=(*self._runs[name].trials, trial))
        if trial.verdict.status == "failed":
            example = next(iter(trial.verdict.counterexamples), "see the report")
            self.comparison = replace(self.comparison, wrong=f"{name}: {example}")
        elif error := trial.error or (None if trial.tps else NOTHING):
            self._fail(name, error, ends=True)
        if trial.effective:
            self._presets[name] = replace(self._presets[name], effective=run.trials[0].effective)

    def _fail(self, name: str, error: str, *, ends: bool) -> None:
        self._runs[name] = replace(self._runs[name], error=error)
        self._presets[name] = replace(self._presets[name], error=error)
        if ends:
            self.comparison = replace(self.comparison, error=f"{name}: {error}")

    def _learn(self, number: int) -> None:
        """Enter what the slices say by now."""
        rates = {name: run.rates() for name, run in self._runs.items() if run.rates()}
        passes, base = Passes(rates, ERROR), self.comparison.against
        whole = [len(run.trials) for run in self._runs.values() if run.error is None]
        presets = (
            replace(one, gain=Gain.of(passes.ratio(base, one.name)))
            if one.name != base and {one.name, base} <= rates.keys()
            else one
            for one in self._presets.values()
        )
        self.comparison = replace(
            self.comparison,
            presets=tuple(presets),
            rounds=min(whole, default=number),
            seconds=self._clock() - self._begun,
        )

    def _is_over(self, rounds: int) -> bool:
        """Say whether another round would end too late, or would have nothing to compare."""
        if sum(run.error is None for run in self._runs.values()) < 2:
            return True
        limit_s, elapsed_s = self.comparison.max_time_s, self._clock() - self._begun
        return limit_s is not None and elapsed_s / rounds * (rounds + 1) > limit_s

    def _tell(self, bench: Bench, number: int) -> None:
        planned, each = self.comparison.planned, max(1, len(self._runs))
        done = sum(len(run.trials) for run in self._runs.values()) / each
        left_s = self.comparison.seconds / done * (planned - done) if done else 0.0
        limit_s = self.comparison.max_time_s
        if limit_s is not None:
            left_s = min(left_s, max(0.0, limit_s - self.comparison.seconds))
        label = f"round {number + 1} of {planned}"
        bench.runner.observer.progress(Progress(label, done, planned, "", left_s))
