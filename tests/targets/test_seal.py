"""Tests of whether a file is still the one that it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sqlstress.targets.sqlite.seal import Seal, held_open


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


def test_a_file_that_comes_later_is_nobodys_business(database: Path) -> None:
    wal = database.with_name("kv.db-wal")
    seal = Seal([database, wal])
    wal.touch()
    wal.unlink()
    assert seal.broken() is None


def test_a_connection_holds_the_database_its_wal_and_its_index_of_each_bucket(tmp_path: Path) -> None:
    assert [path.name for path in held_open(tmp_path, 1)] == ["kv.db", "kv.db-wal", "kv.db-shm"]
    assert [path.name for path in held_open(tmp_path, 2)][3:] == ["kv_1.db", "kv_1.db-wal", "kv_1.db-shm"]
