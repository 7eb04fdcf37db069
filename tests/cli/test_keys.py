"""Small real measurements of primary keys, from the command line to the report."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sqlstress.experiments.classics.spec import SCHEMAS
from sqlstress.targets.sqlite import space as spaces
from tests.cli.conftest import Cli, saved
from tests.targets.test_analyzer import PROGRAM, assert_same

FEW = ("--users", "40", "--picks", "20", "--items", "100", "--repeat", "1")
SMALL = ("keys", "-c", "2", *FEW, "--synchronous", "off")


def test_measurement_reports_time_and_space_of_every_type(cli: Cli, tmp_path: Path) -> None:
    said = cli(*SMALL, "--id-type", "int,uuid4,ulid-monotonic", "--details", "-o", "report.json")
    assert (said.code, said.err) == (0, "")
    runs = saved().runs
    assert [(run.case.spec.schema, run.case.spec.id_type) for run in runs if run.case.spec] == [
        (schema, id_type)
        for schema in ("id-rowid", "no-key")
        for id_type in ("int", "uuid4", "ulid-monotonic")
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
@pytest.mark.parametrize(
    "options",
    [
        ("--schema", "id-norowid,pair-norowid", "--id-type", "uuid7"),
        ("--schema", "pair-rowid", "--begin", "immediate", "--journal-mode", "delete"),
        ("--schema=no-key", "--driver=apsw", "--verify=full", "--page-size=1024", "--repeat=2"),
        ("--driver", "dry"),
        ("--verify", "none", "--pragma", "foreign_keys=off", "--concurrency", "1,3"),
        ("--pragma", "locking_mode=exclusive", "-c", "1", "--schema", "no-key"),
    ],
    ids=" ".join,
)
def test_loads_and_settings_of_many_kinds_work(cli: Cli, options: tuple[Any, ...]) -> None:
    pytest.importorskip("apsw")
    said = cli(*SMALL, "--id-type", "ulid,int", *options, "--quiet")
    assert said == (0, "", "")


@pytest.mark.thorough
@pytest.mark.skipif(PROGRAM is None, reason="sqlite3_analyzer is not installed")
@pytest.mark.parametrize("way", ["by dbstat", "by our own walk"])
@pytest.mark.parametrize("id_type", ["int", "ulid"])
def test_space_of_every_schema_equals_the_output_of_sqlite3_analyzer(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, id_type: str, way: str
) -> None:
    if way == "by our own walk":
        monkeypatch.setattr(spaces, "DBSTAT", "is_not_there")
    said = cli(*SMALL, "--full", "--id-type", id_type, "--users", "200", "--keep", "-o", "report.json")
    assert (said.code, said.err) == (0, "")
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
