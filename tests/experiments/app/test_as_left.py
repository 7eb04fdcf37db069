"""The first worker that opens the database gets the state that setup left; no worker opens it before the
user's code.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.own_app import measured

HEAD = """
import apsw, os, signal, sqlite3, subprocess, sys
from pathlib import Path
from sqlstress import check, connect, setup, transaction
MAKE = "CREATE TABLE t (x); INSERT INTO t VALUES (0);"
@transaction
def add(c): c.execute("UPDATE t SET x = x + 1")
@check
def is_there(query): assert query("SELECT x FROM t")
"""
ROLLBACK = """
@setup
def made(path):
    c = sqlite3.connect(path)
    c.executescript(MAKE)
    c.close()
@connect
def opened(path):
    assert Path(path).read_bytes()[18] == 1, "the file is in WAL mode already"
    c = sqlite3.connect(path, isolation_level=None)
    c.execute("PRAGMA journal_mode=WAL")
    return c
"""
CRASHED = """
WRITES = "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
WRITES += "c.executescript('PRAGMA journal_mode=WAL; ' + sys.argv[2]); os._exit(0)"
@setup
def made(path):
    subprocess.run([sys.executable, "-c", WRITES, path, MAKE], check=True)
@connect
def opened(path):
    assert Path(path + "-wal").stat().st_size, "the WAL is recovered already"
    return sqlite3.connect(path, isolation_level=None)
"""
NO_FILE = """
@connect
def opened(path):
    assert not Path(path).exists(), "the file is there already"
    c = sqlite3.connect(path, isolation_level=None)
    c.executescript("PRAGMA journal_mode=WAL;" + MAKE)
    return c
"""


@pytest.mark.parametrize("text", [ROLLBACK, CRASHED, NO_FILE], ids=["rollback", "crashed WAL", "no file"])
@pytest.mark.thorough
def test_first_worker_gets_the_state_that_setup_left(text: str, tmp_path: Path) -> None:
    report = measured(tmp_path, HEAD + text, ops=5, repeat=2, concurrency=1)
    assert report.exit_code == 0, report.text()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["own.py"]


FAILS = """
@setup
def made(path): sqlite3.connect(path).executescript(MAKE)
@connect
def opened(path):
    marks = Path({folder!r})
    if len(list(marks.iterdir())) < {first}:
        (marks / str(os.getpid())).touch()
        return sqlite3.connect(path, timeout=30, isolation_level=None)
    raise sqlite3.OperationalError("database is locked")
"""


@pytest.mark.thorough
def test_openings_that_fail_are_counted(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    text = FAILS.format(folder=str(tmp_path / "marks"), first=1)
    report = measured(tmp_path, HEAD + text, ops=5, repeat=2, concurrency=3)
    said = report.runs[0].error or ""
    assert re.search(r"connect failed in 3 of 3 processes \(here after \S+ ms\)", said), said
    assert "OperationalError: database is locked" in said and report.exit_code == 4


OPENED = """
@setup
def made(path):
    c = sqlite3.connect(path)
    c.executescript("PRAGMA journal_mode=WAL; " + MAKE)
    c.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, y REFERENCES u)")
    c.execute("INSERT INTO u VALUES (1, 2)")
    c.commit()
    c.close()
@connect
def opened(path):
    log = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    name = Path(path).name
    def hear(event, args):
        if event in ("open", "sqlite3.connect") and name in str(args[0]):
            os.write(log, f"{{os.getpid()}} {{event}} {{args[0]}}\\n".encode())
    sys.addaudithook(hear)
    return {made}
def apsw_connection(path):
    c = apsw.Connection(path)
    c.set_busy_timeout(30000)
    return c
"""
LIBRARIES = {
    "sqlite3": ("sqlite3.connect(path, timeout=30, isolation_level=None)", 1),
    "apsw": ("apsw_connection(path)", 0),
}


@pytest.mark.thorough
@pytest.mark.parametrize("library", LIBRARIES)
def test_worker_never_opens_the_file_itself(library: str, tmp_path: Path) -> None:
    made, opens = LIBRARIES[library]
    log = tmp_path / "log"
    text = OPENED.format(log=str(log), made=made)
    report = measured(tmp_path, HEAD + text, ops=5, repeat=2, concurrency=2)
    assert report.exit_code == 0, report.text()
    lines = [line.split(" ", 2) for line in log.read_text().splitlines()]
    of_process = {pid: [what for sighting, what, _ in lines if sighting == pid] for pid, _, _ in lines}
    assert set(map(tuple, of_process.values())) == ({("sqlite3.connect",)} if opens else set()), lines
    if opens:
        assert "Rows refer to rows that do not exist" in " ".join(report.text().split())
