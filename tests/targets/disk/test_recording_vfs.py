"""What SQLite asks of the disk is carried out and recorded; images of it are recovered by SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from sqlstress.experiments.power_loss.images import images
from sqlstress.experiments.power_loss.study import record
from sqlstress.report.case import JOURNAL_MODES, Case, Settings
from sqlstress.targets.sqlite.disk_model import Create, Device, Disk, Operation, Sync, SyncFolder, Truncate
from sqlstress.targets.sqlite.disk_vfs import ImageVfs, Recorder
from tests.rows import mostly_thorough

DEVICE = Device()
ROLLBACK = ("delete", "truncate", "persist")


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with Recorder(DEVICE) as opened:
        yield opened


def contents(folder: Path) -> dict[str, bytes]:
    """Return what a power cut could leave of a folder: the wal-index is made anew."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


def kept(log: list[Operation]) -> dict[str, bytes]:
    disk = Disk()
    for operation in log:
        disk.apply(operation)
    return disk.image(disk.unsynced(512))


@pytest.mark.thorough
@pytest.mark.parametrize("mode", JOURNAL_MODES)
def test_the_log_makes_the_files_that_are_really_there(mode: str, tmp_path: Path) -> None:
    case = Case(concurrency=2, seed=5, settings=Settings(journal_mode=mode, wal_autocheckpoint=10))
    recording = record(case, tmp_path, DEVICE)
    assert kept(list(recording.log)) == contents(tmp_path)


@pytest.mark.parametrize("mode", ["wal", *ROLLBACK])
def test_the_log_makes_the_files_that_are_there_in_the_midst_of_a_transaction(
    mode: str, tmp_path: Path, recorder: Recorder
) -> None:
    connection = recorder.connect(tmp_path / "kv.db")
    connection.rows(f"PRAGMA journal_mode={mode}")
    connection.rows("PRAGMA cache_size=2")
    connection.rows("CREATE TABLE t (x)")
    connection.rows("BEGIN")
    for number in range(20):
        connection.rows("INSERT INTO t VALUES (?)", (f"{number}" * 900,))
        assert kept(recorder.log) == contents(tmp_path)
    connection.close()


@pytest.mark.parametrize(
    ("mode", "level", "syncs"),
    [("delete", "full", 10), ("delete", "extra", 20), ("persist", "full", 10), ("wal", "full", 0)],
)
def test_the_folder_is_synced_with_each_new_journal_and_after_its_deletion_if_that_is_asked_for(
    mode: str, level: str, syncs: int, tmp_path: Path
) -> None:
    with Recorder(DEVICE) as recorder:
        connection = recorder.connect(tmp_path / "kv.db")
        for sql in (f"PRAGMA journal_mode={mode}", f"PRAGMA synchronous={level}", "CREATE TABLE t (x)"):
            connection.rows(sql)
        before = len(recorder.log)
        for _ in range(10):
            connection.rows("INSERT INTO t VALUES (1)")
        connection.close()
        assert sum(isinstance(operation, SyncFolder) for operation in recorder.log[before:]) == syncs


def test_a_checkpoint_that_truncates_the_wal_is_recorded_and_no_temporary_file_or_wal_index(
    tmp_path: Path, recorder: Recorder
) -> None:
    connection = recorder.connect(tmp_path / "kv.db")
    for sql in ("PRAGMA journal_mode=wal", "CREATE TABLE t (x)"):
        connection.rows(sql)
    before = len(recorder.log)
    connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    recorded = recorder.log[before:]
    assert any(isinstance(operation, Sync) for operation in recorded)
    assert any(isinstance(operation, Truncate) and operation.size == 0 for operation in recorded)
    for sql in ("PRAGMA temp_store=file", "PRAGMA cache_size=2"):
        connection.rows(sql)
    connection.rows("CREATE TEMP TABLE u AS SELECT randomblob(5000) AS x FROM (VALUES (1), (2), (3), (4))")
    assert (tmp_path / "kv.db-shm").exists()
    names = {operation.name for operation in recorder.log if isinstance(operation, Create)}
    assert names <= {"kv.db", "kv.db-wal", "kv.db-journal"}
    connection.close()


def looked_at(connect: Callable[[], Any], rows: Callable[[Any, str], list[Any]]) -> object:
    """Return what a library finds in a database, and whether that is sound; or what it says of it."""
    try:
        with closing(connect()) as connection:
            records = rows(connection, "SELECT * FROM record ORDER BY id")
            return records, rows(connection, "PRAGMA integrity_check") == [("ok",)]
    except (sqlite3.Error, apsw.Error) as error:
        return str(error)


@pytest.mark.parametrize(
    ("mode", "level"),
    mostly_thorough(
        [("wal", "normal"), ("delete", "full"), ("truncate", "normal"), ("persist", "off")],
        [("wal", "normal")],
    ),
)
def test_an_image_in_memory_is_recovered_as_the_same_files_on_a_disk_are(
    mode: str, level: str, tmp_path: Path
) -> None:
    case = Case(
        concurrency=2, seed=3, settings=Settings(journal_mode=mode, synchronous=level, wal_autocheckpoint=10)
    )
    log = record(case, tmp_path, DEVICE).log
    with ImageVfs(DEVICE) as vfs:
        for number, image in enumerate(images(log, 60, DEVICE, "seed")):
            folder = tmp_path / f"{number}"
            folder.mkdir()
            for name, data in image.files.items():
                (folder / name).write_bytes(data)
            on_disk = looked_at(
                lambda folder=folder: sqlite3.connect(folder / "kv.db"),  # type: ignore[misc]
                lambda connection, sql: connection.execute(sql).fetchall(),
            )
            vfs.load(image.files)
            in_memory = looked_at(lambda: vfs.connect("kv.db"), lambda connection, sql: connection.rows(sql))
            assert in_memory == on_disk, image
