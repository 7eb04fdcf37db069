"""Seals detect that a file was deleted or replaced."""

import os
from pathlib import Path

import pytest

from sqlstress.report.case import KEEP_JOURNAL_MODE, MAX_BUCKETS, Case, Settings
from sqlstress.targets.place import Seal
from sqlstress.targets.sqlite.place import SqlitePlace


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "kv.db"
    path.write_bytes(b"one")
    return path


def test_seal_ignores_writes_and_files_created_later(database: Path) -> None:
    wal = database.with_name("kv.db-wal")
    seal = Seal([database, wal])
    database.write_bytes(b"more")
    os.truncate(database, 0)
    wal.touch()
    wal.unlink()
    assert seal.broken() is None


@pytest.mark.parametrize("times", [2, 1000])
def test_unreadable_file_is_retried_and_not_called_deleted(
    database: Path, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal, stat, denied = Seal([database]), Path.stat, list(range(times))

    def denied_stat(path: Path) -> os.stat_result:
        if denied:
            denied.pop()
            raise PermissionError(13, "Sharing violation")
        return stat(path)

    monkeypatch.setattr(Path, "stat", denied_stat)
    monkeypatch.setattr("sqlstress.system.files._PAUSE_S", 0)
    expected = "a database file was not accessible (Sharing violation)" if times > 2 else None
    assert seal.broken() == expected
    if expected:
        with pytest.raises(OSError, match="Sharing violation"):
            seal.exchanged()


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("buckets", [1, 2])
def test_seal_covers_database_wal_and_index_of_each_bucket(tmp_path: Path, buckets: int, suffix: str) -> None:
    place = SqlitePlace(Case(buckets=buckets), tmp_path)
    for path in place.paths:
        for file_suffix in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + file_suffix).touch()
    seal = place.seal()
    place.paths[-1].with_name(place.paths[-1].name + "-journal").unlink()
    assert seal.broken() is None
    gone = place.paths[-1].with_name(place.paths[-1].name + suffix)
    gone.unlink()
    assert seal.broken() == f"{gone.name} was deleted"


def test_wal_of_an_application_may_be_replaced(tmp_path: Path) -> None:
    place = SqlitePlace(Case(settings=Settings(journal_mode=KEEP_JOURNAL_MODE)), tmp_path)
    (path,) = place.paths
    wal = path.with_name("kv.db-wal")
    path.touch()
    wal.touch()
    seal = place.seal()
    wal.unlink()
    assert seal.broken() is None
    path.unlink()
    assert seal.broken() == "kv.db was deleted"


def test_each_bucket_has_its_own_file_name() -> None:
    def names(buckets: int) -> list[str]:
        return [path.name for path in SqlitePlace(Case(buckets=buckets), Path()).paths]

    assert (names(1), names(3)) == (["kv.db"], ["kv_0.db", "kv_1.db", "kv_2.db"])
    assert len(set(names(MAX_BUCKETS))) == MAX_BUCKETS
