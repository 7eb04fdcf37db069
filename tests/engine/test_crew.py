"""Workers stay for a next trial that is alike, hold nothing meanwhile, and leave in the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from sqlstress.engine.pool import Crew
from sqlstress.engine.study import NOBODY
from sqlstress.engine.trial import TrialRunner
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report import Trial
from sqlstress.report.case import Case, Settings
from sqlstress.system.interrupt import StopSignals
from sqlstress.system.processes import starting
from tests.rows import fault, thorough

CASE = Case(
    concurrency=2,
    ops=20,
    duration_s=0.0,
    warmup_s=0.0,
    spec=Load(key_space=50),
    settings=Settings(synchronous="off"),
)


class Sweep:
    """Trials of cases in a folder, with the workers who stay between them."""

    def __init__(self, runner: TrialRunner, crew: Crew) -> None:
        self._runner, self._crew = runner, crew

    def run(self, case: Case) -> Trial:
        trial = self._runner.run(case, 0)
        assert (trial.error, trial.verdict.status) == (None, "ok")
        assert trial.transactions == 20 * case.concurrency
        return trial

    def sleeping(self) -> dict[int, psutil.Process]:
        return {number: psutil.Process(one.pid) for number, (one, _) in self._crew._sleeping.items()}


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    with starting(["sqlstress.engine.worker"]) as starter, Crew() as crew:
        runner = TrialRunner(tmp_path, False, StopSignals(), NOBODY, 0, starter, crew=crew)
        yield Sweep(runner, crew)
        last = Sweep(runner, crew).sleeping()
    assert not any(process.is_running() for process in last.values())


def test_workers_stay_for_the_next_trial_and_some_sleep_while_fewer_are_needed(sweep: Sweep) -> None:
    sweep.run(CASE)
    first = sweep.sleeping()
    assert list(first) == [1, 2]
    sweep.run(replace(CASE, concurrency=1))
    sweep.run(replace(CASE, ops=20))
    assert sweep.sleeping() == first


def test_who_sleeps_has_no_file_open(sweep: Sweep, tmp_path: Path) -> None:
    sweep.run(CASE)
    assert [one for process in sweep.sleeping().values() for one in process.open_files()] == []


@fault("workers", "a worker killed between two trials", "the next trial starts another one")
def test_who_was_killed_in_its_sleep_is_replaced(sweep: Sweep) -> None:
    sweep.run(CASE)
    first = sweep.sleeping()
    first[2].kill()
    first[2].wait()
    sweep.run(CASE)
    after = sweep.sleeping()
    assert after[1] == first[1]
    assert after[2] != first[2]


@pytest.mark.parametrize(
    "other",
    [
        replace(CASE, settings=Settings(synchronous="off", pragmas=(("soft_heap_limit", "9000000"),))),
        thorough(replace(CASE, buckets=2)),
    ],
    ids=["settings", "layout"],
)
def test_nobody_stays_for_what_is_not_alike(sweep: Sweep, other: Case) -> None:
    sweep.run(CASE)
    first = sweep.sleeping()
    sweep.run(other)
    assert not {*first.values()} & {*sweep.sleeping().values()}
    assert not any(process.is_running() for process in first.values())


def test_who_looks_where_the_time_goes_does_not_stay(sweep: Sweep) -> None:
    sweep.run(replace(CASE, spec=Load(key_space=50, where=True)))
    assert sweep.sleeping() == {}


def test_companions_leave_and_workers_stay(sweep: Sweep) -> None:
    spec = replace(CASE.spec, checkpointing=Checkpointing("passive", 0.01))
    sweep.run(replace(CASE, spec=spec))
    assert list(sweep.sleeping()) == [1, 2]
