"""Slices: single trials of one arm, by the Python that runs sqlstress or by another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sqlstress.engine.observer import Observer
from sqlstress.engine.session import Session
from sqlstress.errors import EnvironmentFailure
from sqlstress.report import AbTest, Arm, Report, Run, Trial
from sqlstress.report.case import Case
from sqlstress.studies.python import Python
from sqlstress.studies.same_loop import check_loops
from sqlstress.system.interrupt import StopSignals

SALTS = 16
"""Numbers between the salts of two pairs: more than a trial is begun again."""
Measure = Callable[[int, Case, int], Trial]
"""(arm, 0 or 1; case; pair) → the trial, its index that of the pair. Raises SqlstressError."""


@dataclass(frozen=True, slots=True)
class SliceBench:
    """Where slices are measured."""

    report: Report
    """Without runs: when, by which command, where."""
    observer: Observer
    measure: Measure
    learn: Callable[[AbTest], AbTest] = lambda test: test
    """Adds to an A/B test what is known of its arms."""
    told: Callable[[int, Case], Case] = lambda arm, case: case
    """(arm, case) → the case as that arm's Python measures it."""


class OwnPython:
    """Opens benches whose slices are trials of this process."""

    kept_folder = None

    def __init__(self, cases: Sequence[Case], directory: Path, command: tuple[str, ...]) -> None:
        self._session = Session(tuple(cases), directory, False, command)

    @property
    def stayed(self) -> tuple[Path, ...]:
        return self._session.stayed

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[SliceBench]:
        """Yield a bench, in a folder that is removed afterwards."""
        with self._session.opened(observer) as bench:

            def measure(arm: int, case: Case, pair: int) -> Trial:
                bench.runner.salt = case.seed + pair * SALTS
                return bench.runner.run(case, pair)

            yield SliceBench(bench.report, observer, measure)


class OtherPythons:
    """Opens benches whose slices are whole runs of sqlstress, each by the Python of its arm."""

    kept_folder = None
    stayed = ()

    def __init__(
        self, pythons: tuple[Python, Python], cases: tuple[Case, Case], command: tuple[str, ...]
    ) -> None:
        """`cases` are the first ones of the arms: with them the Pythons are tasted."""
        self._pythons, self._cases, self._command = pythons, cases, command

    @contextmanager
    def opened(self, observer: Observer) -> Iterator[SliceBench]:
        """Yield a bench, when both Pythons have been tasted."""
        with StopSignals() as signals:
            tasted = [
                python.run([*python.words(case, 0), *python.taste()], signals.check)
                for python, case in zip(self._pythons, self._cases, strict=True)
            ]

            def measure(arm: int, case: Case, pair: int) -> Trial:
                python = self._pythons[arm]
                report = python.run(python.words(case, pair), signals.check)
                signals.check()
                return replace(_trial(python.name, report), index=pair)

            measured = [_case(case, report) for case, report in zip(self._cases, tasted, strict=True)]
            check_loops((measured[0], measured[1]), [python.options for python in self._pythons])

            def told(arm: int, case: Case) -> Case:
                return replace(case, spec=measured[arm].spec)

            created = datetime.now(UTC).isoformat(timespec="seconds")
            report = Report(created=created, command=self._command, environment=tasted[0].environment)
            yield SliceBench(report, observer, measure, lambda test: _learned(test, tasted), told)


def _case(case: Case, tasted: Report) -> Case:
    """Return a case as another Python has measured it: an older one may lack some of what it asks for."""
    return next((run.case for run in tasted.runs), case)


def _learned(test: AbTest, tasted: Sequence[Report]) -> AbTest:
    a, b = (_known(arm, report) for arm, report in zip(test.arms, tasted, strict=True))
    return replace(test, arms=(a, b))


def _known(arm: Arm, tasted: Report) -> Arm:
    environment = tasted.environment
    return replace(
        arm, version=environment.host.python, tool_version=tasted.tool_version, builds=environment.builds
    )


def _trial(name: str, report: Report) -> Trial:
    run: Run | None = next(iter(report.runs), None)
    if run is None or not run.trials:
        raise EnvironmentFailure(f"{name} measured nothing: {run.error if run else 'its report is empty'}.")
    return run.trials[0]
