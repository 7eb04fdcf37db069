"""Holders of locks, observed from outside: another process holds each kind of lock on purpose."""

import hashlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from pathlib import Path
from shutil import which
from subprocess import DEVNULL, PIPE

import psutil
import pytest

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.targets.sqlite.lock_holders import (
    CHECKPOINT,
    CLOSED,
    EXCLUSIVE,
    MISSING,
    PENDING,
    READ,
    ROLLBACK,
    WAL,
    WRITE,
    LockedFile,
    LockSample,
)
from tests.rows import fault
from tests.targets.elsewhere import Elsewhere

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows tells of no lock who holds it")
PATIENCE_S = 20.0
HELD = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=15, isolation_level=None)\n"
WAIT = "print(1, flush=True); sys.stdin.read()\n"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database in WAL mode that is not open in this process."""
    return make_database(tmp_path / "watched.db", "wal")


def make_database(path: Path, journal: str) -> Path:
    with Elsewhere("sqlite3", path) as other:
        other.rows("maker", f"PRAGMA journal_mode={journal}")
        other.rows("maker", "CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
        other.rows("maker", "INSERT INTO t VALUES (1, 1)")
    return path


@contextmanager
def process(path: Path, *statements: str, then: str = WAIT) -> Iterator[subprocess.Popen[str]]:
    """Run statements in another process, which keeps the transaction open until the block ends."""
    code = HELD + "".join(f"c.execute({sql!r}).fetchone()\n" for sql in statements) + then
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as child:
        try:
            if then == WAIT:
                assert child.stdout is not None and child.stdout.readline()
            yield child
        finally:
            child.kill()


@contextmanager
def watched(path: Path) -> Iterator[LockedFile]:
    with closing(LockedFile(path)) as locks:
        yield locks


def pids_by_lock(look: LockSample) -> dict[str, int]:
    return {lock.name: lock.pid for lock in look.locks}


def wait_for_look(database: LockedFile, is_there: Callable[[LockSample], bool]) -> LockSample:
    until = time.monotonic() + PATIENCE_S
    while not is_there(look := database.look()):
        assert time.monotonic() < until, look
        time.sleep(0.005)
    return look


def test_writer_and_reader_of_a_wal_are_distinguished(database: Path) -> None:
    with (
        process(database, "BEGIN", "SELECT * FROM t") as reader,
        process(database, "BEGIN IMMEDIATE", "INSERT INTO t VALUES (2, 2)") as writer,
        watched(database) as locks,
    ):
        look = locks.look()
        assert look.state == WAL
        assert pids_by_lock(look)[WRITE] == writer.pid
        assert pids_by_lock(look)[READ] in (reader.pid, writer.pid)
        assert EXCLUSIVE not in pids_by_lock(look)


def test_commits_are_counted_and_the_mark_of_a_reader_stays(database: Path) -> None:
    with Elsewhere("sqlite3", database) as other, watched(database) as locks:
        other.rows("writer", "UPDATE t SET b = 1")  # frame 1, so that the reader gets its own read mark
        with process(database, "BEGIN", "SELECT * FROM t") as reader:
            before = locks.look()
            for _ in range(5):
                other.rows("writer", "UPDATE t SET b = b + 1")
            after = locks.look()
            assert before.changes is not None and after.changes == before.changes + 5
            (lock,) = (lock for lock in after.locks if lock.name == READ)
            assert before.wal and after.wal and lock.pid == reader.pid
            assert after.wal.marks[lock.slot] == before.wal.frames < after.wal.frames


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists all who share a lock")
def test_all_readers_with_the_same_mark_are_listed(database: Path) -> None:
    with ExitStack() as stack:
        readers = [stack.enter_context(process(database, "BEGIN", "SELECT * FROM t")) for _ in range(3)]
        locks = stack.enter_context(watched(database))
        locks.look()
        assert {lock.pid for lock in locks.readers()} == {reader.pid for reader in readers}


def test_checkpoint_waiting_for_a_reader_has_the_write_lock(database: Path) -> None:
    restart = "c.execute('UPDATE t SET b = 2'); c.execute('PRAGMA wal_checkpoint(RESTART)')\n"
    with (
        process(database, "BEGIN", "SELECT * FROM t"),
        process(database, then=restart) as checkpointer,
        watched(database) as locks,
    ):
        look = wait_for_look(
            locks, lambda look: CHECKPOINT in pids_by_lock(look) and WRITE in pids_by_lock(look)
        )
        assert pids_by_lock(look)[CHECKPOINT] == pids_by_lock(look)[WRITE] == checkpointer.pid


def test_exclusive_owner_of_a_wal_is_seen_without_a_wal_index(database: Path) -> None:
    alone = ("PRAGMA locking_mode=exclusive", "UPDATE t SET b = 2")
    with process(database, *alone) as owner, watched(database) as locks:
        look = locks.look()
        assert look.state == CLOSED
        assert pids_by_lock(look) == {WRITE: owner.pid, EXCLUSIVE: owner.pid}


def test_locks_of_a_rollback_journal_are_seen(tmp_path: Path) -> None:
    path = make_database(tmp_path / "old.db", "delete")
    with watched(path) as locks:
        with process(path, "BEGIN IMMEDIATE") as writer:
            assert pids_by_lock(locks.look()) == {WRITE: writer.pid}
        with process(path, "BEGIN EXCLUSIVE") as owner:
            assert pids_by_lock(locks.look()) == {WRITE: owner.pid, EXCLUSIVE: owner.pid}
        commit = "c.execute('UPDATE t SET b = 2')\n"
        with process(path, "BEGIN", "SELECT * FROM t") as reader, process(path, then=commit) as writer:
            look = wait_for_look(locks, lambda look: PENDING in pids_by_lock(look))
            assert look.state == ROLLBACK
            assert pids_by_lock(look)[WRITE] == pids_by_lock(look)[PENDING] == writer.pid
            assert pids_by_lock(look).get(READ, reader.pid) == reader.pid


@fault("database", "a writer of a rollback journal killed", "the watch names the hot journal")
def test_hot_journal_of_a_dead_writer_is_seen(tmp_path: Path) -> None:
    path = make_database(tmp_path / "hot.db", "delete")
    spill = ["PRAGMA cache_size=1", "PRAGMA cache_spill=1", "BEGIN IMMEDIATE"]
    fill = "WITH n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 400) "
    with process(path, *spill, f"INSERT INTO t {fill}SELECT i, zeroblob(2000) FROM n"):
        pass  # killed
    with watched(path) as locks:
        assert locks.look().locks == ()
        assert locks.has_journal()


@fault("database", "the watched file deleted, replaced, given another journal", "the watch goes on")
def test_deleted_and_replaced_file_is_followed(database: Path, tmp_path: Path) -> None:
    other = make_database(tmp_path / "other.db", "delete")
    with watched(database) as locks:
        first = locks.look()
        assert first.state == CLOSED
        database.unlink()
        assert locks.look().state == MISSING
        other.rename(database)
        with process(database, "BEGIN IMMEDIATE") as writer:
            look = locks.look()
            assert (look.state, look.file) == (ROLLBACK, first.file + 1)
            assert pids_by_lock(look) == {WRITE: writer.pid}
        with process(database, "PRAGMA journal_mode=wal", "SELECT * FROM t"):
            assert locks.look().state == WAL


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_vacuum_is_seen_and_not_disturbed_by_the_watch(journal: str, tmp_path: Path) -> None:
    path = make_database(tmp_path / "vacuumed.db", journal)
    fill = "INSERT INTO t WITH n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
    vacuums = "for _ in range(200): c.execute('VACUUM'); print(1, flush=True)\n"
    with (
        process(path, f"{fill}SELECT i, zeroblob(500) FROM n", then=vacuums) as vacuuming,
        watched(path) as locks,
    ):
        look = wait_for_look(locks, lambda look: WRITE in pids_by_lock(look))
        assert pids_by_lock(look)[WRITE] == vacuuming.pid
        assert vacuuming.stdout is not None and vacuuming.stdout.readline()
        for _ in range(200):
            locks.look()
    with Elsewhere("sqlite3", path) as other:
        assert other.rows("reader", "PRAGMA integrity_check") == [("ok",)]
        assert other.rows("reader", "SELECT count(*) FROM t") == [(2000,)]


APART = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount", "--kill-child")
"""A container, as far as locks are concerned: own users, processes and mounts, but the same file system."""


@lru_cache
def may_be_apart() -> bool:
    return bool(which("unshare")) and not subprocess.run([*APART, "true"], stderr=DEVNULL).returncode


apart = pytest.mark.skipif("not may_be_apart()", reason="to unshare a namespace needs Linux and root")


@apart
def test_writer_in_a_container_is_seen_by_its_outer_pid(database: Path) -> None:
    code = f"{HELD}c.execute('BEGIN IMMEDIATE'); {WAIT}"
    command = [*APART, sys.executable, "-c", code, str(database)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as container:
        try:
            assert container.stdout is not None and container.stdout.readline()
            (inside,) = psutil.Process(container.pid).children()
            with watched(database) as locks:
                assert pids_by_lock(locks.look())[WRITE] == inside.pid
        finally:
            container.kill()


@apart
@pytest.mark.thorough
def test_writer_outside_the_own_container_is_reported_as_such(database: Path) -> None:
    command = [*APART, "--mount-proc", sys.executable, "-m", "sqlstress", "watch", str(database)]
    with process(database, "BEGIN IMMEDIATE"):
        done = subprocess.run([*command, "--duration", "0.3s"], capture_output=True, text=True, check=True)
    output = " ".join(done.stdout.split())
    assert "A process of another container held the write lock 100% of the time" in output
    assert "Run sqlstress watch on the host" in output


def test_symbolic_link_is_followed_to_the_locks_of_its_file(database: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(database)
    with process(database, "BEGIN IMMEDIATE") as writer, watched(link) as locks:
        assert pids_by_lock(locks.look())[WRITE] == writer.pid


@fault("database", "a database watched while a transaction is open", "its locks hold, its bytes stay")
def test_look_changes_no_byte_and_drops_no_lock(database: Path) -> None:
    with Elsewhere("sqlite3", database) as other:
        other.rows("writer", "BEGIN IMMEDIATE")
        other.rows("writer", "UPDATE t SET b = 7")
        before = digests(database)
        for _ in range(20):
            with watched(database) as locks:
                assert pids_by_lock(locks.look())[WRITE] == other.process.pid
        assert digests(database) == before
        with process(
            database, then="c.execute('PRAGMA busy_timeout=0'); c.execute('BEGIN IMMEDIATE')\n"
        ) as late:
            assert late.wait(PATIENCE_S) != 0  # the lock is still there
        other.rows("writer", "COMMIT")
        assert other.rows("reader", "SELECT b FROM t WHERE a = 1") == [(7,)]


def digests(database: Path) -> dict[str, str]:
    files = sorted(database.parent.glob(f"{database.name}*"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_process_with_the_database_open_may_not_watch(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(UsageError, match="Watch from another process"):
            LockedFile(database)


def test_watching_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database at all", encoding="ascii")
    for name, message in (
        ("gone.db", "no such file"),
        ("text.db", "not an SQLite database"),
        ("", "not a file"),
    ):
        with pytest.raises(UsageError, match=message):
            LockedFile(tmp_path / name)


def test_unreadable_database_says_who_may_read_it(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(database))

    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(EnvironmentFailure, match=r"Permission denied\. Run sqlstress watch as the owner"):
        LockedFile(database)


def test_system_without_f_getlk_is_refused(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UsageError, match="F_GETLK"):
        LockedFile(database)
