"""A whole measurement: every case of a plan, the report saved after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sqlstress.engine import limits
from sqlstress.engine.ceiling import harness_ns
from sqlstress.engine.failure import as_failure
from sqlstress.engine.folder import RunFolder
from sqlstress.engine.observer import Observer
from sqlstress.engine.pool import WorkerFailure
from sqlstress.engine.trial import TrialRunner
from sqlstress.environment import fingerprint
from sqlstress.errors import Interrupted
from sqlstress.experiment import face_of
from sqlstress.report import Environment, Report, Run, Trial
from sqlstress.report.case import Case
from sqlstress.system.interrupt import StopSignals
from sqlstress.targets import target_of

Save = Callable[[Report], None]


class Session:
    """Measures cases in their order, below one fresh folder."""

    def __init__(
        self, cases: tuple[Case, ...], directory: Path, keep: bool, command: tuple[str, ...]
    ) -> None:
        self.cases, self.directory, self.keep, self.command = cases, directory, keep, command
        self.kept_folder: Path | None = None

    def measure(self, save: Save, observer: Observer) -> Report:
        """Measure everything; the report says whether it was interrupted.

        Raises SqlstressError when nothing could be measured at all.
        """
        with self.opened(observer) as (report, runner):
            return self._measure_cases(report, runner, save)

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[tuple[Report, TrialRunner]]:
        """Yield a report without runs, and what runs trials in the folder that is there meanwhile.

        Signals to stop are caught meanwhile: the runner raises Interrupted.
        """
        with StopSignals() as signals:
            limits.provide(max(map(limits.needed, self.cases)))
            with RunFolder(self.directory, self.keep) as folder:
                self.kept_folder = folder.path if self.keep else None
                report = Report(
                    created=datetime.now(UTC).isoformat(timespec="seconds"),
                    command=self.command,
                    environment=self._environment(folder.path),
                    planned=len(self.cases),
                )
                yield report, TrialRunner(folder.path, self.keep, signals, observer, self.cases[0].seed)

    def _environment(self, folder: Path) -> Environment:
        drivers = dict.fromkeys(case.driver for case in self.cases)
        return fingerprint(
            folder,
            [build for name in drivers if (build := target_of(name).describe(name))],
            [case.settings for case in self.cases],
            max(case.concurrency for case in self.cases),
        )

    def _measure_cases(self, report: Report, runner: TrialRunner, save: Save) -> Report:
        for number, case in enumerate(self.cases):
            runner.case_number = number + 1
            runner.observer.case_begins(number, len(self.cases), case)
            reason = face_of(case).is_needless(case, report.runs)
            if reason is None:
                run, interrupted = self._measure_case(case, runner, first=not report.runs)
            else:
                run, interrupted = Run(case, skipped=reason), False
            report = replace(report, interrupted=interrupted)
            if run.trials or run.error or run.skipped:
                report = replace(report, runs=(*report.runs, run))
            if report.runs:
                save(report)
            if interrupted:
                break
            runner.observer.case_ends(run)
        return report

    def _measure_case(self, case: Case, runner: TrialRunner, *, first: bool) -> tuple[Run, bool]:
        """Return the run, and whether it was interrupted: the trials done by then are kept."""
        trials: list[Trial] = []
        error, ceiling, interrupted = None, None, False
        try:
            ceiling = harness_ns(case, runner.signals.check)
            for index in range(case.repeat):
                trials.append(runner.run(case, index))
                runner.signals.check()
        except Interrupted:
            interrupted = True
        except Exception as problem:
            # What stops the first case would stop the others; a worker that fails stops its own case only.
            if first and not trials and not isinstance(problem, WorkerFailure):
                raise as_failure(problem, case.driver) from problem
            error = str(as_failure(problem, case.driver))
        failed = next((trial.error for trial in trials if trial.error), None)
        return Run(case, tuple(trials), (), ceiling, error or failed), interrupted
