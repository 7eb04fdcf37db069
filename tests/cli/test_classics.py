"""Methods, keys and cycles as a user runs them: small, with real processes and files."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.experiment import case_label
from sqlstress.experiments.classics import STATEMENTS
from sqlstress.experiments.classics.spec import SCHEMAS, setting_of
from sqlstress.report import Report
from sqlstress.statistics.series import WAL_FRAMES
from tests.cli.conftest import Cli, Said, saved
from tests.rows import thorough
from tests.targets.test_analyzer import PROGRAM, assert_same

METHODS = ("--repeat", "1", "--synchronous", "off", "-o", "report.json", "-o", "table.csv", "-o", "page.md")


def outcomes(report: Report) -> dict[str, str]:
    return {
        case_label(run.case): run.trials[0].outcome if run.trials else run.skipped or run.error or ""
        for run in report.runs
    }


@pytest.mark.parametrize(
    ("phase", "scale", "cells"),
    [("insert", "40", 7), thorough("allocate", "12", 9), thorough("query", "36", 7)],
)
def test_phase_is_measured_proved_and_shown(
    cli: Cli, tmp_path: Path, phase: str, scale: str, cells: int
) -> None:
    said = cli("methods", "--phase", phase, "--scale", scale, "--driver", "sqlite3", *METHODS, expected=0)
    assert max(map(len, said.out.splitlines())) <= 80
    report = saved()
    assert len(report.runs) == cells
    assert {run.verdict.status for run in report.runs} == {"ok"}
    assert set(outcomes(report).values()) == {"done"}
    for run in report.runs:
        (trial,) = run.trials
        assert trial.rows == run.case.spec.rows
        assert trial.rows_per_s == pytest.approx(trial.rows / trial.seconds)
        assert set(trial.latency) - {"begin", "commit"} == {phase}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.md", "report.json", "table.csv"]


@pytest.mark.thorough
def test_method_that_times_out_has_no_further_passes_and_no_larger_scales(cli: Cli) -> None:
    # A busy machine may need 0.1 s for ten rows.
    cli(
        *("methods", "--phase=insert", "--scale=10,500000,600000", "--method=1b1", "--timeout=500ms"),
        *("--driver", "sqlite3", *METHODS, "--repeat", "3"),
        expected=0,
    )
    told = outcomes(saved())
    assert told["insert 10 by 1b1, sqlite3, 1 process"] == "done"
    assert told["insert 500,000 by 1b1, sqlite3, 1 process"] == "timeout"
    assert told["insert 600,000 by 1b1, sqlite3, 1 process"] == "1b1 timed out at 500,000 already"
    passes = {run.case.spec.scale: len(run.trials) for run in saved().runs if not run.case.spec.transaction}
    assert passes == {10: 3, 500_000: 1, 600_000: 0}


@pytest.mark.thorough
def test_limit_of_sqlite_is_not_a_time_out(cli: Cli) -> None:
    cli(
        *("methods", "--phase", "query", "--scale", "20,2000,2200", "--method", "blk,json"),
        *("--driver", "sqlite3", *METHODS),
        expected=0,
    )
    told = outcomes(saved())
    assert told["query 20 by BLK, sqlite3, 1 process"] == "done"
    assert told["query 2,000 by BLK, sqlite3, 1 process"] == "limit"
    assert told["query 2,200 by BLK, sqlite3, 1 process"] == "BLK met a limit at 2,000 already"
    assert told["query 2,200 by JSON, sqlite3, 1 process"] == "done"


FEW = ("--users", "40", "--picks", "20", "--items", "100", "--repeat", "1")
KEYS = ("keys", "-c", "2", *FEW, "--synchronous", "off")


def test_measurement_reports_time_and_space_of_every_type(cli: Cli, tmp_path: Path) -> None:
    said = cli(*KEYS, "--id-type", "int,uuid4,ulid", "--details", "-o", "report.json", expected=0)
    runs = saved().runs
    assert [(run.case.spec.schema, run.case.spec.id_type) for run in runs if run.case.spec] == [
        (schema, id_type) for schema in ("id-rowid", "no-key") for id_type in ("int", "uuid4", "ulid")
    ]
    for run in runs:
        (trial,) = run.trials
        assert run.verdict.status == "ok"
        assert (trial.transactions, trial.latency["picks"].count) == (40, 40)
        assert trial.rows == runs[0].trials[0].rows
        assert trial.seconds > 0
        assert trial.space
        assert trial.space.table_alone("picks").total("entries") == trial.rows
    assert said.out.startswith("sqlstress ")
    for text in (
        "40 users pick about 20 of 100 items each",
        "foreign_keys=on",
        "uuid4",
        "indices",
    ):
        assert text in said.out
    assert "published" not in said.out
    assert not list(tmp_path.glob("sqlstress-*"))


@pytest.mark.thorough
@pytest.mark.skipif(PROGRAM is None, reason="sqlite3_analyzer is not installed")
@pytest.mark.parametrize("id_type", ["int", "ulid"])
def test_space_of_every_schema_equals_the_output_of_sqlite3_analyzer(
    cli: Cli, tmp_path: Path, id_type: str
) -> None:
    cli(*KEYS, "--full", "--id-type", id_type, "--users", "200", "--keep", "-o", "report.json", expected=0)
    runs = {run.case.spec.schema: run for run in saved().runs if run.case.spec}
    assert tuple(runs) == SCHEMAS
    for number, run in enumerate(runs.values(), 1):
        (path,) = tmp_path.glob(f"sqlstress-*/case-{number}-*/kv.db")
        space = run.trials[0].space
        assert space
        assert space.indices_of("picks").fan_out
        assert_same(space, path)
        with closing(sqlite3.connect(path)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM picks").fetchone()
        assert count == run.trials[0].rows
    for folder in tmp_path.glob("sqlstress-*"):
        shutil.rmtree(folder)


CYCLES = ("cycles", "--cycles=4", "--rows=2", "--repeat=1", "--synchronous=off", "-oreport.json")


def settings_shown(said: Said) -> list[str]:
    """Return the first word of each row of the first table."""
    lines = said.out.split("\n-----")[1].split("\n\n")[0].splitlines()[1:]
    return [line.split()[0] for line in lines]


def test_five_settings_are_measured_proved_and_shown(cli: Cli) -> None:
    said = cli(*CYCLES, expected=0)
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


def test_time_of_a_checkpoint_is_seen_from_the_command_line(cli: Cli) -> None:
    said = cli(*CYCLES, "--settings", "wal", "--wal-autocheckpoint", "12", "--details")
    assert said.code == 0
    seen = r"wal-12: a checkpoint was seen in cycle 3\. The slowest cycle except the first is \d"
    assert re.search(seen, said.text)


@pytest.mark.thorough
def test_run_that_is_given_up_is_no_failure(cli: Cli) -> None:
    said = cli(*CYCLES, "--settings", "delete", "--cycles", "100000", "--timeout", "200ms", expected=0)
    assert "TIMEOUT" in said.out
    (trial,) = saved().runs[0].trials
    assert trial.outcome == "timeout"
    assert re.fullmatch(r"\d+ of 100000 cycles were done", trial.note)


@pytest.mark.thorough
def test_dry_driver_shows_what_the_harness_costs(cli: Cli) -> None:
    said = cli(*CYCLES, "--driver", "dry")
    assert said.code == 0
    assert "The dry driver stores nothing" in said.out
    assert {run.verdict.status for run in saved().runs} == {"skipped"}


@pytest.mark.parametrize("level", ["none", "full"])
def test_verify_option_sets_the_depth_of_the_proof(cli: Cli, level: str) -> None:
    assert cli(*CYCLES, "--settings", "wal", "--verify", level).code == 0
    names = [check.name for check in saved().runs[0].verdict.checks]
    assert names == {"none": ["verification"], "full": ["integrity_check", "schema", "last commit"]}[level]
