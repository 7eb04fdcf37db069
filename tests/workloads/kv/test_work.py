"""What the workers find when they connect."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.case import Case, Load, Settings
from sqlstress.drivers import load_driver
from sqlstress.workloads.kv.work import KeyValueWork

SMALL = Load(key_space=50)
FRAME = 4096 + 24


def nothing() -> None:
    pass


def wal_bytes(folder: Path, name: str = "kv.db-wal") -> int:
    wal = folder / name
    return wal.stat().st_size if wal.exists() else 0


@pytest.mark.parametrize(("autocheckpoint", "frames"), [(None, 1000), (100, 100)])
def test_workers_find_a_wal_of_its_working_size(
    tmp_path: Path, autocheckpoint: int | None, frames: int
) -> None:
    case = Case(load=SMALL, settings=Settings(wal_autocheckpoint=autocheckpoint, page_size=4096))
    work = KeyValueWork(case, tmp_path, 1, {})
    work.prepare(nothing)
    assert wal_bytes(tmp_path) >= frames * FRAME
    worker = load_driver("sqlite3").connect(tmp_path / "kv.db", 1000, None)
    assert worker.rows("SELECT count(*) FROM kv") == [(50,)]
    work.connected()
    assert wal_bytes(tmp_path) >= frames * FRAME
    # The next commit begins the WAL anew, within the size that it has.
    worker.rows("PRAGMA user_version=7")
    assert worker.rows("PRAGMA wal_checkpoint(PASSIVE)")[0][1] < 10
    worker.close()
    work.discard()
    assert list(tmp_path.iterdir()) == []


def test_the_parent_holds_no_lock_while_the_workers_connect(tmp_path: Path) -> None:
    case = Case(load=SMALL, buckets=2, settings=Settings(journal_mode="delete", synchronous="off"))
    work = KeyValueWork(case, tmp_path, 1, {})
    work.prepare(nothing)
    worker = load_driver("sqlite3").connect(tmp_path / "kv_1.db", 0, None)
    worker.rows("BEGIN EXCLUSIVE")
    worker.rows("ROLLBACK")
    worker.close()
    work.connected()
    work.connected()
    work.discard()
