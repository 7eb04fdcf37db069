"""Power cuts: each configuration loses what SQLite says it may lose, and the detector is proved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.power_loss.experiment import PowerLoss
from sqlstress.experiments.power_loss.images import images
from sqlstress.experiments.power_loss.study import PowerStudy
from sqlstress.report.case import Case, Settings
from sqlstress.report.power_failure import CORRUPT, GOOD, LOST
from sqlstress.studies.sweep import follow
from sqlstress.targets.sqlite.disk_model import (
    Create,
    Device,
    Disk,
    Operation,
    Sync,
    SyncFolder,
    Truncate,
    Write,
)
from tests.engine.benches import bench
from tests.rows import thorough

CASE = Case(workload="crash", driver="apsw", concurrency=3, seed=1, settings=Settings(wal_autocheckpoint=20))


@pytest.fixture(autouse=True)
def _short_control(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlstress.experiments.power_loss.study.CONTROL_IMAGES", 150)


def case(journal_mode: str, synchronous: str, **fields: object) -> Case:
    settings = replace(CASE.settings, journal_mode=journal_mode, synchronous=synchronous)
    return replace(CASE, settings=settings, **fields)  # type: ignore[arg-type]


def study(folder: Path, *cases: Case, count: int = 300, device: Device = Device()) -> PowerLoss:  # noqa: B008
    loss = PowerLoss(count, len(cases), spoils=device.spoils, told_powersafe=device.told_powersafe)
    power = PowerStudy(cases, loss)
    assert not follow(power, bench(folder)).interrupted
    return power.loss


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("journal_mode", "synchronous", "worst"),
    [
        ("wal", "full", GOOD),
        ("wal", "normal", LOST),
        ("wal", "off", CORRUPT),
        ("delete", "full", LOST),
        ("delete", "extra", GOOD),
        ("delete", "off", CORRUPT),
        ("truncate", "normal", CORRUPT),
        ("persist", "full", GOOD),
        ("memory", "extra", CORRUPT),
    ],
)
def test_a_configuration_loses_what_it_may_lose(
    journal_mode: str, synchronous: str, worst: str, tmp_path: Path
) -> None:
    # What is rarely lost takes more images to be seen.
    count = 300 if worst == LOST else 100
    found = study(tmp_path, case(journal_mode, synchronous), count=count)
    (cuts,) = found.configurations
    assert found.is_proved
    assert (cuts.worst, cuts.images) == (worst, count), cuts.counterexamples
    assert cuts.images == cuts.good + cuts.lost + cuts.torn + cuts.corrupt
    assert cuts.transactions == 100
    assert cuts.effective["journal_mode"] == journal_mode
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_several_files_are_cut_at_one_point(tmp_path: Path) -> None:
    found = study(tmp_path, case("wal", "normal", buckets=4), case("wal", "full", buckets=4))
    normal, full = found.configurations
    assert (normal.worst, full.worst) == (LOST, GOOD)
    assert "kv_" in normal.counterexamples[0]


@pytest.mark.parametrize(
    ("device", "worst"),
    [thorough(Device(spoils=True), LOST), (Device(spoils=True, told_powersafe=False), GOOD)],
)
def test_a_disk_that_spoils_sectors_loses_commits_of_a_wal_unless_sqlite_is_told(
    device: Device, worst: str, tmp_path: Path
) -> None:
    (cuts,) = study(tmp_path, case("wal", "full"), device=device).configurations
    assert cuts.worst == worst


@pytest.mark.parametrize("page_size", [512, thorough(65536)])
def test_pages_smaller_and_larger_than_a_sector_survive(page_size: int, tmp_path: Path) -> None:
    settings = replace(CASE.settings, page_size=page_size)
    (cuts,) = study(tmp_path, replace(CASE, settings=settings), count=100).configurations
    assert cuts.worst == GOOD


@pytest.mark.thorough
@pytest.mark.parametrize("forgotten", [Sync, SyncFolder])
def test_a_sync_that_is_not_carried_out_is_found_out(
    forgotten: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = Disk.apply
    monkeypatch.setattr(
        Disk, "apply", lambda disk, one: None if isinstance(one, forgotten) else apply(disk, one)
    )
    (cuts,) = study(tmp_path, case("delete", "extra")).configurations
    assert cuts.worst != GOOD


def test_settings_that_cannot_be_had_are_told_at_once(tmp_path: Path) -> None:
    refused = replace(CASE, settings=replace(CASE.settings, pragmas=(("locking_mode", "exclusive"),)))
    with pytest.raises(EnvironmentFailure):
        study(tmp_path, refused)


def test_images_are_as_many_as_asked_for_and_the_same_for_a_seed() -> None:
    log: list[Operation] = [Create("a", 0), SyncFolder(), Write(0, 0, b"x" * 5000), Sync(0), Truncate(0, 9)]
    one, other = (list(images(log, 500, Device(), "seed")) for _ in range(2))
    assert one == other
    assert len(one) == 500
    assert {image.cut for image in one} == set(range(len(log) + 1))
    assert list(images(log, 500, Device(), "another")) != one


def test_the_images_of_one_cut_differ_in_what_was_kept() -> None:
    log: list[Operation] = [Create("a", 0), SyncFolder()]
    found = list(images(log, 100, Device(), "seed"))
    assert {image.fate for image in found if not image.unsynced} == {"nothing"}
