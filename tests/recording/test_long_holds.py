"""Long write transactions of the user's code, by real connections."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from sqlstress.recording import CHECKPOINT, LONG_HOLD, LONG_HOLD_S, MIN_HOLD_S, UNFETCHED, failed_statements
from sqlstress.recording.call_costs import Hold, hold_of
from sqlstress.recording.failed_statements import FailedStatements
from sqlstress.recording.failures import TimedStep, short_sql
from sqlstress.user_work import call_findings
from tests.own_app import findings_of, measured
from tests.recording.failing_programs import INSERT, open_file


def holds(recorder: FailedStatements) -> list[tuple[str, int, dict[str, str]]]:
    return [(sql, count, traits) for topic, sql, count, _, traits in recorder.records() if topic == LONG_HOLD]


def begin_immediate(connection: Any) -> None:
    connection.execute("BEGIN IMMEDIATE")
    time.sleep(2 * LONG_HOLD_S)
    connection.execute("COMMIT")


def write_first(connection: Any) -> None:
    connection.execute("BEGIN")
    connection.execute(INSERT)
    time.sleep(2 * LONG_HOLD_S)
    connection.execute("ROLLBACK")


@pytest.mark.parametrize("library", ["sqlite3", "apsw"])
@pytest.mark.parametrize(
    ("work", "sql"), [(begin_immediate, "BEGIN IMMEDIATE"), (write_first, "INSERT INTO t VALUES (N)")]
)
def test_sleep_within_a_write_transaction_is_recorded(
    library: str, work: Callable[[Any], None], sql: str, file: Path, recorder: FailedStatements
) -> None:
    connection: Any = (
        sqlite3.connect(file, isolation_level=None) if library == "sqlite3" else apsw.Connection(str(file))
    )
    with closing(connection):
        work(connection)
    ((recorded, count, traits),) = holds(recorder)
    line = work.__code__.co_firstlineno + 1
    assert (recorded, count) == (sql, 1)
    assert f"{Path(__file__).name}:{line}" in (traits["at"], traits["began_at"])
    assert float(traits["seconds"]) >= 2 * LONG_HOLD_S and float(traits["outside"]) > 0.5


def test_implicit_transaction_is_recorded_after_its_connection_has_gone(
    file: Path, recorder: FailedStatements
) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(INSERT)
        line = sys._getframe().f_lineno - 1
        time.sleep(2 * LONG_HOLD_S)
        connection.commit()
    del connection
    sqlite3.connect(file).close()
    ((_, _, traits),) = holds(recorder)
    assert traits["at"] == f"{Path(__file__).name}:{line}"


def test_wait_for_the_lock_of_another_file_is_not_outside_of_sqlite(
    file: Path, recorder: FailedStatements
) -> None:
    other_file = file.with_name("other.db")
    with (
        open_file(other_file, check_same_thread=False) as blocker,
        open_file(other_file, timeout=60) as other,
    ):
        with open_file(file) as connection:
            connection.execute("BEGIN IMMEDIATE")
            blocker.execute("BEGIN IMMEDIATE")
            timer = threading.Timer(2 * LONG_HOLD_S, blocker.rollback)
            timer.start()
            other.execute("BEGIN IMMEDIATE")
            timer.join()
            connection.execute("COMMIT")
            connection.execute("SELECT 1")
        other.rollback()
    outside = [float(traits["outside"]) for sql, _, traits in holds(recorder) if sql == "BEGIN IMMEDIATE"]
    assert outside and min(outside) < 0.5


def checkpoint(connection: Any, mode: str) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
    else:
        connection.wal_checkpoint(mode=getattr(apsw, f"SQLITE_CHECKPOINT_{mode}"))


def open_by(library: str, file: Path) -> Any:
    """Open a connection of a library. SQLite of another library in this process would ignore its locks."""
    if library == "apsw":
        return apsw.Connection(str(file))
    return sqlite3.connect(file, isolation_level=None, check_same_thread=False)


@pytest.mark.parametrize("mode", ["TRUNCATE", "PASSIVE"])
@pytest.mark.parametrize("library", ["sqlite3", "apsw"])
def test_checkpoint_that_waits_for_a_reader_is_recorded(
    library: str, mode: str, file: Path, recorder: FailedStatements
) -> None:
    with closing(open_by(library, file)) as reader, closing(open_by(library, file)) as writer:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        writer.execute("PRAGMA busy_timeout = 60000")
        writer.execute(INSERT)
        timer = threading.Timer(5 * LONG_HOLD_S, lambda: reader.execute("ROLLBACK"))
        timer.start()
        checkpoint(writer, mode)
        timer.join()
    found = [sql for sql, _, traits in holds(recorder) if traits.get("work") == CHECKPOINT]
    assert found == (["PRAGMA wal_checkpoint(TRUNCATE)"] if mode == "TRUNCATE" else [])


def test_sleep_without_the_write_lock_is_not_recorded(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM t").fetchall()
        time.sleep(2 * LONG_HOLD_S)
        connection.execute(INSERT)
        connection.execute("COMMIT")
        time.sleep(2 * LONG_HOLD_S)
        connection.execute(INSERT)
    assert all(float(traits["seconds"]) < LONG_HOLD_S for *_, traits in holds(recorder))  # A slow disk


SLOW = """
UPDATE t SET x = (
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) SELECT count(*) FROM n
)
"""


@pytest.mark.parametrize("begin", ["", "BEGIN"])
def test_slow_write_is_recorded_with_its_line_and_scan(
    file: Path, recorder: FailedStatements, begin: str
) -> None:
    with open_file(file) as connection:
        for _ in range(2):  # CPU time is measured from the second long transaction on.
            connection.execute(begin)
            connection.execute(SLOW)
            line = sys._getframe().f_lineno - 1
            connection.execute("COMMIT" * bool(begin))
        connection.execute("SELECT 1")
    ((sql, count, traits),) = [hold for hold in holds(recorder) if "work" in hold[2]]
    assert (sql[:8], count, traits["work"]) == ("UPDATE t", 1, "SCAN t")
    name = Path(__file__).name
    lines = ("", f"{name}:{line - 1}") if begin else (f"{name}:{line}", "")
    assert (traits["at"], traits["began_at"]) == lines


@pytest.mark.parametrize("is_scan", [True, False])
def test_short_slow_write_is_recorded_only_if_it_scans(
    file: Path, recorder: FailedStatements, monkeypatch: pytest.MonkeyPatch, *, is_scan: bool
) -> None:
    monkeypatch.setattr(failed_statements, "LONG_HOLD_S", 3600.0)
    with open_file(file) as connection:
        for _ in range(2):
            connection.execute(SLOW if is_scan else f"{SLOW} WHERE rowid = 1")
        connection.execute("SELECT 1")
    assert [hold[2]["work"] for hold in holds(recorder)] == ["SCAN t"] * is_scan


def test_write_that_waited_is_not_recorded_as_slow(file: Path, recorder: FailedStatements) -> None:
    with open_file(file, check_same_thread=False) as other, open_file(file, timeout=60) as connection:
        for _ in range(2):
            other.execute("BEGIN IMMEDIATE")
            timer = threading.Timer(3 * LONG_HOLD_S, other.rollback)
            timer.start()
            connection.execute(INSERT)
            timer.join()
        connection.execute("SELECT 1")
    assert [hold for hold in holds(recorder) if "work" in hold[2]] == []


def test_time_of_statements_is_not_outside_of_sqlite() -> None:
    steps: list[TimedStep] = [
        ("BEGIN", False, None, 0.0, 1.0),
        (INSERT, True, None, 2.0, 4.0),
        (INSERT, True, None, 5.0, 9.0),
        ("COMMIT", True, None, 9.0, 10.0),
    ]
    assert hold_of(steps) == Hold(INSERT, 6.0, 1.0)
    assert hold_of(steps[:1]) is None


def test_statement_before_the_longest_time_outside_of_sqlite_is_recorded() -> None:
    steps: list[TimedStep] = [
        ("BEGIN IMMEDIATE", False, None, 0.0, 1.0),
        ("SELECT 1", True, None, 1.0, 2.0),
        (INSERT, True, None, 5.0, 6.0),
        ("COMMIT", True, None, 7.0, 8.0),
    ]
    assert hold_of(steps) == Hold("BEGIN IMMEDIATE", 7.0, 4.0, "SELECT 1")


def test_wait_of_a_begin_whose_end_is_unknown_is_no_hold() -> None:
    steps = [("BEGIN IMMEDIATE", False, None, 1.0, 1.0), (INSERT, True, None, 5.0, 6.0)]
    commit = ("COMMIT", True, None, 6.5, 7.0)
    assert hold_of([*steps, commit]) == Hold("BEGIN IMMEDIATE", 2.0, 0.5, INSERT)


# Writes with RETURNING whose rows are not all fetched.

TAKE = "UPDATE t SET x = x + 100 WHERE x < 2 RETURNING x"


def opened_by(library: str, file: Path) -> Any:
    """Return a connection in autocommit mode."""
    return apsw.Connection(str(file)) if library == "apsw" else sqlite3.connect(file, isolation_level=None)


@pytest.mark.parametrize("library", ["sqlite3", "apsw"])
@pytest.mark.parametrize("fetch", ["fetchone", "fetchall"])
def test_write_with_unfetched_rows_keeps_the_lock(
    library: str, fetch: str, file: Path, recorder: FailedStatements
) -> None:
    with closing(opened_by(library, file)) as connection:
        cursor = connection.cursor()
        for _ in range(2):
            cursor.execute(TAKE)
            line = sys._getframe().f_lineno - 1
            getattr(cursor, fetch)()
            time.sleep(2 * MIN_HOLD_S)
            connection.execute("SELECT 1").fetchall()
            connection.execute("UPDATE t SET x = 0").close()
    found = holds(recorder)
    assert [(sql, count) for sql, count, _ in found] == [(short_sql(TAKE), 2)] * (fetch == "fetchone")
    for _, _, traits in found:
        assert (traits["at"], traits["work"]) == (f"{Path(__file__).name}:{line}", UNFETCHED)
        assert 2 * MIN_HOLD_S <= float(traits["seconds"]) < 1


@pytest.mark.parametrize("library", ["sqlite3", "apsw"])
@pytest.mark.parametrize(
    "begin", ["SELECT 1", "BEGIN IMMEDIATE"], ids=["finished_and_query_open", "in_a_transaction"]
)
def test_write_is_not_blamed_for_an_open_query_or_transaction(
    library: str, begin: str, file: Path, recorder: FailedStatements
) -> None:
    with closing(opened_by(library, file)) as connection:
        connection.execute(begin)
        cursor, query = connection.cursor(), connection.cursor()
        cursor.execute(TAKE)
        cursor.fetchone() if connection.in_transaction else cursor.fetchall()
        query.execute("SELECT x FROM t")
        query.fetchone()
        time.sleep(2 * MIN_HOLD_S)
        connection.execute("SELECT 1").fetchall()
        rest = query.fetchall()
        cursor.fetchall()
        if connection.in_transaction:
            connection.execute("COMMIT")
    assert len(rest) == 8, "the open query goes on"
    assert not [sql for sql, _, traits in holds(recorder) if traits.get("work") == UNFETCHED]


@pytest.mark.parametrize("library", ["sqlite3", "apsw"])
def test_open_write_is_found_among_several_by_its_cursor(
    library: str, file: Path, recorder: FailedStatements
) -> None:
    other = "UPDATE t SET x = x + 1 WHERE x >= 2 RETURNING x"
    with closing(opened_by(library, file)) as connection:
        cursor = connection.cursor()
        cursor.execute(TAKE)
        cursor.fetchone()
        connection.execute(other).fetchall()
        time.sleep(2 * MIN_HOLD_S)
        connection.execute("SELECT 1").fetchall()
    assert [sql for sql, *_ in holds(recorder)] == [short_sql(TAKE)]


CLAIMS = """
import time
import apsw
from sqlstress import connect, setup, transaction

@setup
def create(database):
    apsw.Connection(database).execute("CREATE TABLE job (id INTEGER PRIMARY KEY, state INTEGER DEFAULT 0)")

@connect
def opened(database):
    connection = apsw.Connection(database)
    connection.set_busy_timeout(60000)
    connection.execute("INSERT INTO job (state) VALUES (0), (0), (0), (0)")
    return connection.cursor()

@transaction
def claim(cursor):
    cursor.execute("UPDATE job SET state = state + 1 WHERE id = 2 RETURNING id")
    cursor.fetchone()
    time.sleep(0.03)
"""


@pytest.mark.parametrize("fetch", ["fetchone", "fetchall"])
def test_report_names_the_write_with_unfetched_rows(tmp_path: Path, fetch: str) -> None:
    report = measured(tmp_path, CLAIMS.replace("fetchone", fetch), "claims.py", concurrency=1, ops=8)
    found = findings_of(report, "long-hold")
    assert len(found) == (fetch == "fetchone")
    for finding in found:
        assert finding.facts["at"] == "claims.py:19"
        assert "not all its rows were fetched" in finding.text and "Call fetchall()" in finding.text


SLEEPS = f"""
import sqlite3, time
from sqlstress import setup, connect, transaction

@setup
def make(database):
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE t (n)")

@connect
def opened(database):
    return sqlite3.connect(database, timeout=60)

@transaction
def work(connection):
    connection.execute("INSERT INTO t VALUES (1)")
    time.sleep({2 * LONG_HOLD_S})
    connection.commit()
"""


@pytest.mark.thorough
def test_report_names_statement_line_and_share(tmp_path: Path) -> None:
    report = measured(tmp_path, SLEEPS, "sleeps.py", concurrency=1, ops=4)
    (found,) = findings_of(report, "long-hold")
    assert found.facts["at"] == "sleeps.py:16" and found.facts["statement"] == "INSERT INTO t VALUES (N)"
    assert float(found.facts["outside"]) > 0.5 and int(found.facts["count"]) >= 4


@pytest.mark.thorough
@pytest.mark.parametrize("is_busy", [False, True])
def test_short_holds_are_named_if_they_fill_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_busy: bool
) -> None:
    monkeypatch.setattr(call_findings, "LONG_HOLD_S", 60.0)  # A busy machine makes a hold long.
    # On a busy machine, the start of the processes takes a part of the time.
    monkeypatch.setattr(call_findings, "BUSY_LOCK", 0.25)
    hold, pause, ops = LONG_HOLD_S / 2, *(("", 40) if is_busy else ("time.sleep(0.5)", 8))
    text = SLEEPS.replace(f"sleep({2 * LONG_HOLD_S})", f"sleep({hold})") + f"    {pause}\n"
    report = measured(tmp_path, text, concurrency=2, ops=ops)
    assert len(findings_of(report, "long-hold")) == is_busy


@pytest.mark.thorough
def test_refusal_behind_a_known_long_transaction_names_its_line(tmp_path: Path) -> None:
    text = SLEEPS.replace("timeout=60", f"timeout={1.5 * LONG_HOLD_S}")
    report = measured(tmp_path, text, "sleeps.py", concurrency=2, duration="1s", max_failed="100%")
    (finding,) = findings_of(report, "failed-statement")
    assert "The long transaction is that of sleeps.py:16: make it shorter." in finding.text
    assert "sqlstress watch" not in finding.text
