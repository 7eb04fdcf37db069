"""Crash tests through the command line: real writers, killed for real."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from sqlstress.report import Kills, Report, from_json, to_json
from sqlstress.report.schema import report_schema
from tests.cli.conftest import Cli

SHORT = ("--rounds", "3", "--seed", "1")
"""In one round a writer is killed alone, in another one they are killed while they open the files."""


def saved(path: Path) -> Report:
    """Return the saved report, which must fit the schema."""
    report = from_json((path / "crash.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(report_schema()).validate(json.loads(to_json(report)))
    return report


def kills_of(path: Path) -> Kills:
    report = saved(path)
    assert report.crash
    assert report.crash.kills
    return report.crash.kills


@pytest.mark.parametrize("options", [(), ("--journal-mode", "delete", "-b", "3")], ids=["WAL", "journal"])
def test_writers_are_killed_and_nothing_is_lost(cli: Cli, tmp_path: Path, options: tuple[str, ...]) -> None:
    said = cli("crash", *SHORT, *options, "-o", "crash.json")
    assert (said.code, said.err) == (0, "")
    found = kills_of(tmp_path)
    assert (found.rounds, found.kills, found.databases, found.error) == (3, 9, 1, None)
    assert found.acknowledged > 0
    assert found.finished + found.undone + found.opening <= 9
    assert {check.name: check.status for check in found.verdict.checks} == {
        "integrity_check": "ok",
        "acknowledged transactions": "ok",
        "whole transactions": "ok",
        "survivors": "ok",
    }
    assert "Nothing was lost: after 9 kills all of" in said.out
    assert [path.name for path in tmp_path.iterdir()] == ["crash.json"]


def test_a_journal_mode_that_cannot_survive_is_found_out(cli: Cli, tmp_path: Path) -> None:
    options = ("--journal-mode", "off", "--synchronous", "off", "--batch", "100", "--cache-size", "10")
    said = cli("crash", "--rounds", "3", *options, "-o", "crash.json")
    assert said.code == 1
    assert said.err.startswith("Error: FAILED: after 9 kills ")
    assert "journal_mode=OFF keeps nothing on disk to roll back with" in said.err
    found = kills_of(tmp_path)
    assert found.verdict.counterexamples[0].startswith("round ")
    assert found.databases > 1
