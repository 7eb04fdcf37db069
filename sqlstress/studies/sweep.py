"""A sweep: cases in their order, each with all of its trials; and which study it is that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sqlstress.engine.ceiling import harness_ns
from sqlstress.engine.failure import kept_reason
from sqlstress.engine.pool import WorkerFailure
from sqlstress.engine.session import Bench, Session
from sqlstress.engine.study import Steps, Study
from sqlstress.engine.trial import TrialRunner
from sqlstress.experiment import face_of
from sqlstress.plan import Planned
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import Case
from sqlstress.studies.pace import Pace


class Sweep:
    """Measures cases; a step is a case."""

    save_every_s = 0.0

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = tuple(cases)
        self._runs: list[Run] = []

    def report(self, blank: Report) -> Report:
        """Return the cases that have been measured, the last one perhaps in part."""
        return replace(blank, runs=tuple(self._runs), planned=len(self.cases))

    def steps(self, bench: Bench) -> Steps:
        """Measure all cases. What stops the first one would stop the others, and is raised."""
        runner = bench.runner
        runner.observer = pace = Pace(self.cases, runner.observer)
        for index, case in enumerate(self.cases):
            runner.case_number = index + 1
            pace.begin(index)
            reason = face_of(case).is_needless(case, self._runs)
            if reason is None:
                self._measure(case, runner)
            else:
                self._runs.append(Run(case, skipped=reason))
            yield

    def _measure(self, case: Case, runner: TrialRunner) -> None:
        trials: list[Trial] = []
        error, ceiling = None, None
        try:
            ceiling = harness_ns(case, runner.signals.check)
            for index in range(case.repeat):
                trials.append(runner.run(case, index))
                runner.signals.check()
        except Exception as problem:
            # A worker that fails stops its own case only.
            nothing_yet = not (self._runs or trials or isinstance(problem, WorkerFailure))
            error = kept_reason(problem, case.driver, nothing_yet=nothing_yet)
        finally:
            error = error or next((trial.error for trial in trials if trial.error), None)
            if trials or error:
                self._runs.append(Run(case, tuple(trials), (), ceiling, error))


def asked_study(
    plan: Planned, directory: Path, keep: bool, command: tuple[str, ...]
) -> tuple[Study[Bench], Session]:
    """Return the study of an experiment that has one of its own, else a sweep of the cases."""
    own = plan.experiment
    study = own.open_study(plan.cases, plan.extra) if own and own.study else Sweep(plan.cases)
    return study, Session(plan.cases, directory, keep, command)
