"""Whether a file is still the one that it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sqlstress.report.case import KEPT, MAX_BUCKETS, Case, Settings
from sqlstress.targets.place import Seal
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.targets.filled import exchange


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "kv.db"
    path.write_bytes(b"one")
    return path


def test_files_that_are_written_keep_their_seal_and_what_comes_later_is_nobodys_business(
    database: Path,
) -> None:
    wal = database.with_name("kv.db-wal")
    seal = Seal([database, wal])
    database.write_bytes(b"more")
    os.truncate(database, 0)
    wal.touch()
    wal.unlink()
    assert seal.broken() is None


def test_a_file_that_is_gone_is_told_and_one_in_its_place_although_it_holds_the_same(database: Path) -> None:
    seal = Seal([database])
    exchange(database)
    assert seal.broken() == "kv.db was replaced by another file"
    database.unlink()
    assert seal.broken() == "kv.db was deleted"


@pytest.mark.parametrize("times", [2, 1000])
def test_a_file_that_can_t_be_looked_at_for_a_moment_is_looked_at_again_and_not_called_deleted(
    database: Path, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal, stat, denied = Seal([database]), Path.stat, list(range(times))

    def held(path: Path) -> os.stat_result:
        if denied:
            denied.pop()
            raise PermissionError(13, "Sharing violation")
        return stat(path)

    monkeypatch.setattr(Path, "stat", held)
    monkeypatch.setattr("sqlstress.system.files._PAUSE_S", 0)
    told = "a database file could not be looked at (Sharing violation)" if times > 2 else None
    assert seal.broken() == told
    if told:
        with pytest.raises(OSError, match="Sharing violation"):
            seal.exchanged()


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


def test_each_bucket_has_a_file_name_of_its_own() -> None:
    def names(buckets: int) -> list[str]:
        return [path.name for path in SqlitePlace(Case(buckets=buckets), Path()).paths]

    assert (names(1), names(3)) == (["kv.db"], ["kv_0.db", "kv_1.db", "kv_2.db"])
    assert len(set(names(MAX_BUCKETS))) == MAX_BUCKETS
