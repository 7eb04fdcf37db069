"""A sweep: cases in passes, a trial of each; and which study it is that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sqlstress.engine.ceiling import harness_ns
from sqlstress.engine.failure import HUNG, kept_reason
from sqlstress.engine.pool import WorkerFailure
from sqlstress.engine.session import Bench, Session
from sqlstress.engine.study import Steps, Study
from sqlstress.engine.trial import TrialRunner
from sqlstress.environment.synccost import measure
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiment import face_of
from sqlstress.plan import Planned
from sqlstress.report import Report, Run, SyncCost
from sqlstress.report.case import Case
from sqlstress.studies.pace import Pace
from sqlstress.studies.passes import Turn, turns


class Sweep:
    """Measures cases; a step is a trial of one of them."""

    save_every_s = 0.0

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = tuple(cases)
        self._runs: dict[int, Run] = {}
        """By the place of their cases."""
        self._sync_after: SyncCost | None = None

    def report(self, blank: Report) -> Report:
        """Return the cases that have been measured, in the order in which they were asked for."""
        runs = tuple(_whole(self._runs[index]) for index in sorted(self._runs) if _says(self._runs[index]))
        environment = replace(blank.environment, sync_after=self._sync_after)
        return replace(blank, runs=runs, planned=len(self.cases), environment=environment)

    def steps(self, bench: Bench) -> Steps:
        """Measure all cases. What stops the first one would stop the others, and is raised."""
        order, runner = list(turns(self.cases)), bench.runner
        runner.observer = pace = Pace(self.cases, order, runner.observer)
        for number, turn in enumerate(order):
            pace.begin(number)
            runner.case_number, runner.step = turn.case + 1, number
            try:
                self._take(turn, runner)
            except Exception as problem:
                # A worker that fails stops its own case only.
                nothing_yet = not (any(map(_says, self._runs.values())) or isinstance(problem, WorkerFailure))
                error = kept_reason(problem, self.cases[turn.case].driver, nothing_yet=nothing_yet)
                # Of what went wrong, the first thing explains the others.
                run = _whole(self._runs[turn.case])
                self._runs[turn.case] = replace(run, error=run.error or error)
            if number == len(order) - 1:
                self._sync_after = _sync_now(bench)
            yield

    def _take(self, turn: Turn, runner: TrialRunner) -> None:
        """Run a trial of a case, unless the case has ended by now, or need not be measured."""
        run = self._runs.get(turn.case) or self._begin(turn.case, runner)
        if run.error or run.skipped:
            return
        trial = runner.run(run.case, turn.number)
        # What hangs would do so in the next pass, and that takes its time.
        hung = any((one.error or "").startswith(HUNG) for one in trial.workers)
        self._runs[turn.case] = replace(
            run, trials=(*run.trials, trial), error=trial.error if hung else run.error
        )
        runner.signals.check()

    def _begin(self, index: int, runner: TrialRunner) -> Run:
        """Learn whether a case need be measured, and what the harness alone costs in it."""
        case = self.cases[index]
        reason = face_of(case).is_needless(case, tuple(self._runs.values()))
        self._runs[index] = Run(case, skipped=reason)
        if reason is None:
            self._runs[index] = Run(case, harness_ns=harness_ns(case, runner.signals.check))
        return self._runs[index]


def _sync_now(bench: Bench) -> SyncCost | None:
    """Return what a sync costs now, where somebody syncs; None where that can't be learned any more."""
    before = bench.report.environment.sync
    if not before or not bench.report.environment.builds:
        return None
    with suppress(EnvironmentFailure):
        return measure(bench.runner.folder, (before.primitive,))
    return None


def _says(run: Run) -> bool:
    """Return whether there is anything to report of a run, which may only have begun."""
    return bool(run.trials or run.error or run.skipped)


def _whole(run: Run) -> Run:
    """Return a run; where one of its trials is not valid, the run says so too."""
    return replace(run, error=run.error or next((trial.error for trial in run.trials if trial.error), None))


def asked_study(
    plan: Planned, directory: Path, keep: bool, command: tuple[str, ...]
) -> tuple[Study[Bench], Session]:
    """Return the study of an experiment that has one of its own, else a sweep of the cases."""
    own = plan.experiment
    study = own.open_study(plan.cases, plan.extra) if own and own.study else Sweep(plan.cases)
    return study, Session(plan.cases, directory, keep, command)
