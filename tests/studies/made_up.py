"""All studies, with made-up measurements that fail or stop at a chosen point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine.study import Observer, Progress, Study
from sqlstress.engine.trial import TrialRunner
from sqlstress.experiments.crash import study as crash
from sqlstress.experiments.crash.spec import ACKNOWLEDGED, Kills
from sqlstress.experiments.crash.study import KillStudy
from sqlstress.plan import cases_of
from sqlstress.report import Check, LimitSearch, Promise, Report, Trial, Verdict
from sqlstress.report.case import Case
from sqlstress.statistics.sequential import InterimLook
from sqlstress.studies import sweep
from sqlstress.studies.ab import AbStudy
from sqlstress.studies.limit import LimitStudy
from sqlstress.studies.slices import SliceBench
from sqlstress.studies.sweep import Sweep
from tests.ab_report import TEST, trial
from tests.engine.benches import BLANK, bench
from tests.example_report import example_report
from tests.rate_report import rate_trial

TRIAL = example_report().runs[0].trials[0]
CASE = Case(concurrency=2)


class Watching(Observer):
    """Records a study's progress, and fails if it goes backwards."""

    def __init__(self) -> None:
        self.told: list[Progress] = []

    def progress(self, progress: Progress) -> None:
        assert 0 <= progress.done <= progress.total
        assert progress.left_s >= 0
        if self.told:
            assert progress.done >= self.told[-1].done
            assert progress.total >= self.told[-1].total
        self.told.append(progress)


class Trouble:
    """Raises a problem in the chosen measurement."""

    def __init__(self, problem: Exception | None = None, at: int = 0) -> None:
        self.problem, self.at, self.met = problem, at, 0

    def meet(self) -> None:
        """Begin a measurement."""
        self.met += 1
        if self.problem and self.met == self.at + 1:
            raise self.problem


@dataclass(frozen=True)
class MadeUp:
    """A study and its bench."""

    study: Study[Any]
    bench: Any
    measured: Callable[[Report], int]
    """Function that returns the number of measurements in a report."""


Make = Callable[[pytest.MonkeyPatch, Path, Observer, Trouble], MadeUp]


def made_up_sweep(patch: pytest.MonkeyPatch, folder: Path, observer: Observer, trouble: Trouble) -> MadeUp:
    """Return a sweep of four cases."""

    def run(runner: TrialRunner, case: Case, index: int) -> Trial:
        trouble.meet()
        runner.observer.phase("measuring")
        runner.observer.tick(5)
        return TRIAL

    patch.setattr(TrialRunner, "run", run)
    patch.setattr(sweep, "harness_ns", lambda *_: None)
    study = Sweep([Case(concurrency=processes) for processes in (1, 2, 3, 4)])
    return MadeUp(study, bench(folder, observer=observer), lambda report: len(report.runs))


def made_up_ab(patch: pytest.MonkeyPatch, folder: Path, observer: Observer, trouble: Trouble) -> MadeUp:
    """Return an A/B test of two pairs with a single look."""

    def measure(arm: int, case: Case, pair: int) -> Trial:
        trouble.meet()
        return trial(pair)

    study = AbStudy(([CASE], [CASE]), TEST, looks=(InterimLook(2, 0.001),))
    return MadeUp(study, SliceBench(BLANK, observer, measure), _slices)


def made_up_limit(patch: pytest.MonkeyPatch, folder: Path, observer: Observer, trouble: Trouble) -> MadeUp:
    """Return a search whose time ends after a closed loop and three windows."""

    def run(runner: TrialRunner, case: Case, index: int) -> Trial:
        trouble.meet()
        return TRIAL if case.arrivals is None else replace(rate_trial(case.arrivals.rate, 1000), index=index)

    patch.setattr(TrialRunner, "run", run)
    # The clock is read once before each window and twice after it.
    clock = count(0.0, 1.0)
    search = LimitSearch(Promise(p99_s=0.01), max_time_s=10.0)
    study = LimitStudy(CASE, search, "poisson", None, lambda: next(clock))
    return MadeUp(study, bench(folder, observer=observer), _slices)


class _Nothing:
    """A substitute for a database, writers, or a disk image: does nothing, and is a context manager."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., dict[str, str]]:
        return lambda *_, **__: {}


class _Round(_Nothing):
    """A round in which two writers are killed, and nothing is lost."""

    trouble: Trouble
    fallen = None
    verdicts = (Verdict((Check(ACKNOWLEDGED, "ok", 10),)),)

    def kill(self) -> None:
        self.trouble.meet()

    def added_to(self, kills: Kills) -> Kills:
        return replace(kills, rounds=kills.rounds + 1, kills=kills.kills + 2, acknowledged=10)


def made_up_kills(patch: pytest.MonkeyPatch, folder: Path, observer: Observer, trouble: Trouble) -> MadeUp:
    """Return a crash test of four rounds."""
    for name, stand_in in (("CrashDatabase", _Nothing), ("Victims", _Nothing), ("KillRound", _Round)):
        patch.setattr(crash, name, stand_in)
    patch.setattr(_Round, "trouble", trouble, raising=False)
    (case,) = cases_of({}, "crash")
    study = KillStudy(Kills(case, 4))
    return MadeUp(study, bench(folder, observer=observer), lambda report: study.kills.rounds)


def _slices(report: Report) -> int:
    return sum(len(run.trials) for run in report.runs)


STUDIES: dict[str, Make] = {
    "sweep": made_up_sweep,
    "ab": made_up_ab,
    "limit": made_up_limit,
    "crash": made_up_kills,
}
"""Name → function that makes the study with four measurements."""
