"""The parent's half: the database that workers connect to, and the verdict on their work."""

import shutil
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from sqlstress.engine.protocols import Findings, Outcome
from sqlstress.experiments.kv.spec import Load
from sqlstress.experiments.kv.work import KeyValueWork
from sqlstress.report import Verdict
from sqlstress.report.case import Case, Settings
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import call_in_subprocess
from sqlstress.targets import open_place
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import load_driver
from tests.pulses import Pulses, nothing, stopped_everywhere
from tests.rows import thorough
from tests.targets.filled import create, locked, open_store

SMALL = Load(key_space=50)
FRAME = 4096 + 24


def wal_bytes(folder: Path, name: str = "kv.db-wal") -> int:
    wal = folder / name
    return wal.stat().st_size if wal.exists() else 0


@pytest.mark.parametrize(("autocheckpoint", "frames"), [(None, 1000), (100, 100)])
def test_workers_find_a_wal_of_its_working_size(
    tmp_path: Path, autocheckpoint: int | None, frames: int
) -> None:
    case = Case(spec=SMALL, settings=Settings(wal_autocheckpoint=autocheckpoint, page_size=4096))
    work = prepare_work(case, tmp_path)
    assert wal_bytes(tmp_path) >= frames * FRAME
    worker = load_driver("sqlite3").connect(tmp_path / "kv.db", 1000)
    assert worker.rows("SELECT count(*) FROM kv") == [(50,)]
    work.release()
    assert wal_bytes(tmp_path) >= frames * FRAME
    # The next commit restarts the WAL, within its present size.
    worker.rows("PRAGMA user_version=7")
    assert worker.rows("PRAGMA wal_checkpoint(PASSIVE)")[0][1] < 10
    worker.close()
    work.discard()
    assert list(tmp_path.iterdir()) == []


def test_file_is_complete_after_the_trial_and_verification_makes_no_wal(tmp_path: Path) -> None:
    work = prepare_work(Case(spec=SMALL), tmp_path)
    inode = (tmp_path / "kv.db-wal").stat().st_ino
    with closing(sqlite3.connect(tmp_path / "kv.db")) as worker, worker:
        worker.execute("UPDATE kv SET value = -1")
    work.ended(nothing)
    # By another process: closing a file here drops the locks that SQLite has on it in this process.
    call_in_subprocess(nothing, shutil.copy, tmp_path / "kv.db", tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT DISTINCT value FROM kv").fetchall() == [(-1,)]
    with closing(sqlite3.connect(tmp_path / "kv.db")) as other:
        assert other.execute("SELECT DISTINCT value FROM kv").fetchall() == [(-1,)]
    assert (tmp_path / "kv.db-wal").stat().st_ino == inode
    work.release()


def test_parent_holds_no_lock_while_the_workers_connect(tmp_path: Path) -> None:
    case = Case(spec=SMALL, buckets=2, settings=Settings(journal_mode="delete", synchronous="off"))
    work = prepare_work(case, tmp_path)
    worker = load_driver("sqlite3").connect(tmp_path / "kv_1.db", 0)
    worker.rows("BEGIN EXCLUSIVE")
    worker.rows("ROLLBACK")
    worker.close()
    work.release()
    work.release()
    work.discard()


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_operation_given_up_is_counted_busy_once(driver: str, tmp_path: Path) -> None:
    pytest.importorskip(driver)
    settings = Settings(busy_timeout_ms=0, wal_autocheckpoint=8)
    case = Case(driver=driver, settings=settings)
    create(case, tmp_path, {1: 1})
    store = open_store(case, tmp_path)
    with locked(case, files.paths(case, tmp_path)[0]), pytest.raises(Exception, match="locked") as caught:
        store.puts[0]((1, 2))
    assert store.was_busy(caught.value)
    assert store.busy_counts() == (1, 0)
    store.close()


def prepare_work(case: Case, folder: Path, pulse: Pulse = nothing) -> KeyValueWork:
    work = KeyValueWork(case, open_place(case, folder), 1, {})
    work.prepare(pulse)
    return work


def all_alive(case: Case) -> list[Outcome]:
    return [Outcome(worker, False, Findings()) for worker in range(1, case.concurrency + 1)]


@pytest.mark.parametrize("buckets", [1, thorough(3)])
def test_preparation_and_verification_can_be_interrupted_at_every_pulse(tmp_path: Path, buckets: int) -> None:
    case = Case(buckets=buckets, spec=Load(key_space=2000), settings=Settings(synchronous="off"))
    verdicts: list[Verdict] = []

    def prepare(pulse: Pulse) -> None:
        work = KeyValueWork(case, open_place(case, tmp_path), 1, {})
        try:
            work.prepare(pulse)
            assert len(list(tmp_path.iterdir())) == 3 * buckets
        finally:
            work.release()
            work.discard()
            assert list(tmp_path.iterdir()) == []

    assert stopped_everywhere(prepare) > 8
    work = prepare_work(case, tmp_path)
    work.ended(nothing)
    assert stopped_everywhere(lambda pulse: verdicts.append(work.verify(all_alive(case), pulse))) > 8
    work.release()
    assert [verdict.status for verdict in verdicts] == ["ok"]


def test_many_keys_are_written_read_and_missed_with_pulses(tmp_path: Path) -> None:
    """Pulses are frequent while keys are written, while they are read, and while they are missing."""
    case = Case(spec=Load(key_space=20_000), settings=Settings(synchronous="off"))
    preparing, verifying, missing = Pulses(), Pulses(), Pulses()
    work = prepare_work(case, tmp_path, preparing)
    work.ended(nothing)
    work.verify(all_alive(case), verifying)
    with files.opened(case, tmp_path / "kv.db") as connection:
        connection.rows("DELETE FROM kv")
    check = {check.name: check for check in work.verify(all_alive(case), missing).checks}["last write"]
    work.release()
    assert (check.problems, check.counterexamples[0]) == (20_000, "key 0 is gone")
    assert min(preparing.count, verifying.count, missing.count) >= 20_000 // 256


def test_missing_keys_are_all_counted_in_their_order(tmp_path: Path) -> None:
    case = Case(buckets=3, spec=SMALL, settings=Settings(synchronous="off"))
    work = prepare_work(case, tmp_path)
    work.ended(nothing)
    gone = (0, 7, 8, 49)
    for path in files.paths(case, tmp_path):
        with files.opened(case, path) as connection:
            connection.rows(f"DELETE FROM kv WHERE key IN {gone}")
    check = {check.name: check for check in work.verify(all_alive(case), nothing).checks}["last write"]
    work.release()
    assert check.counterexamples == tuple(f"key {key} is gone" for key in gone)


def test_verification_of_many_workers_needs_little_unshared_memory(tmp_path: Path) -> None:
    case = Case(concurrency=64, spec=Load(key_space=10_000), settings=Settings(synchronous="off"))
    work = prepare_work(case, tmp_path)
    work.ended(nothing)
    tracemalloc.start()
    try:
        assert work.verify(all_alive(case), nothing).status == "ok"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        work.release()
    assert 8 * len(work.shared[0]) > 15 << 20
    assert peak < 2 << 20
