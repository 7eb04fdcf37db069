"""Causes that are in another call than the failed statement: a transaction left open, a slow reader."""

from __future__ import annotations

import sqlite3
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sqlstress.analysis.causes import diagnose
from sqlstress.recording import FAILED_STATEMENT, SLOW_READ
from sqlstress.recording.after_calls import SLOW_READ_S
from sqlstress.recording.failed_statements import FailedStatements
from sqlstress.recording.failure_facts import facts_of
from tests.own_app import findings_of, line_of, measured
from tests.recording.failing_programs import INSERT, SELECT, open_file

SLOW_S = SLOW_READ_S * 1.5


@pytest.mark.parametrize(
    ("ends", "cause"), [(True, "stale-snapshot"), (False, "left-open-reads")], ids=["same_call", "later_call"]
)
def test_read_in_an_earlier_call_is_the_cause_of_a_stale_snapshot(
    file: Path, recorder: FailedStatements, *, ends: bool, cause: str
) -> None:
    with open_file(file) as this, open_file(file) as other:
        if ends:
            recorder.check_left_open("report")
        this.execute("BEGIN")
        this.execute(SELECT).fetchall()
        if not ends:
            recorder.check_left_open("report")
        other.execute(INSERT)
        with suppress(sqlite3.OperationalError):
            this.execute(INSERT)
    ((*_, traits),) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    rule = diagnose(int(traits["code"]), facts_of(traits, float(traits["waited_ms"]), 200)).cause
    assert rule and rule.name == cause
    assert traits["opened_by"] == ("" if ends else "report")


def slow_reads(recorder: FailedStatements) -> list[tuple[str, str]]:
    """Return the slow queries of a recorder, as SQL and line."""
    return [(sql, traits["at"]) for topic, sql, _, _, traits in recorder.records() if topic == SLOW_READ]


def test_query_before_long_work_of_its_call_is_a_slow_read(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        recorder.costs.begin()
        for _ in connection.execute(SELECT):
            time.sleep(SLOW_S / 5)
        at = sys._getframe().f_lineno - 2
        connection.execute(INSERT)
        time.sleep(SLOW_S)
        recorder.check_left_open("export")
    assert slow_reads(recorder) == [(SELECT, f"{Path(__file__).name}:{at}")]


def test_work_before_a_query_is_no_slow_read(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        connection.execute(SELECT).fetchall()  # of an earlier call
        recorder.costs.begin()
        time.sleep(SLOW_S)
        connection.execute(SELECT).fetchall()
        recorder.check_left_open("export")
    assert not slow_reads(recorder)


EXPORT = """
import sqlite3, time
from sqlstress import connect, setup, transaction

@setup
def create(database):
    db = sqlite3.connect(database)
    db.execute("CREATE TABLE sample (n)")
    db.executemany("INSERT INTO sample VALUES (?)", [(n,) for n in range(2000)])
    db.commit()
    db.close()

@connect
def opened(database):
    return sqlite3.connect(database, timeout=0.1, isolation_level=None)

@transaction
def log(db):
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO sample VALUES (1)")
    try:
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")

@transaction
def export(db):
    for row in db.execute("SELECT n FROM sample ORDER BY n LIMIT 150"):
        time.sleep(0.001)
"""


@pytest.mark.thorough
def test_report_names_the_query_of_another_process_for_which_commit_waits(tmp_path: Path) -> None:
    report = measured(tmp_path, EXPORT, concurrency=4, ops=24, max_failed=1)
    texts = [finding.text for finding in findings_of(report, "failed-statement")]
    line = line_of(EXPORT, "for row in db.execute")
    assert any(
        "reader is probably SELECT n FROM sample" in text and f"own.py:{line}" in text for text in texts
    )
