"""The experiment with cycles as a user runs it: real processes, real files."""

from __future__ import annotations

import re

import pytest

from sqlstress.experiments.classics import STATEMENTS
from sqlstress.experiments.classics.cycles import setting_of
from sqlstress.statistics.series import WAL_FRAMES
from tests.cli.conftest import Cli, Said, saved

SMALL = ("cycles", "--cycles=4", "--rows=2", "--repeat=1", "--synchronous=off", "-oreport.json")


def settings_shown(said: Said) -> list[str]:
    """Return the first word of each row of the first table."""
    lines = said.out.split("\n-----")[1].split("\n\n")[0].splitlines()[1:]
    return [line.split()[0] for line in lines]


def test_five_settings_are_measured_verified_and_shown(cli: Cli) -> None:
    said = cli(*SMALL)
    assert (said.code, said.err) == (0, "")
    names = ["delete", "delete-tx", "wal", "wal-tx", "wal-tx-off"]
    assert settings_shown(said) == names
    assert max(map(len, said.out.splitlines())) <= 80
    report = saved()
    assert [setting_of(run.case) for run in report.runs] == names
    assert {run.verdict.status for run in report.runs} == {"ok"}
    for run in report.runs:
        (trial,) = run.trials
        lengths = {series.name: len(series.values) for series in trial.series}
        assert lengths[STATEMENTS] == 4
        assert (WAL_FRAMES in lengths) == setting_of(run.case).startswith("wal")


def test_command_shows_the_time_of_a_checkpoint(cli: Cli) -> None:
    said = cli(*SMALL, "--settings", "wal", "--wal-autocheckpoint", "12", "--details")
    assert said.code == 0
    text = " ".join(said.out.split())
    due = "wal-12: the checkpoint at 12 frames was due in cycle 3 (5 commits per cycle, one frame each)."
    assert due in text
    assert re.search(r"It was seen there \([\d.]+ \S+\)\. The slowest cycle except the first", text)


@pytest.mark.thorough
def test_numbers_of_processes_are_rows_of_one_table(cli: Cli) -> None:
    said = cli(*SMALL, "--settings", "delete-cycle,wal", "-c", "1,2")
    assert said.code == 0, said.err
    assert settings_shown(said) == ["delete-cycle", "delete-cycle", "wal", "wal"]
    assert " fair" in said.out
    assert [len(run.trials[0].workers) for run in saved().runs] == [1, 2, 1, 2]


@pytest.mark.thorough
def test_run_given_up_is_no_failure(cli: Cli) -> None:
    said = cli(*SMALL, "--settings", "delete", "--cycles", "100000", "--timeout", "200ms")
    assert (said.code, said.err) == (0, "")
    assert "TIMEOUT" in said.out
    (trial,) = saved().runs[0].trials
    assert trial.outcome == "timeout"
    assert re.fullmatch(r"\d+ of 100000 cycles were done", trial.note)


@pytest.mark.thorough
def test_dry_driver_shows_the_cost_of_the_harness(cli: Cli) -> None:
    said = cli(*SMALL, "--driver", "dry")
    assert said.code == 0
    assert "The dry driver stores nothing" in said.out
    assert {run.verdict.status for run in saved().runs} == {"skipped"}


@pytest.mark.parametrize("level", ["none", "full"])
def test_verify_option_sets_the_depth_of_the_proof(cli: Cli, level: str) -> None:
    assert cli(*SMALL, "--settings", "wal", "--verify", level).code == 0
    names = [check.name for check in saved().runs[0].verdict.checks]
    assert names == {"none": ["verification"], "full": ["integrity_check", "schema", "last commit"]}[level]
