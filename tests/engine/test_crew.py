"""Workers stay for a next trial of a similar case, hold no files between trials, and end with the crew."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from sqlstress.engine.pool import IdleWorkers
from sqlstress.engine.study import SILENT
from sqlstress.engine.trial import TrialRunner
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report import Trial
from sqlstress.report.case import Case, Settings
from sqlstress.system.interrupt import StopSignals
from sqlstress.system.processes import process_starter
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
    """Trials of cases in a folder, with workers that stay between them."""

    def __init__(self, runner: TrialRunner, crew: IdleWorkers) -> None:
        self._runner, self._crew = runner, crew

    def run(self, case: Case) -> Trial:
        trial = self._runner.run(case, 0)
        assert (trial.error, trial.verdict.status) == (None, "ok")
        assert trial.transactions == 20 * case.concurrency
        return trial

    def sleeping(self) -> dict[int, psutil.Process]:
        return {number: psutil.Process(process.pid) for number, (process, _) in self._crew._sleeping.items()}


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    with process_starter(["sqlstress.engine.worker"]) as starter, IdleWorkers() as crew:
        runner = TrialRunner(tmp_path, False, StopSignals(), SILENT, 0, starter, crew=crew)
        yield Sweep(runner, crew)
        last = Sweep(runner, crew).sleeping()
    assert not any(process.is_running() for process in last.values())


def test_workers_stay_for_the_next_trial_even_if_fewer_are_needed(sweep: Sweep) -> None:
    sweep.run(CASE)
    first = sweep.sleeping()
    assert list(first) == [1, 2]
    sweep.run(replace(CASE, concurrency=1))
    sweep.run(replace(CASE, ops=20))
    assert sweep.sleeping() == first


def test_sleeping_worker_has_no_file_open(sweep: Sweep, tmp_path: Path) -> None:
    sweep.run(CASE)
    assert [file for process in sweep.sleeping().values() for file in process.open_files()] == []


@fault("workers", "a worker killed between two trials", "the next trial starts another one")
def test_worker_killed_between_trials_is_replaced(sweep: Sweep) -> None:
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
def test_workers_are_replaced_for_a_dissimilar_case(sweep: Sweep, other: Case) -> None:
    sweep.run(CASE)
    first = sweep.sleeping()
    sweep.run(other)
    assert not {*first.values()} & {*sweep.sleeping().values()}
    assert not any(process.is_running() for process in first.values())


def test_workers_with_where_do_not_stay(sweep: Sweep) -> None:
    sweep.run(replace(CASE, spec=Load(key_space=50, where=True)))
    assert sweep.sleeping() == {}


def test_companions_leave_and_workers_stay(sweep: Sweep) -> None:
    spec = replace(CASE.spec, checkpointing=Checkpointing("passive", 0.01))
    sweep.run(replace(CASE, spec=spec))
    assert list(sweep.sleeping()) == [1, 2]
