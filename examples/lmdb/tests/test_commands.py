"""LMDB and SQLite by the command line: selected cases, refused options, and a run of both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlstress.engine.harness_cost import bare_call_ns
from sqlstress.experiments.kv.spec import Load
from sqlstress.report import read
from sqlstress.report.case import Case
from sqlstress.target import SYNCED, durability_level
from sqlstress.targets import open_place
from tests.cli.conftest import Cli, FakeSession, cli, session

__all__ = ["cli", "session"]

REFUSED = [
    ("--target sqlite,lmbd", "--target: 'lmbd' is not one of sqlite, postgres, lmdb"),
    ("--target lmdb --driver apsw", "--driver apsw needs --target sqlite."),
    ("--driver lmdb --journal-mode wal", "--journal-mode is not supported by lmdb. Leave it out."),
    ("--driver lmdb --page-size 4096", "--page-size is not supported by lmdb. Leave it out."),
    ("--driver lmdb --pragma foreign_keys=on", "--pragma is not supported by lmdb. Leave it out."),
    ("--driver lmdb --begin deferred --batch 2", "--begin is not supported by lmdb. Leave it out."),
    ("--driver lmdb --synchronous extra", "--synchronous extra is not to be had with LMDB"),
    ("--driver lmdb --preset classic", "--preset is not supported by lmdb. Leave it out."),
    ("--target sqlite,lmdb --checkpointer passive", "--checkpointer is not supported by lmdb"),
    ("--target sqlite,lmdb --pinned-reader", "--pinned-reader is not supported by lmdb"),
    ("--target sqlite,lmdb --loop native", "--loop native is not available with --driver lmdb"),
    ("--target lmdb --where", "--where is not available: LMDB does not say what it waits for"),
]


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(("options", "told"), REFUSED)
def test_unsupported_options_are_refused_in_one_line(cli: Cli, options: str, told: str) -> None:
    said = cli("kv", *options.split())
    assert (said.code, len(said.lines)) == (2, 1)
    assert told in said.err


@pytest.mark.parametrize(
    ("options", "drivers"),
    [
        ("--target sqlite,lmdb", ("sqlite3", "lmdb")),
        ("--target lmdb,sqlite --driver apsw", ("lmdb", "apsw")),
        ("--target lmdb", ("lmdb",)),
        ("--driver lmdb", ("lmdb",)),
        # An option that only one target supports applies to that target.
        ("--target sqlite,lmdb --journal-mode delete", ("sqlite3", "lmdb")),
    ],
)
def test_each_target_has_a_case_at_each_place_driven_by_the_same_loop(
    cli: Cli, session: type[FakeSession], options: str, drivers: tuple[str, ...]
) -> None:
    cli("kv", "-c", "1,2", *options.split())
    assert [(case.concurrency, case.driver) for case in session.cases] == [
        (count, driver) for count in (1, 2) for driver in drivers
    ]
    assert {case.spec.loop for case in session.cases} == {"python"}


def test_two_targets_are_measured_and_shown_side_by_side(cli: Cli, tmp_path: Path) -> None:
    short = ("--ops", "30", "--key-space", "100", "--batch", "2")
    said = cli(
        "kv",
        "--target",
        "sqlite,lmdb",
        "-c",
        "2",
        "--update-ratio",
        "20%",
        *short,
        "-o",
        "r.json",
        "--details",
    )
    assert said.code == 0, said.err
    assert "lmdb: every commit synced: LMDB, sync on, metasync on." in said.out
    assert "annot tell which of sqlite and lmdb leads" in " ".join(said.out.split())
    report = read(tmp_path / "r.json")
    assert "One call through the binding, without data access: sqlite3 " in " ".join(said.out.split())
    costs = [{trial.bare_call_ns for trial in run.trials} for run in report.runs]
    assert [len(cost) for cost in costs] == [1, 1] and all(
        min(filter(None, cost), default=0) for cost in costs
    )
    assert [run.verdict.status for run in report.runs] == ["ok", "ok"]
    assert {durability_level(trial.durability) for run in report.runs for trial in run.trials} == {SYNCED}
    assert [build.library for build in report.environment.builds] == ["SQLite", "LMDB"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("sqlstress-")] == []


def test_reports_of_two_targets_are_compared_where_a_commit_is_worth_the_same(cli: Cli) -> None:
    short = ("-c", "1", "--ops", "100", "--repeat", "1", "--key-space", "100", "--quiet")
    for name, options in {
        "a": ("--loop", "python"),
        "b": ("--driver", "lmdb"),
        "c": ("--driver", "lmdb", "--synchronous", "off"),
    }.items():
        assert cli("kv", *options, *short, "-o", f"{name}.json").code == 0
    same, other = cli("compare", "a.json", "b.json").out, cli("compare", "a.json", "c.json").out
    assert "what a commit waits for differs" not in " ".join(same.split())
    assert "what a commit waits for differs" in " ".join(other.split())
    assert "LMDB 0.9" in same


def test_doctor_says_which_version_there_is(cli: Cli) -> None:
    assert re.search(r"lmdb: LMDB 0\.\d+\.\d+ \(py-lmdb ", " ".join(cli("doctor").out.split()))
    assert "sqlite3: SQLite " in " ".join(cli("doctor", "--driver", "lmdb").out.split())


def test_its_cheapest_call_is_timed_and_asks_nothing_of_the_data(tmp_path: Path) -> None:
    place = open_place(Case(driver="lmdb", spec=Load(loop="python")), tmp_path)
    table = place.table("int", 8, 0)
    assert table
    table.create(lambda: None)
    schema = list(place.schema())
    assert 0 < bare_call_ns(place, lambda: None) < 1e9
    assert list(place.schema()) == schema
    table.release()
    place.discard()
    assert list(tmp_path.iterdir()) == []
