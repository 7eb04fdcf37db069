"""The start of an application: all processes open the database at once, in each situation."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sqlstress.api import Report
from sqlstress.errors import UsageError
from sqlstress.experiments.app.situations import convert
from sqlstress.experiments.app.spec import CRASHED_WAL, NO_FILE, ROLLBACK, SITUATIONS, WAL
from sqlstress.system.processes import Died, call_in_subprocess
from tests.own_app import findings_of, left, line_of, measured

HEAD = """
import sqlite3
from sqlstress import connect, setup, transaction
@transaction
def add(c):
    c.execute("INSERT INTO t VALUES (1)")
"""
WORKS_ONCE = """
@connect
def opened(path):
    c = sqlite3.connect(path, timeout=60, isolation_level=None)
    c.execute("CREATE TABLE IF NOT EXISTS t (x UNIQUE)")
    c.execute("INSERT INTO t VALUES (1)")
    return c
"""
PATIENT = """
@connect
def opened(path):
    c = sqlite3.connect(path, timeout=60, isolation_level=None)
    c.execute("CREATE TABLE IF NOT EXISTS t (x)")
    return c
"""
NEEDS_SETUP = """
@setup
def made(path):
    c = sqlite3.connect(path)
    c.execute("CREATE TABLE t (x)")
    c.close()
@connect
def opened(path):
    c = sqlite3.connect(path, timeout=60)
    c.execute("SELECT * FROM t").fetchall()
    return c
"""


def started(folder: Path, text: str, **options: Any) -> Report:
    return measured(folder, HEAD + text, start=True, **{"concurrency": 3, **options})


def situations(report: Report) -> list[str]:
    return [run.case.spec.situation for run in report.runs]


def test_failed_openings_are_counted_in_every_situation(tmp_path: Path) -> None:
    report = started(tmp_path, WORKS_ONCE)
    assert situations(report) == [*SITUATIONS]
    counts = [(trial.transactions, trial.failed) for run in report.runs for trial in run.trials]
    assert counts == [(1, 2), (0, 3), (0, 3), (0, 3)] and not report.ok
    (text,) = (finding.text for finding in findings_of(report, "failed-statement"))
    assert text.startswith("INSERT INTO t VALUES (N) (own.py:12) failed 11 times")
    assert "two had looked for the row" in text
    assert left(tmp_path) == []


@pytest.mark.thorough
def test_openings_that_wait_pass(tmp_path: Path) -> None:
    report = started(tmp_path, PATIENT)
    assert report.ok
    text = report.text()
    assert [line.split()[-3:-1] for line in text.splitlines() if line.startswith("WAL after")] == [["3", "0"]]
    assert "Compared in" not in text


def test_connect_that_needs_tables_of_setup_is_not_called_without_a_file(tmp_path: Path) -> None:
    report = started(tmp_path, NEEDS_SETUP)
    assert situations(report) == [ROLLBACK, WAL, CRASHED_WAL] and report.ok


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [("", {}, "needs a function with @connect"), (PATIENT, {"ops": 3}, "Leave out ops")],
)
def test_options_that_openings_do_not_have_are_refused(
    text: str, options: dict[str, Any], error: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=error):
        started(tmp_path, text, **options)


MIGRATES = """
import time
@setup
def made(path):
    c = sqlite3.connect(path)
    c.execute("CREATE TABLE t (x)")
    c.execute("PRAGMA user_version = 1")
    c.close()
@connect
def opened(path):
    c = sqlite3.connect(path, timeout=60, isolation_level=None)
    {begin}
    (version,) = c.execute("PRAGMA user_version").fetchone()
    time.sleep(0.05)
    if version < 1:
        c.execute("CREATE TABLE t (x)")
    if version < 2:
        c.execute("ALTER TABLE t ADD COLUMN y")
    c.execute("PRAGMA user_version = 2")
    {end}
    return c
"""
WRONG_MIGRATION = MIGRATES.format(begin="", end="")
RIGHT_MIGRATION = MIGRATES.format(begin="c.execute('BEGIN IMMEDIATE')", end="c.execute('COMMIT')")
SITUATIONS_NOTE = "connect has run once alone before, so these test no upgrade"


def test_migration_that_processes_make_at_once_has_cause_and_cure(tmp_path: Path) -> None:
    text = " ".join(started(tmp_path, WRONG_MIGRATION).text().split())
    line = line_of(HEAD + WRONG_MIGRATION, "(version,) =")
    assert f"because each had read user_version (own.py:{line}) before the transaction that migrates" in text
    assert "BEGIN IMMEDIATE, read it again, migrate, COMMIT." in text
    assert SITUATIONS_NOTE in text and "no writes seen" not in text


def test_upgrade_of_the_file_of_setup_has_cause_and_cure_without_start(tmp_path: Path) -> None:
    report = measured(tmp_path, HEAD + WRONG_MIGRATION, concurrency=3)
    text = " ".join(report.text().split())
    assert "duplicate column name: y" in text and "BEGIN IMMEDIATE, read it again, migrate, COMMIT." in text


@pytest.mark.thorough
def test_right_migration_has_no_finding(tmp_path: Path) -> None:
    report = started(tmp_path, RIGHT_MIGRATION)
    assert report.ok and "migrates" not in report.text()


def test_change_of_the_schema_that_always_fails_is_no_race(tmp_path: Path) -> None:
    always = WRONG_MIGRATION.replace("if version < 1:", "if True:")
    report = started(tmp_path, always, concurrency=1)
    text = report.text()
    assert "already exists" in text and "migrates" not in text


def has_frames(path: Path) -> bool:
    wal = path.with_name(f"{path.name}-wal")
    return wal.exists() and wal.stat().st_size > 0


MODES: dict[str, Callable[[Path], bool]] = {
    ROLLBACK: lambda path: path.read_bytes()[18] == 1 and not has_frames(path),
    WAL: lambda path: path.read_bytes()[18] == 2 and not has_frames(path),
    CRASHED_WAL: lambda path: path.read_bytes()[18] == 2 and has_frames(path),
}
"""Byte 18 of a database is 1 with a rollback journal, 2 in WAL mode."""


@pytest.mark.parametrize("situation", MODES)
def test_files_are_in_the_situation(situation: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA user_version = 7")
    if situation == CRASHED_WAL:
        with pytest.raises(Died):
            call_in_subprocess(lambda: None, convert, str(path), situation)
    else:
        convert(str(path), situation)
    assert MODES[situation](path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (7,)


def test_first_situation_has_no_file() -> None:
    assert SITUATIONS[0] == NO_FILE
