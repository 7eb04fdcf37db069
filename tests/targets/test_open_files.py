"""Processes that have a database open, found by their open files."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sqlstress.targets.sqlite.open_files import DELETED, OTHER, SAME, Opener, openers, other_names

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the open files of processes")
CONNECT = (
    "import sqlite3, sys\n"
    "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    "c.execute('PRAGMA journal_mode=wal'); c.execute('CREATE TABLE IF NOT EXISTS t (a)')\n"
    "print(1, flush=True); sys.stdin.readline()\n"
)


@contextmanager
def connected(database: Path) -> Iterator[int]:
    """Start a process with a connection that is in no transaction; yield its number."""
    command = [sys.executable, "-c", CONNECT, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline()
            yield child.pid
        finally:
            child.kill()


def openers_by_pid(database: Path) -> dict[int, Opener]:
    found = openers(database)
    assert found is not None
    return {opener.pid: opener for opener in found.seen}


@linux
def test_idle_connection_is_an_opener(tmp_path: Path) -> None:
    database = (tmp_path / "app.db").resolve()
    with connected(database) as pid:
        assert openers_by_pid(database)[pid] == Opener(pid, str(database), SAME)
    assert pid not in openers_by_pid(database)


@linux
@pytest.mark.parametrize("suffixes", [("-wal", "-shm"), ("-wal",), ("-shm",)])
def test_deleted_wal_or_index_is_reported(tmp_path: Path, suffixes: tuple[str, ...]) -> None:
    database = (tmp_path / "app.db").resolve()
    with connected(database) as pid:
        for suffix in suffixes:
            database.with_name(f"app.db{suffix}").unlink()
        opener = openers_by_pid(database)[pid]
        assert (opener.wal, opener.deleted_wal) == (DELETED, "-wal" in suffixes)


@linux
def test_wal_next_to_another_name_is_reported(tmp_path: Path) -> None:
    database, other = (tmp_path / "app.db").resolve(), (tmp_path / "other.db").resolve()
    database.touch()
    other.hardlink_to(database)
    with connected(database) as first, connected(other) as second:
        found = openers_by_pid(database)
        assert (found[first].wal, found[second].wal) == (SAME, OTHER)
        assert found[second].name == str(other)
    assert other_names(database) == (2, False)


@linux
def test_deleted_database_keeps_its_openers(tmp_path: Path) -> None:
    database = (tmp_path / "app.db").resolve()
    with connected(database) as pid:
        database.unlink()
        assert pid in openers_by_pid(database)


@linux
def test_calling_process_is_left_out_and_no_file_is_opened(tmp_path: Path) -> None:
    database = (tmp_path / "app.db").resolve()
    database.touch()
    with database.open("rb"):
        assert os.getpid() not in openers_by_pid(database)


@linux
def test_processes_that_may_not_be_read_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "12" / "fd").mkdir(parents=True)
    real = Path.iterdir

    def refused(folder: Path) -> Iterator[Path]:
        if folder.name == "fd":
            raise PermissionError(13, "Permission denied")
        return iter(list(real(folder)))

    monkeypatch.setattr(Path, "iterdir", refused)
    found = openers(tmp_path / "app.db", tmp_path)
    assert found is not None and (found.seen, found.hidden) == ((), 1)


@pytest.mark.parametrize("name", ["my app.db", "my\tapp\n.db", "a\\b.db", "a\\040b.db", "app.db"])
def test_mount_point_of_the_file_itself_is_reported(tmp_path: Path, name: str) -> None:
    database, mounts = tmp_path / name, tmp_path / "mountinfo"
    try:
        database.touch()
    except OSError:
        pytest.skip(f"this system has no file named {name!r}")
    point = re.sub(r"[\s\\]", lambda found: f"\\{ord(found[0]):03o}", str(database))
    mounts.write_text(f"36 35 98:0 /x {point} rw,noatime shared:1 - ext4 /dev/vda rw\n", encoding="utf-8")
    assert other_names(database, mounts) == (1, True)
    assert other_names(database, tmp_path / "missing") == (1, False)
    assert other_names(tmp_path / "missing.db", mounts) == (0, False)
