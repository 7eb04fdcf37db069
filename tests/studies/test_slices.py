"""Single slices, in this Python and in other interpreters."""

import os
import sqlite3
import sys
import venv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from sqlstress.engine.omissions import RERUNS
from sqlstress.engine.study import SILENT
from sqlstress.engine.trial import MAX_RERUNS, TrialRunner
from sqlstress.errors import EnvironmentFailure, Interrupted, UsageError
from sqlstress.experiments.kv.spec import Load
from sqlstress.plan import cases_of
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import Case
from sqlstress.report.results import Sighting
from sqlstress.studies.slices import OtherPythons, OwnPython, Python
from sqlstress.user_work import REHEARSAL_TOPICS
from tests.ab_report import EXAMPLE, TEST, trial
from tests.conftest import command_of
from tests.rows import fault

ROOT = Path(__file__).parents[2]
CASE = Case(concurrency=1, duration_s=0.05, warmup_s=0.1, spec=Load(key_space=200), seed=3)
SHORT = {"duration": "50ms", "warmup": "100ms", "key-space": "200"}


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let other interpreters find this checkout's package."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def no_interruption() -> None:
    """Do not interrupt."""


def test_slices_of_a_pair_share_a_salt_that_differs_by_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    salts = []

    def run(self: TrialRunner, case: Case, index: int) -> Trial:
        salts.append(self.salt)
        self.salt += 3  # the trial was repeated
        return trial(index)

    monkeypatch.setattr(TrialRunner, "run", run)
    with OwnPython((CASE,), tmp_path, ()).opened(SILENT) as bench:
        for pair in (0, 1):
            for arm in (0, 1):
                bench.measure(arm, CASE, pair)
    assert salts[0] == salts[1] < salts[0] + 3 < salts[2] == salts[3]


def test_slice_of_this_python_is_verified_and_leaves_nothing(tmp_path: Path) -> None:
    with OwnPython((CASE,), tmp_path, ("sqlstress", "ab")).opened(SILENT) as bench:
        measured = bench.measure(0, CASE, 4)
        assert bench.learn(TEST) == TEST
    assert (measured.index, measured.error, measured.verdict.status) == (4, None, "ok")
    assert (bench.report.command, bench.report.runs) == (("sqlstress", "ab"), ())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_slice_of_another_python_is_verified_and_describes_it(tmp_path: Path) -> None:
    a, b = (Python(sys.executable, {**SHORT, "synchronous": level}, tmp_path) for level in ("full", "off"))
    with OtherPythons((a, b), (CASE, CASE), ()).opened(SILENT) as bench:
        trials = [bench.measure(arm, CASE, 2) for arm in (0, 1)]
        test = bench.learn(TEST)
    assert [measured.effective["synchronous"] for measured in trials] == ["full", "off"]
    assert {(measured.index, measured.error, measured.verdict.status) for measured in trials} == {
        (2, None, "ok")
    }
    for arm in test.arms:
        assert arm.version.endswith(sys.version.split()[0])
        assert [build.version for build in arm.builds] == [sqlite3.sqlite_version]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_only_first_slice_of_an_arm_measures_costs_and_is_rehearsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[Report] = []

    def run(*arguments: Any) -> Report:
        reports.append(original(*arguments))
        return reports[-1]

    original = Python.run
    monkeypatch.setattr(Python, "run", run)
    file = str(ROOT / "examples" / "app" / "bank_wrong.py")
    options = {"file": file, "ops": "20", "concurrency": "1"}
    (case,) = cases_of({**options, "repeat": 1, "seed": 3}, "app")
    python = Python(sys.executable, options, tmp_path, "app")
    with OtherPythons((python, python), (case, case), ()).opened(SILENT) as bench:
        trials = [bench.measure(0, case, pair) for pair in range(2)]
    rehearsed = [bool(rehearsal_of(report.runs[0].trials[0])) for report in reports]
    assert rehearsed == [False, False, True, False]
    assert rehearsal_of(trials[0]) == rehearsal_of(trials[1])
    measured = [True, True, False, False]
    assert [report.environment.sync_after is not None for report in reports] == measured
    assert [report.runs[0].harness_ns is not None for report in reports] == measured


def test_repeats_are_limited_for_all_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repeats = list[bool]()

    def run(python: Python, words: object, check: object, omissions: Sequence[str]) -> Report:
        repeats.append(RERUNS not in omissions)
        return replace(EXAMPLE, runs=(Run(CASE, (replace(trial(0), attempts=2),)),))

    monkeypatch.setattr(Python, "run", run)
    python = Python("python", {}, tmp_path)
    with OtherPythons((python, python), (CASE, CASE), ()).opened(SILENT) as bench:
        for pair in range(MAX_RERUNS + 1):
            bench.measure(pair % 2, CASE, pair)
    assert repeats[2:] == [True] * MAX_RERUNS + [False]


def rehearsal_of(trial: Trial) -> list[Sighting]:
    return [sighting for sighting in trial.sightings if sighting.topic in REHEARSAL_TOPICS]


def test_options_are_passed_as_typed_with_the_seed_of_the_pair(tmp_path: Path) -> None:
    options = {"pragma": ("a=1", "b=2"), "pinned-reader": True, "concurrency": "1-8", "read-ratio": "0.9"}
    command = Python("python", options, tmp_path).words(replace(CASE, concurrency=4, buckets=20), 5)
    assert command == [
        "--pragma=a=1", "--pragma=b=2", "--pinned-reader", "--concurrency=4", "--read-ratio=0.9",
            "--repeat=1",
        "--buckets=20", "--seed=8",
    ]  # fmt: skip


def test_missing_interpreter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot start .*nope.*Name an interpreter"):
        Python(str(tmp_path / "nope"), {}, tmp_path).run([], no_interruption)


def test_python_without_sqlstress_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "sqlstress").mkdir()
    monkeypatch.chdir(tmp_path)
    venv.create(tmp_path / "bare", symlinks=sys.platform != "win32")
    (bare,) = (*tmp_path.glob("bare/bin/python"), *tmp_path.glob("bare/Scripts/python.exe"))
    with pytest.raises(
        EnvironmentFailure, match=r"No module named .?sqlstress.*Check that sqlstress is installed there"
    ):
        Python(str(bare), {}, tmp_path).run([], no_interruption)


def test_option_unknown_to_the_other_sqlstress_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot measure: No such option"):
        Python(sys.executable, {}, tmp_path).run(["--newest-option"], no_interruption)


@pytest.mark.thorough
@fault(
    "stop", "a slice of another Python in `ab` stopped", "exit 130; its processes and databases are gone too"
)
def test_stopped_slice_removes_its_process_and_databases(tmp_path: Path) -> None:
    calls = 0

    def stop() -> None:
        nonlocal calls
        calls += 1
        if any(tmp_path.glob("sqlstress-*/kv.db")) or calls > 200:
            raise Interrupted("stopped by SIGINT")

    with pytest.raises(Interrupted):
        Python(sys.executable, {}, tmp_path).run(["--duration=60s", "-c", "1"], stop)
    assert calls <= 200
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_workers_of_a_slice_do_not_inherit_its_pipe(tmp_path: Path) -> None:
    inputs = list[str]()

    def look() -> None:
        family = psutil.Process().children(recursive=True)
        workers = [process for process in family if "--multiprocessing-fork" in command_of(process)]
        inputs.extend(str(Path(f"/proc/{process.pid}/fd/0").readlink()) for process in workers)
        if inputs:
            raise Interrupted("seen")

    with pytest.raises(Interrupted, match="seen"):
        Python(sys.executable, {}, tmp_path).run(["--duration=60s", "-c", "1"], look)
    assert set(inputs) == {os.devnull}
    assert list(tmp_path.iterdir()) == []


def test_positional_arguments_come_after_all_options(tmp_path: Path) -> None:
    scripts = Python("python", {"script": ("a.sql", "b.sql@2"), "setup": "s.sql"}, tmp_path, "sql")
    assert scripts.words(CASE, 0) == ["--setup=s.sql", "--repeat=1", "--concurrency=1", "--seed=3"]
    assert scripts.positional_words == ["--", "a.sql", "b.sql@2"]
    app = Python("python", {"file": "bank.py"}, tmp_path, "app")
    assert app.positional_words == ["--", "bank.py"]
    command = Python("python", {"command": ("tool", "--fast"), "alone": True}, tmp_path, "exec")
    assert command.words(CASE, 0)[0] == "--alone" and command.positional_words == ["--", "tool", "--fast"]
