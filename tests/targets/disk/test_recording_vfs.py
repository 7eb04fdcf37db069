"""What SQLite asks of the disk is carried out and recorded; images of it are recovered by SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from sqlstress.experiments.power_loss.images import images
from sqlstress.experiments.power_loss.study import record
from sqlstress.report.case import JOURNAL_MODES, Case, Settings
from sqlstress.targets.sqlite.disk_model import Create, Device, Disk, Operation, Sync, SyncFolder, Truncate
from sqlstress.targets.sqlite.disk_vfs import ImageVfs, Recorder
from tests.rows import thorough

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


def folder_syncs(mode: str, level: str, folder: Path) -> int:
    """Return how often the folder is synced for ten commits, the last one of which is complete."""
    with Recorder(DEVICE) as recorder:
        connection = recorder.connect(folder / "kv.db")
        for pragma in (f"journal_mode={mode}", f"synchronous={level}"):
            connection.rows(f"PRAGMA {pragma}")
        connection.rows("CREATE TABLE t (x)")
        before = len(recorder.log)
        for _ in range(10):
            connection.rows("INSERT INTO t VALUES (1)")
        connection.close()
        return sum(isinstance(operation, SyncFolder) for operation in recorder.log[before:])


@pytest.mark.parametrize(
    ("mode", "level", "syncs"),
    [("delete", "full", 10), ("delete", "extra", 20), ("persist", "full", 10), ("wal", "full", 0)],
)
def test_the_folder_is_synced_with_each_new_journal_and_after_its_deletion_if_that_is_asked_for(
    mode: str, level: str, syncs: int, tmp_path: Path
) -> None:
    assert folder_syncs(mode, level, tmp_path) == syncs


def test_temporary_files_and_the_wal_index_are_not_recorded(tmp_path: Path, recorder: Recorder) -> None:
    connection = recorder.connect(tmp_path / "kv.db")
    connection.rows("PRAGMA journal_mode=wal")
    connection.rows("CREATE TABLE lasting (x)")
    connection.rows("PRAGMA temp_store=file")
    connection.rows("PRAGMA cache_size=2")
    connection.rows("CREATE TEMP TABLE t AS SELECT randomblob(5000) AS x FROM (VALUES (1), (2), (3), (4))")
    assert (tmp_path / "kv.db-shm").exists()
    names = {operation.name for operation in recorder.log if isinstance(operation, Create)}
    assert names <= {"kv.db", "kv.db-wal", "kv.db-journal"}
    connection.close()


def test_a_checkpoint_that_truncates_the_wal_is_recorded(tmp_path: Path, recorder: Recorder) -> None:
    connection = recorder.connect(tmp_path / "kv.db")
    connection.rows("PRAGMA journal_mode=wal")
    connection.rows("CREATE TABLE t (x)")
    before = len(recorder.log)
    connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    found = recorder.log[before:]
    connection.close()
    assert any(isinstance(one, Sync) for one in found)
    assert any(isinstance(one, Truncate) and one.size == 0 for one in found)


def looked_at(connect: Callable[[], sqlite3.Connection]) -> object:
    """Return what the standard library's SQLite finds in a database, and whether that is sound."""
    try:
        connection = connect()
        try:
            rows = connection.execute("SELECT * FROM record ORDER BY id").fetchall()
            return rows, connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        finally:
            connection.close()
    except sqlite3.Error as error:
        return str(error)


@pytest.mark.parametrize(
    ("mode", "level"),
    [("wal", "normal"), ("delete", "full"), thorough("truncate", "normal"), thorough("persist", "off")],
)
def test_an_image_in_memory_is_recovered_as_the_same_files_on_a_disk_are(
    mode: str, level: str, tmp_path: Path
) -> None:
    case = Case(
        concurrency=2,
        seed=3,
        settings=Settings(journal_mode=mode, synchronous=level, wal_autocheckpoint=10),
    )
    log = record(case, tmp_path, DEVICE).log
    with ImageVfs(DEVICE) as vfs:
        for number, image in enumerate(images(log, 60, DEVICE, "seed")):
            folder = tmp_path / f"{number}"
            folder.mkdir()
            for name, data in image.files.items():
                (folder / name).write_bytes(data)
            on_disk = looked_at(lambda folder=folder: sqlite3.connect(folder / "kv.db"))  # type: ignore[misc]
            vfs.load(image.files)
            assert in_memory(vfs) == on_disk, image


def in_memory(vfs: ImageVfs) -> object:
    """Return the same of an image."""
    try:
        connection = vfs.connect("kv.db")
        try:
            rows = connection.rows("SELECT * FROM record ORDER BY id")
            return rows, connection.rows("PRAGMA integrity_check") == [("ok",)]
        finally:
            connection.close()
    except apsw.Error as error:
        return str(error)
