"""The command `sqlstress hunt`, and `doctor --hunt`: real hunts, through the real command line."""

import json
import sys
from pathlib import Path

import pytest

from sqlstress import api
from sqlstress.experiments.hunt.result import WAL_RESET
from sqlstress.recording import FAILED_STATEMENT
from sqlstress.sqlite_codes import has_wal_reset_bug
from sqlstress.targets.sqlite.connections import native_unavailable
from sqlstress.targets.sqlite.drivers.sqlite3_driver import versions
from tests.cli.conftest import Cli

pytestmark = pytest.mark.skipif(
    native_unavailable("sqlite3") is not None, reason="there is no C extension here"
)


def test_hunt_reports_its_rounds_and_leaves_no_file(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("apsw")
    report = tmp_path / "hunt.json"
    words = ("--driver", "apsw", "--max-time", "1s", "--dir", tmp_path, "-o", report, "-o", "txt:-")
    done = cli("hunt", *words, expected=0)
    assert "Nothing found." in done.out
    hunt = json.loads(report.read_text(encoding="utf-8"))["hunt"]["found"]
    assert hunt["rounds"] >= 1 and hunt["operations"]["writer"] > 0 and hunt["found"] is None
    assert [path.name for path in tmp_path.iterdir()] == ["hunt.json"]


@pytest.mark.thorough
@pytest.mark.skipif(not has_wal_reset_bug(versions()[1]), reason="this SQLite has no known bug")
def test_wal_reset_bug_is_found_and_named(cli: Cli, tmp_path: Path) -> None:
    """SQLite may be patched here; if so, the hunt may find nothing."""
    report = tmp_path / "hunt.json"
    done = cli("hunt", "--max-time", "60s", "--shrink-time", "1s", "--dir", tmp_path, "-o", report)
    assert done.code in (0, 1) and done.err == ""
    hunt = json.loads(report.read_text(encoding="utf-8"))["hunt"]["found"]
    assert bool(hunt["found"]) == bool(done.code)
    if hunt["found"]:
        assert hunt["known"] == WAL_RESET
        assert hunt["found"]["command"][:3] == ["sqlstress", "hunt", "--as-given"]


@pytest.mark.thorough
def test_doctor_hunts_in_the_folder_of_dir(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("apsw")
    hunt = api.hunt
    monkeypatch.setattr(api, "hunt", lambda **options: hunt(**{**options, "max_time": "1s"}))
    done = cli("doctor", "--hunt", "--driver", "apsw", "--dir", tmp_path)
    assert (done.code, done.err) == (0, ""), done.out
    assert "Hunt         Nothing found." in done.out
    assert [*tmp_path.iterdir()] == []


PROGRAM = """
import os, sqlite3
from sqlstress import connect, setup, transaction

@setup
def make(database):
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (a)")
    connection.close()

@connect
def open_database(database):
    return database, sqlite3.connect(database, isolation_level=None, timeout=0)

@transaction
def add(state):
    database, connection = state
    connection.execute("INSERT INTO t VALUES (1)")
"""
OPENS = """
    open(database, "rb").close()
    try:
        connection.execute("INSERT INTO nothing VALUES (1)")
    except sqlite3.OperationalError:
        pass
"""
TRUNCATES = """
    os.truncate(database + "-shm", 0)
    connection.execute("INSERT INTO t VALUES (1)")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not lose locks like this")
def test_hunt_in_a_program_reports_lost_locks_and_failed_statements(cli: Cli, tmp_path: Path) -> None:
    program, report = tmp_path / "program.py", tmp_path / "hunt.json"
    program.write_text(PROGRAM + OPENS)
    words = ("hunt", "--max-time", "1s", "--no-pauses", "--dir", tmp_path, "-o", report, "-o", "txt:-")
    done = cli(*words, "app", program, "-c", "1", "--duration", "100ms", expected=0)
    assert "opened kv.db" in done.text and "Closing the file drops SQLite's locks" in done.text
    (run,) = json.loads(report.read_text(encoding="utf-8"))["runs"]
    sightings = run["trials"][0]["sightings"]
    failed = [sighting["what"] for sighting in sightings if sighting["topic"] == FAILED_STATEMENT]
    assert failed == ["INSERT INTO nothing VALUES (N)"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems may end the process in other ways")
@pytest.mark.parametrize("command", [("app",), ("hunt", "--shrink-time", "0s", "app")], ids=["app", "hunt"])
def test_bus_error_is_reported_with_cause_and_cure(
    cli: Cli, tmp_path: Path, command: tuple[str, ...]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + TRUNCATES)
    first, *more = command
    done = cli(first, "--dir", tmp_path, *more, program, "-c", "1", "--duration", "100ms")
    assert done.code == 4
    assert "worker 1 was killed by SIGBUS (the -shm file was truncated under a live connection" in done.text
    assert "let no other code open or delete -shm" in done.text
