"""Tests of `sqlstress fleet` without a cluster."""

from pathlib import Path

import pytest

from sqlstress.cluster import fleet
from tests.cli.conftest import Cli

pytest.importorskip("distributed")

PLAN = '[[case]]\nworkload = "kv"\n'


@pytest.fixture
def fleet_cli(cli: Cli) -> Cli:
    """The command line in a folder with a plan, an empty folder and a folder with a file."""
    Path("durable.toml").write_text(PLAN, encoding="utf-8")
    Path("empty").mkdir()
    Path("durable-fleet").mkdir()
    Path("durable-fleet", "other.json").touch()
    return cli


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "Missing argument 'PLAN.toml'"),
        ("durable.toml", "Missing option '--scheduler'"),
        ("none.toml --scheduler tcp://127.0.0.1:1", "none.toml"),
        ("durable.toml --scheduler tcp://127.0.0.1:1", "--folder 'durable-fleet' is not empty"),
        ("durable.toml --folder empty --scheduler tcp://10.0.0.1:1", "Without TLS"),
        ("durable.toml --scheduler tcp://127.0.0.1:1 --together", "No such option '--together'"),
    ],
)
def test_fleet_refuses_wrong_options_in_one_line(fleet_cli: Cli, words: str, reason: str) -> None:
    result = fleet_cli("fleet", *words.split())
    assert (result.code, result.out) == (2, "") and reason in result.err


def test_fleet_without_a_scheduler_exits_4_and_makes_no_folder(
    fleet_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "CONNECT_S", 0.5)
    result = fleet_cli("fleet", "durable.toml", "--scheduler", "tcp://127.0.0.1:1", "--folder", "new")
    assert (result.code, result.out, len(result.lines)) == (4, "", 1)
    assert "no Dask scheduler responds at tcp://127.0.0.1:1" in result.err and not Path("new").exists()
