"""Tests of whether a file is still the one that it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sqlstress.report.case import KEPT, MAX_BUCKETS, Case, Settings
from sqlstress.targets.seal import Seal
from sqlstress.targets.sqlite.place import SqlitePlace, file_names


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "kv.db"
    path.write_bytes(b"one")
    return path


def test_files_that_are_written_keep_their_seal(database: Path) -> None:
    seal = Seal([database])
    database.write_bytes(b"more")
    os.truncate(database, 0)
    assert seal.broken() is None


def test_a_file_that_is_gone_is_told(database: Path) -> None:
    seal = Seal([database])
    database.unlink()
    assert seal.broken() == "kv.db was deleted"


def test_a_file_in_the_place_of_another_one_is_told_although_it_holds_the_same(database: Path) -> None:
    seal = Seal([database])
    copy = database.with_name("copy")
    copy.write_bytes(database.read_bytes())
    copy.replace(database)
    assert seal.broken() == "kv.db was replaced by another file"


def test_a_file_that_can_t_be_looked_at_for_a_moment_is_looked_at_again(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal, stat, denied = Seal([database]), Path.stat, [True, True]

    def held(path: Path) -> os.stat_result:
        if denied:
            denied.pop()
            raise PermissionError(13, "Sharing violation")
        return stat(path)

    monkeypatch.setattr(Path, "stat", held)
    assert seal.broken() is None and not denied


def test_a_file_that_can_t_be_looked_at_at_all_is_told(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = Seal([database])

    def held(path: Path) -> os.stat_result:
        raise PermissionError(13, "Sharing violation")

    monkeypatch.setattr(Path, "stat", held)
    monkeypatch.setattr("sqlstress.system.files._PAUSE_S", 0)
    assert seal.broken() == "a database file could not be looked at (Sharing violation)"


def test_a_file_that_comes_later_is_nobodys_business(database: Path) -> None:
    wal = database.with_name("kv.db-wal")
    seal = Seal([database, wal])
    wal.touch()
    wal.unlink()
    assert seal.broken() is None


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("buckets", [1, 2])
def test_a_connection_holds_the_database_its_wal_and_its_index_of_each_bucket(
    tmp_path: Path, buckets: int, suffix: str
) -> None:
    place = SqlitePlace(Case(buckets=buckets), tmp_path)
    for path in place.paths:
        for each in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + each).touch()
    seal = place.seal()
    place.paths[-1].with_name(place.paths[-1].name + "-journal").unlink()
    assert seal.broken() is None
    gone = place.paths[-1].with_name(place.paths[-1].name + suffix)
    gone.unlink()
    assert seal.broken() == f"{gone.name} was deleted"


def test_each_bucket_has_a_file_name_of_its_own() -> None:
    assert file_names(1) == ["kv.db"]
    assert file_names(3) == ["kv_0.db", "kv_1.db", "kv_2.db"]
    assert len(set(file_names(MAX_BUCKETS))) == MAX_BUCKETS


def test_a_file_that_cannot_be_looked_at_is_not_called_deleted(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = Seal([database])
    monkeypatch.setattr(Path, "stat", lambda _: fail())
    assert seal.broken() == "a database file could not be looked at (Too many open files)"
    with pytest.raises(OSError, match="Too many open files"):
        seal.exchanged()


def fail() -> None:
    raise OSError(24, "Too many open files")


def test_of_an_application_that_closes_its_connections_the_wal_may_be_another_one(tmp_path: Path) -> None:
    place = SqlitePlace(Case(settings=Settings(journal_mode=KEPT)), tmp_path)
    (path,) = place.paths
    wal = path.with_name("kv.db-wal")
    path.touch()
    wal.touch()
    seal = place.seal()
    wal.unlink()
    assert seal.broken() is None
    path.unlink()
    assert seal.broken() == "kv.db was deleted"
