"""Backups in steps, which begin again after each write of another connection."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sqlstress.recording import BACKUP
from sqlstress.recording.backups import BackupSteps
from sqlstress.recording.failed_statements import FailedStatements
from tests.own_app import HEAD, findings_of, line_of, measured
from tests.recording.failing_programs import INSERT, open_file

WRITES = 4


def backed_up(file: Path, *, other_writes: int = 0, **options: Any) -> list[int]:
    """Copy a database of several pages. In the first steps, another connection writes it.

    Return the number of pages that remain after each step.
    """
    remaining: list[int] = []
    with open_file(file) as source, open_file(file) as other, closing(sqlite3.connect(":memory:")) as target:
        source.execute("INSERT INTO t VALUES (zeroblob(40000))")

        def progress(_status: int, left: int, _total: int) -> None:
            remaining.append(left)
            if len(remaining) <= other_writes:
                other.execute(INSERT)

        source.backup(target, progress=progress, **options)
        assert target.execute("SELECT count(*) FROM t").fetchone() == (10 + other_writes,)
    return remaining


def restarts_of(recorder: FailedStatements) -> list[tuple[str, int, str]]:
    return [
        (what, count, traits["restarts"])
        for topic, what, count, _, traits in recorder.records()
        if topic == BACKUP
    ]


@pytest.mark.parametrize("pages", [1, 3])
def test_restarts_of_a_backup_are_recorded_with_its_line(
    file: Path, recorder: FailedStatements, *, pages: int
) -> None:
    remaining = backed_up(file, other_writes=WRITES, pages=pages)
    ((at, count, restarts),) = restarts_of(recorder)
    assert (count, restarts) == (1, str(WRITES))
    assert at.startswith(f"{Path(__file__).name}:")
    assert remaining[-1] == 0


@pytest.mark.parametrize("options", [{}, {"pages": -1}, {"pages": 0}, {"pages": 2}], ids=str)
def test_backup_without_other_writers_is_not_recorded(
    file: Path, recorder: FailedStatements, options: dict[str, int]
) -> None:
    backed_up(file, **options)
    assert restarts_of(recorder) == []


def test_write_of_the_same_connection_is_no_restart(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as source, closing(sqlite3.connect(":memory:")) as target:
        source.execute("INSERT INTO t VALUES (zeroblob(40000))")
        source.backup(target, pages=1, progress=lambda *_: source.execute(INSERT))
    assert restarts_of(recorder) == []


def test_only_steps_that_copied_count() -> None:
    seen: list[tuple[int, int, int]] = []
    steps = BackupSteps(lambda *step: seen.append(step))
    notes = [(0, 8, 10), (sqlite3.SQLITE_BUSY, 8, 10), (0, 6, 10), (0, 8, 10), (sqlite3.SQLITE_DONE, 0, 10)]
    for note in notes:
        steps.note(*note)
    assert steps.restarts == 1
    assert seen == notes


COPIES = """
@transaction
def copy(c):
    c.execute("UPDATE t SET x = zeroblob(200000) WHERE typeof(x) = 'integer'")
    target = sqlite3.connect(":memory:")
    c.backup(target, pages=2, progress=lambda *_: time.sleep(0.001))
    target.close()

@transaction(weight=30)
def write(c):
    c.execute("INSERT INTO t VALUES ('x')")
"""


@pytest.mark.thorough
@pytest.mark.parametrize("pages", ["pages=2", "pages=-1"])
def test_report_names_a_backup_that_begins_again(tmp_path: Path, pages: str) -> None:
    text = HEAD + COPIES.replace("pages=2", pages)
    found = findings_of(measured(tmp_path, text, duration=1.0, concurrency=3), "backup-in-steps")
    lines = [f"own.py:{line_of(text, 'c.backup(')}"] if pages == "pages=2" else []
    assert [finding.facts["at"] for finding in found] == lines
