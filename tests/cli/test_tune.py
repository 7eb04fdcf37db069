"""The search for better settings through the command line: made-up slices, and real ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.trial import TrialRunner
from sqlstress.errors import UsageError
from sqlstress.experiments.tune.experiment import Tuning
from sqlstress.experiments.tune.study import TuneStudy
from sqlstress.report import Trial
from sqlstress.report.case import Case
from tests.cli.conftest import Cli, saved
from tests.example_report import example_report
from tests.rows import thorough

TUNE = ("tune", "-o", "tune.json", "--no-progress", "--dir", ".", "--seed", "5", "--max-time", "100s")
TRIAL = example_report().runs[0].trials[0]


class Machine:
    """Made-up slices of a second each; a larger WAL does more, and waiting fairly less."""

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self.meets: Callable[[TrialRunner, Case], None] = lambda runner, case: None
        self.gain = 1.3

    def run(self, runner: TrialRunner, case: Case, index: int) -> Trial:
        self.cases.append(case)
        self.meets(runner, case)
        rate = 1000 * math.exp(0.01 * (len(self.cases) * 7 % 5))
        if case.settings.wal_autocheckpoint == 10_000:
            rate *= self.gain
        if case.settings.busy == "fair":
            rate *= 0.7
        return replace(TRIAL, index=index, tps=rate)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made_up = Machine()
    monkeypatch.setattr(TrialRunner, "run", lambda runner, case, index: made_up.run(runner, case, index))
    seconds = (lambda: float(len(made_up.cases)),)
    monkeypatch.setattr(TuneStudy.__init__, "__defaults__", seconds)
    return made_up


def found() -> Tuning:
    result = saved("tune.json").results["tune"]
    assert isinstance(result, Tuning)
    return result


def test_it_finds_what_does_more_and_ends_with_a_line_to_paste(machine: Machine, cli: Cli) -> None:
    said = cli(*TUNE)
    assert said.code == 0
    assert "Better: --wal-autocheckpoint 10000 reaches 1.3 times the default (" in " ".join(said.out.split())
    assert "To paste: PRAGMA wal_autocheckpoint = 10000;" in said.out
    result = found()
    assert result.gain is not None and result.gain.low > 1.2
    assert 95 <= len(machine.cases) <= 112
    assert {case.settings.journal_mode for case in machine.cases} == {"wal"}
    assert {case.settings.synchronous for case in machine.cases} == {"full"}
    assert saved("tune.json").runs[0].arm == "design"


def test_where_nothing_does_more_the_default_is_as_good(machine: Machine, cli: Cli) -> None:
    machine.gain = 1.0
    said = cli(*TUNE)
    assert said.code == 0
    assert "The default is as good. " in said.out
    assert "To paste" not in said.out


@pytest.mark.thorough
def test_what_was_given_stays_in_every_slice(machine: Machine, cli: Cli) -> None:
    assert cli(*TUNE, "--page-size", "2048", "--busy", "default", "-c", "3", "--buckets", "2,4").code == 0
    assert {(case.settings.page_size, case.settings.busy, case.concurrency) for case in machine.cases} == {
        (2048, "default", 3)
    }
    assert {case.buckets for case in machine.cases} == {2, 4}
    assert found().factors == ("checkpoints", "cache-size", "mmap-size", "buckets")


@pytest.mark.thorough
def test_what_sqlite_refuses_is_said_and_the_rest_is_searched(machine: Machine, cli: Cli) -> None:
    def meets(_: TrialRunner, case: Case) -> None:
        if case.settings.mmap_size:
            raise UsageError("PRAGMA mmap_size: asked for 268435456, SQLite answers 0.")

    machine.meets = meets
    said = cli(*TUNE)
    assert said.code == 0
    assert "Better: --wal-autocheckpoint 10000 reaches" in " ".join(said.out.split())
    assert "SQLite answers 0" in said.out
    assert sum(bool(case.settings.mmap_size) for case in machine.cases) <= 4
    assert found().error is None


def test_a_default_that_sqlite_refuses_is_an_error(machine: Machine, cli: Cli, tmp_path: Path) -> None:
    def meets(_: TrialRunner, case: Case) -> None:
        raise UsageError("PRAGMA temp_store=7 was not accepted: SQLite answers default.")

    machine.meets = meets
    said = cli(*TUNE, "--pragma", "temp_store=7")
    assert said.code == 2
    assert said.lines[0].startswith("Error: PRAGMA temp_store=7 was not accepted")
    assert not (tmp_path / "tune.json").exists()


def stopped(runner: TrialRunner) -> None:
    runner.signals.caught = 2
    runner.signals.check()


@pytest.mark.parametrize(
    ("after", "said"), [thorough(10, "10 slices of the design"), (60, "and a race of 6")]
)
def test_ctrl_c_keeps_what_was_learnt_and_says_it(machine: Machine, cli: Cli, after: int, said: str) -> None:
    machine.meets = lambda runner, case: stopped(runner) if len(machine.cases) > after else None
    ended = cli(*TUNE)
    assert ended.code == 130
    assert ended.lines[0].startswith("Stopped after ")
    assert said in ended.err
    assert "Cannot tell whether anything is better" in ended.out
    assert saved("tune.json").interrupted


@pytest.mark.thorough
def test_a_real_search_comes_to_an_end_and_leaves_no_file(cli: Cli, tmp_path: Path) -> None:
    options = ("--duration", "300ms", "--warmup", "50ms", "--key-space", "200", "-c", "2")
    said = cli(*TUNE[:-1], "5s", "--synchronous", "off", *options)
    assert said.code == 0, said.err
    report = saved("tune.json")
    assert all(run.verdict.status == "ok" for run in report.runs)
    assert {run.arm for run in report.runs} <= {"design", "race", "fresh"}
    assert [path.name for path in tmp_path.iterdir()] == ["tune.json"]
