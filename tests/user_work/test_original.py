"""The user's database is copied, whether in use or not, and never changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from sqlstress.errors import EnvironmentFailure, SqlstressError, UsageError
from sqlstress.user_work import database
from sqlstress.user_work.database import copy
from sqlstress.user_work.options import journal_mode, journal_mode_in_subprocess

PROGRAM = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(f"PRAGMA journal_mode={sys.argv[2]}")
connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
connection.execute("INSERT INTO t VALUES (1)")
for sql in sys.argv[3:]:
    connection.execute(sql)
print("ready", flush=True)
sys.stdin.read()
"""

ANOTHER = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM t'); c.close()"


@contextmanager
def used(path: Path, mode: str, *sql: str) -> Iterator[subprocess.Popen[str]]:
    """Let another program use a database during the block."""
    command = [sys.executable, "-c", PROGRAM, str(path), mode, *sql]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout and program.stdout.readline() == "ready\n"
        yield program
        program.kill()


def state(path: Path) -> dict[str, tuple[int, bytes]]:
    """Return the bytes and the time of every file in the folder of a database."""
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in path.parent.iterdir()}


def rows(path: Path) -> list[tuple[int]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT x FROM t").fetchall()


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "theirs").mkdir()
    return tmp_path / "theirs" / ("app #1%41.db" if sys.platform == "win32" else "app #1?%41.db")


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_database_in_use_is_copied_unchanged(app: Path, mode: str, tmp_path: Path) -> None:
    with used(app, mode):
        before = state(app)
        copy(str(app), tmp_path / "kv.db")
        assert state(app) == before
    assert rows(tmp_path / "kv.db") == [(1,)] and journal_mode(str(app)) == mode


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets few make links")
def test_link_to_a_database_in_use_is_followed_to_its_wal(app: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(app)
    with used(app, "wal", "PRAGMA wal_autocheckpoint=0", "INSERT INTO t VALUES (2)"):
        copy(str(link), tmp_path / "kv.db")
    assert rows(tmp_path / "kv.db") == [(1,), (2,)]


def test_process_keeps_its_locks_while_its_database_is_examined(app: Path) -> None:
    with closing(sqlite3.connect(app, isolation_level=None)) as own:
        own.execute("PRAGMA journal_mode=wal")
        own.execute("CREATE TABLE t (x)")
        assert journal_mode_in_subprocess(str(app)) == "wal"
        # The last program that closes the file removes the WAL; it takes itself for the last if it sees no
        # other lock.
        subprocess.run([sys.executable, "-c", ANOTHER, str(app)], check=True)
        own.execute("INSERT INTO t VALUES (1)")
        assert rows(app) == [(1,)]


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_unused_database_is_copied_without_a_trace(app: Path, mode: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(app)) as connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    before = state(app)
    assert len(before) == 1
    copy(str(app), tmp_path / "kv.db")
    assert state(app) == before and rows(tmp_path / "kv.db") == [(1,)]


if sys.platform == "win32":

    @pytest.mark.parametrize("mode", ["wal", "delete"])
    def test_database_with_a_long_windows_name_is_copied(app: Path, mode: str, tmp_path: Path) -> None:
        with used(app, mode):
            copy(f"\\\\?\\{app}", tmp_path / "kv.db")
        assert rows(tmp_path / "kv.db") == [(1,)]


@pytest.mark.parametrize("name", [r"\\server\share\app 1%41.db", r"\\?\C:\app.db", r"C:\app.db", "/app?.db"])
def test_no_name_of_a_file_becomes_a_host(name: str) -> None:
    found = database.uri(PureWindowsPath(name) if "\\" in name else PurePosixPath(name))
    assert not found.startswith("file://") and unquote(found) == f"file:{name}"


@pytest.mark.parametrize("gone", ["", "-shm"])
def test_database_of_a_killed_program_is_copied_with_its_wal(app: Path, gone: str, tmp_path: Path) -> None:
    with used(app, "wal"):
        pass
    if gone:
        app.with_name(app.name + gone).unlink()
    before = state(app)
    assert f"{app.name}-wal" in before
    copy(str(app), tmp_path / "kv.db")
    assert state(app) == before and rows(tmp_path / "kv.db") == [(1,)]


def test_locked_original_fails_after_patience(
    app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "PATIENCE_S", 0.05)
    with used(app, "delete", "BEGIN EXCLUSIVE"):
        before = state(app)
        with pytest.raises(EnvironmentFailure, match=r"has been locked by another program"):
            copy(str(app), tmp_path / "kv.db")
        assert state(app) == before


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "no such file"),
        (b"", "is empty"),
        (b"\x93" * 4096, "is not a SQLite database, or is encrypted"),
        (b"SQLite format 3\0" + b"\x93" * 4080, "is damaged, encrypted, or not a SQLite database"),
    ],
)
def test_file_that_is_no_database_is_a_one_line_error(
    content: bytes | None, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "app.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=text) as caught:
        copy(str(path), tmp_path / "kv.db")
    assert len(str(caught.value).splitlines()) == 1


def test_folder_or_pipe_is_refused_as_database(tmp_path: Path) -> None:
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(SqlstressError, match="no such file"):
            journal_mode(str(name))


def test_database_larger_than_the_free_space_is_refused_before_copying(
    app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(app)) as connection:
        connection.execute("CREATE TABLE t (x)")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=300))
    with pytest.raises(EnvironmentFailure, match=r"needs 8\.2 kB, but 300 bytes are free"):
        copy(str(app), tmp_path / "kv.db")
    assert not (tmp_path / "kv.db").exists()
