"""Operations that make a process lose SQLite's locks are recorded, and no others."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from sqlstress.recording import CLOSED, COPIED, DELETED, LIBRARIES, LOST_LOCKS, MOVED
from sqlstress.recording.call_costs import CallCosts
from sqlstress.recording.callers import UserFrames
from sqlstress.recording.failed_statements import FailedStatements
from sqlstress.recording.lost_locks import LostLocks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not lose locks like this")


class Watched:
    """Database with a recorder of lost locks. An audit hook cannot be removed, so its recorder can be
    stopped.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.statements = FailedStatements(UserFrames(Path(__file__).parent), CallCosts())
        self.locks = LostLocks(str(file), self.statements)

    def kinds(self) -> list[str]:
        return [kind for topic, kind, _, _, _ in self.locks.records() if topic == LOST_LOCKS]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    file = tmp_path / "app.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
    monkeypatch.setattr(sqlite3, "connect", sqlite3.connect)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", sqlite3.dbapi2.connect)
    hooks = [*apsw.connection_hooks]
    watched = Watched(file)
    watched.statements.install()
    watched.locks.install()
    yield watched
    apsw.connection_hooks[:] = hooks


def by_open(file: Path) -> None:
    with file.open("rb") as opened:
        opened.read(16)


def by_copy(file: Path) -> None:
    shutil.copy(file, file.with_name("copy.db"))


def by_hash(file: Path) -> None:
    hashlib.sha256(file.read_bytes())


def by_wal(file: Path) -> None:
    by_open(file.with_name(f"{file.name}-wal"))


@pytest.mark.parametrize("look", [by_open, by_copy, by_hash, by_wal])
def test_file_opened_next_to_a_connection_is_recorded(look: Callable[[Path], None], watched: Watched) -> None:
    with closing(sqlite3.connect(watched.file)) as connection:
        connection.execute("SELECT * FROM t").fetchall()
        look(watched.file)
        (kind, count, traits), *_ = [
            (kind, count, traits)
            for topic, kind, count, _, traits in watched.locks.records()
            if topic == LOST_LOCKS
        ]
    assert (kind, count) == (CLOSED, 1)
    assert traits["at"].startswith(f"{Path(__file__).name}:")


def test_file_without_a_connection_is_not_recorded(watched: Watched) -> None:
    by_open(watched.file)
    with closing(sqlite3.connect(watched.file)) as connection:
        connection.execute("SELECT * FROM t").fetchall()
    by_open(watched.file)
    assert watched.kinds() == []


def test_namesake_in_another_folder_is_not_recorded(watched: Watched, tmp_path: Path) -> None:
    other = tmp_path / "folder" / watched.file.name
    other.parent.mkdir()
    other.touch()
    with closing(sqlite3.connect(watched.file)):
        by_open(other)
    assert watched.kinds() == []


@pytest.mark.parametrize("first", ["sqlite3", "apsw"])
def test_two_libraries_on_a_file_are_recorded(first: str, watched: Watched) -> None:
    connects: list[Callable[[str], Any]] = [sqlite3.connect, apsw.Connection]
    if first == "apsw":
        connects.reverse()
    with closing(connects[0](str(watched.file))), closing(connects[1](str(watched.file))):
        pass
    assert watched.kinds() == ([LIBRARIES] if apsw.using_amalgamation else [])


def test_two_libraries_on_different_files_are_not_recorded(watched: Watched, tmp_path: Path) -> None:
    with closing(sqlite3.connect(watched.file)), closing(apsw.Connection(str(tmp_path / "other.db"))):
        pass
    assert watched.kinds() == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_deleted_wal_under_a_connection_is_recorded(watched: Watched) -> None:
    with closing(sqlite3.connect(watched.file)) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        for suffix in ("-wal", "-shm", "-wal"):
            with suppress(FileNotFoundError):
                watched.file.with_name(watched.file.name + suffix).unlink()
        *removals, (_, kind, _, _, traits) = watched.locks.records()
    assert (kind, traits["file"]) == (DELETED, "app.db-wal and app.db-shm")
    assert [(kind, count, traits["file"]) for _, kind, count, _, traits in removals] == [
        (DELETED, 1, "app.db-wal"),
        (DELETED, 1, "app.db-shm"),
    ]
    assert all(traits["at"].startswith(f"{Path(__file__).name}:") for *_, traits in removals)


# Programs and functions that copy or replace the database file.


def by_program(file: Path) -> None:
    subprocess.run(["cp", str(file), str(file.with_name("copy.db"))], check=True)


def by_shell(file: Path) -> None:
    os.system(f"true && cp {file} {file}.bak")


def by_shell_of_subprocess(file: Path) -> None:
    subprocess.run(f"cat {file} > {file}.bak", shell=True, check=True)


def in_folder(file: Path) -> None:
    subprocess.run(["cp", file.name, "copy.db"], cwd=file.parent, check=True)


def by_restore(file: Path) -> None:
    subprocess.run(["cp", str(file.with_name("other.db")), str(file)], check=False)


def by_replace(file: Path) -> None:
    other = file.with_name("other.db")
    other.touch()
    other.replace(file)


def by_listing(file: Path) -> None:
    subprocess.run(["ls", "-l", str(file)], check=True)


def by_copy_of_another_file(file: Path) -> None:
    subprocess.run(["cp", __file__, str(file.with_name("copy.py"))], check=True)


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (by_program, [COPIED]),
        (by_shell, [COPIED]),
        (by_shell_of_subprocess, [COPIED]),
        (in_folder, [COPIED]),
        (by_restore, [MOVED]),
        (by_replace, [MOVED]),
        (by_listing, []),
        (by_copy_of_another_file, []),
    ],
)
def test_program_that_touches_the_file_is_recorded(
    act: Callable[[Path], None], kind: list[str], watched: Watched
) -> None:
    with closing(sqlite3.connect(watched.file)) as connection:
        connection.execute("SELECT * FROM t").fetchall()
        act(watched.file)
        records = watched.locks.records()
    found = [(kind, traits) for _, kind, _, _, traits in records if kind in (COPIED, MOVED)]
    assert [kind for kind, _ in found] == kind
    assert all(traits["at"].startswith(f"{Path(__file__).name}:") for _, traits in found)


@pytest.mark.parametrize("is_locked", [False, True])
def test_copy_with_the_write_lock_and_an_empty_wal_is_complete(watched: Watched, *, is_locked: bool) -> None:
    with closing(sqlite3.connect(watched.file, isolation_level=None)) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if is_locked:
            connection.execute("BEGIN IMMEDIATE")
        by_program(watched.file)
        assert watched.kinds() == [COPIED] * (not is_locked)
