"""Tests of `sqlstress crash --power`, through the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sqlstress.experiments.power_loss.experiment import PowerLoss
from sqlstress.report import Report
from sqlstress.targets.sqlite.disk_model import Disk, Operation, WriteBack
from tests.cli.conftest import Cli, saved
from tests.rows import thorough

SHORT = ("--images", "100", "--seed", "1")


def loss_of(report: Report) -> PowerLoss:
    loss = report.results["power-loss"]
    assert isinstance(loss, PowerLoss)
    return loss


@pytest.mark.fault(
    area="crash",
    injected="power cut: unsynced writes dropped, reordered, torn; folder entries undone",
    outcome="exit 0 where no more is lost than SQLite documents; else 1",
)
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ((), "Nothing was lost: all 100 images"),
        thorough(("--synchronous", "normal"), "As SQLite documents: of 100"),
    ],
)
def test_power_is_cut_and_what_was_acknowledged_is_there_or_not(
    cli: Cli, tmp_path: Path, options: tuple[str, ...], wanted: str
) -> None:
    said = cli("crash", "--power", *SHORT, *options, "-o", "power.json")
    loss = loss_of(saved("power.json"))
    assert (said.code, said.err) == (0, "")
    assert (loss.checked, loss.is_proved) == (100, True)
    assert loss.configurations[0].effective["journal_mode"] == "wal"
    assert [path.name for path in tmp_path.iterdir()] == ["power.json"]
    assert wanted in " ".join(said.out.split())


@pytest.mark.thorough
def test_the_matrix_has_a_row_for_every_configuration(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlstress.experiments.power_loss.experiment.JOURNAL_MODES", ("wal", "memory"))
    said = cli("crash", "--matrix", *SHORT, "-o", "matrix.json", "-o", "matrix.md")
    loss = loss_of(saved("matrix.json"))
    assert (said.code, said.err) == (0, "")
    assert len(loss.configurations) == loss.planned == 8
    assert "Use WAL with FULL" in (tmp_path / "matrix.md").read_text(encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.fault(
    area="crash",
    injected="a disk on which a configuration that must fail does not",
    outcome="exit 1: nothing is proved",
)
def test_a_test_whose_control_does_not_fail_is_failed_itself(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = Disk.apply

    def write_at_once(disk: Disk, operation: Operation) -> None:
        apply(disk, operation)
        apply(disk, WriteBack())

    monkeypatch.setattr(Disk, "apply", write_at_once)
    said = cli("crash", "--power", *SHORT)
    assert said.code == 1
    words = " ".join((said.out + said.err).split())
    assert words.count("nothing is proved of any configuration") == 1


def test_without_apsw_one_is_told_to_install_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlstress.targets.sqlite.disk_vfs", None)
    said = cli("crash", "--power", *SHORT)
    assert (said.code, len(said.lines)) == (2, 1)
    assert "python -m pip install apsw" in said.err


@pytest.mark.thorough
def test_a_disk_that_spoils_sectors_and_what_sqlite_is_told_are_reported(cli: Cli) -> None:
    said = cli("crash", "--power", *SHORT, "--disk", "spoiling", "--psow", "off", "-o", "power.json")
    loss = loss_of(saved("power.json"))
    assert said.code == 0
    assert (loss.spoils, loss.told_powersafe) == (True, False)
    assert "may hold anything, as SQLite assumes (psow=0)" in " ".join(said.out.split())
