"""Crash tests through the command line: real writers, killed for real."""

from pathlib import Path

import pytest

from sqlstress.experiments.crash.spec import Kills
from sqlstress.experiments.crash.study import KillPlan
from sqlstress.report import to_json
from tests.cli.conftest import Cli, assert_refused, saved
from tests.crash_report import crash_report
from tests.rows import fault, thorough

SHORT = ("--rounds", "3", "--seed", "1")
"""In one round a single writer is killed, in another round all are killed while they open the files."""


def kills_of() -> Kills:
    report = saved("crash.json")
    kills = report.results["crash"]
    assert isinstance(kills, Kills)
    return kills


@fault(
    "crash",
    "all writers killed at one moment, again and again",
    "exit 0; all acknowledged transactions are there, none is torn",
)
@pytest.mark.parametrize(
    "options", [(), thorough(("--journal-mode", "delete", "-b", "3"))], ids=["WAL", "journal"]
)
def test_writers_are_killed_and_nothing_is_lost(cli: Cli, tmp_path: Path, options: tuple[str, ...]) -> None:
    said = cli("crash", *SHORT, *options, "-o", "crash.json", expected=0)
    found = kills_of()
    assert (found.rounds, found.kills, found.databases, found.error) == (3, 9, 1, None)
    assert found.acknowledged > 0
    assert found.finished + found.undone + found.opening <= 9
    assert {check.name: check.status for check in found.verdict.checks} == {
        "integrity_check": "ok",
        "acknowledged transactions": "ok",
        "whole transactions": "ok",
        "survivors": "ok",
    }
    assert "Nothing was lost: " in said.out and "survived 9 kills" in said.text
    assert [path.name for path in tmp_path.iterdir()] == ["crash.json"]


DAMAGING = (
    *("--rounds", "4", "--seed", "0", "--journal-mode", "off", "--synchronous", "off"),
    *("--batch", "100", "--cache-size", "10"),
)
"""Options with which killed writers leave torn records."""


@pytest.mark.thorough
@fault("crash", "writers without a journal killed", "exit 1; which records are torn, and what to use instead")
def test_unsafe_journal_mode_fails(cli: Cli) -> None:
    said = cli("crash", *DAMAGING, "-o", "crash.json")
    assert said.code == 1
    assert said.err == "", "the report says it, and once is enough"
    assert "FAILED: after 12 kills, " in said.out
    assert "journal_mode=OFF keeps nothing on disk to roll back with" in said.text
    found = kills_of()
    assert found.verdict.counterexamples[0].startswith("round ")
    assert found.databases > 1


@pytest.mark.thorough
def test_quiet_failure_is_one_line_on_stderr(cli: Cli) -> None:
    error = assert_refused(cli("crash", *DAMAGING, "--quiet"), 1)
    assert error.startswith("Error: FAILED: after 12 kills, ")


def test_crash_test_without_evidence_is_inconclusive(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = KillPlan(opening=True, after_s=0.0, order=(1,), alone=False, then_s=0.0, held=False)
    monkeypatch.setattr("sqlstress.experiments.crash.study.draw", lambda seed, number, writers: at_once)
    said = cli("crash", "--rounds", "1", "-c", "1", expected=3)
    assert "Nothing is proved" in said.out


def test_keep_leaves_the_databases_in_the_printed_folder(cli: Cli, tmp_path: Path) -> None:
    said = cli("crash", "--rounds", "1", "-c", "1", "--keep")
    (folder,) = tmp_path.iterdir()
    assert (folder / "kv.db").exists()
    assert said.out.endswith(f"The databases are kept in {folder.name}.\n")


def test_saved_crash_test_is_shown_but_neither_checked_nor_compared(cli: Cli, tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / f"{name}.json").write_text(to_json(crash_report()), encoding="utf-8")
    assert "Nothing was lost" in cli("report", "one.json").out
    for arguments, told in (
        (("report", "one.json", "-o", "one.csv"), "csv holds the figures of cases"),
        (("check", "one.json", "other.json"), "a crash test has its own verdict"),
        (("compare", "one.json", "other.json"), "a crash test has its own verdict"),
    ):
        said = cli(*arguments)
        assert (said.code, len(said.lines)) == (2, 1)
        assert told in said.err


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [(), ("--buckets", "4"), ("--synchronous", "off"), ("--journal-mode", "delete")],
    ids=["WAL", "4 buckets", "OFF", "DELETE"],
)
def test_thousand_kills_lose_nothing(cli: Cli, options: tuple[str, ...]) -> None:
    cli("crash", "--rounds", "334", *options, "-o", "crash.json", expected=0)
    found = kills_of()
    assert (found.kills, found.lost_count, found.torn_count) == (1002, 0, 0)
    assert found.wals + found.hot_journals > 0
