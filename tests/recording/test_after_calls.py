"""Causes that are in another call than the failed statement: a transaction left open, a slow reader."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest
import sqlalchemy

from sqlstress.analysis.causes import diagnose
from sqlstress.recording import AFTER_COMMIT, FAILED_STATEMENT, LONG_HOLD_S, REPEATED, SLOW_READ
from sqlstress.recording.failed_statements import FailedStatements
from sqlstress.recording.failure_facts import code_of, facts_of
from sqlstress.recording.slow_calls import SLOW_READ_S
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


def cause_of(recorder: FailedStatements) -> str:
    """Return the name of the cause of the only failed statement."""
    ((_, _, _, message, traits),) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    code = code_of(int(traits["code"]), message)
    rule = diagnose(code, facts_of(traits, float(traits["waited_ms"]), 200)).cause
    assert rule
    return rule.name


def test_begin_after_an_earlier_call_left_a_transaction_open(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as this:
        this.execute("BEGIN")
        recorder.check_left_open("order")
        with suppress(sqlite3.OperationalError):
            this.execute("BEGIN")
    assert cause_of(recorder) == "begun-by-earlier-call"


def test_conflict_of_a_shared_connection_may_not_have_ended_the_transaction(
    file: Path, recorder: FailedStatements
) -> None:
    with open_file(file, check_same_thread=False) as shared:
        shared.execute("CREATE TABLE loan (book UNIQUE ON CONFLICT ROLLBACK)")
        thread = threading.Thread(target=shared.execute, args=("BEGIN",))
        thread.start()
        thread.join()
        shared.execute("INSERT INTO loan VALUES (1)")
        with suppress(sqlite3.IntegrityError):
            shared.execute("INSERT INTO loan VALUES (1)")
    assert cause_of(recorder) == "duplicate-key"


def test_begin_within_the_transaction_of_another_task(file: Path, recorder: FailedStatements) -> None:
    async def order(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")
        await asyncio.sleep(0)

    async def orders(connection: sqlite3.Connection) -> None:
        await asyncio.gather(*(order(connection) for _ in range(2)), return_exceptions=True)

    with open_file(file) as connection:
        asyncio.run(orders(connection))
    assert cause_of(recorder) == "begun-by-other-task"


@pytest.mark.parametrize(
    ("after", "is_twice"),
    [([INSERT], True), (["ROLLBACK", INSERT], False), ([], False)],
    ids=["writes_again", "rolls_back", "repeats_commit"],
)
def test_write_after_a_refused_commit_is_done_twice(
    after: list[str], file: Path, recorder: FailedStatements, *, is_twice: bool
) -> None:
    with open_file(file, timeout=0) as this, open_file(file) as other:
        this.execute("PRAGMA journal_mode = DELETE")
        cursor = other.execute(SELECT)
        cursor.fetchone()
        recorder.costs.begin()
        this.execute("BEGIN")
        this.execute(INSERT)
        with suppress(sqlite3.OperationalError):
            this.execute("COMMIT")
        cursor.close()
        for sql in after:
            this.execute(sql)
        if this.in_transaction:
            this.execute("COMMIT")
        recorder.check_left_open("post")
    repeated = [traits["after"] for topic, *_, traits in recorder.records() if topic == REPEATED]
    assert (repeated == [AFTER_COMMIT]) == is_twice


KEYED = "CREATE TABLE invoice (number INTEGER PRIMARY KEY, text)"
NUMBER = "SELECT max(number) FROM invoice"


@pytest.mark.parametrize(
    ("before", "named"),
    [([NUMBER], True), (["SELECT * FROM t"], False), (["BEGIN", NUMBER], False), ([], False)],
    ids=["autocommit", "another_table", "in_the_transaction", "no_query"],
)
def test_query_before_a_violated_key_is_recorded(
    before: list[str], file: Path, recorder: FailedStatements, *, named: bool
) -> None:
    with open_file(file) as connection:
        connection.execute(KEYED)
        connection.execute("INSERT INTO invoice VALUES (1, '')")
        connection.execute(NUMBER).fetchall()  # of an earlier call
        recorder.costs.begin()
        for sql in before:
            connection.execute(sql).fetchall()
        with suppress(sqlite3.IntegrityError):
            connection.execute("INSERT INTO invoice VALUES (1, 'again')")
    ((*_, traits),) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    assert traits["earlier_query"].startswith(f"{NUMBER} ({Path(__file__).name}:") == named
    assert bool(traits["earlier_query"]) == named


NUMBERS = """
import sqlite3, time
from sqlstress import connect, setup, transaction

@setup
def create(database):
    db = sqlite3.connect(database)
    db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE bill (n INTEGER PRIMARY KEY)")

@connect
def opened(database):
    return sqlite3.connect(database, timeout=30)

@transaction
def issue(db):
    (last,) = db.execute("SELECT max(n) FROM bill").fetchone()
    time.sleep(0.01)
    with db:
        db.execute("INSERT INTO bill VALUES (?)", ((last or 0) + 1,))
"""


def test_report_names_the_query_before_a_violated_key(tmp_path: Path) -> None:
    report = measured(tmp_path, NUMBERS, ops=40, max_failed=1)
    (finding,) = findings_of(report, "failed-statement")
    line = line_of(NUMBERS, "    (last,)")
    assert f"SELECT max(n) FROM bill (own.py:{line}). Two calls read the same" in finding.text
    assert "INSERT ... SELECT max(...) + 1" in finding.text and "ON CONFLICT" not in finding.text


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


@pytest.mark.parametrize(
    ("isolation", "expected"), [(None, True), ("DEFERRED", False)], ids=["alone", "in_a_transaction"]
)
def test_write_with_returning_outside_of_a_transaction_is_a_slow_read(
    file: Path, recorder: FailedStatements, *, isolation: str | None, expected: bool
) -> None:
    with closing(sqlite3.connect(file, isolation_level=isolation)) as connection:  # type: ignore[arg-type]
        connection.execute(INSERT)
        recorder.costs.begin()
        for _ in connection.execute("UPDATE t SET x = 1 RETURNING x"):
            time.sleep(SLOW_S / 5)
        recorder.check_left_open("send")
    assert bool(slow_reads(recorder)) == expected


def test_call_without_a_statement_is_no_slow_read(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        connection.execute(SELECT).fetchall()  # of an earlier call
        recorder.costs.begin()
        time.sleep(SLOW_S)
        recorder.check_left_open("export")
    assert not slow_reads(recorder)


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


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT"])
def test_block_of_apsw_that_gets_no_lock_is_recorded(
    statement: str, file: Path, recorder: FailedStatements
) -> None:
    """apsw runs BEGIN and COMMIT of a block itself."""
    connection = apsw.Connection(str(file))
    if statement == "BEGIN":
        connection.transaction_mode = "IMMEDIATE"
    else:
        connection.execute("PRAGMA journal_mode = DELETE")
    with closing(apsw.Connection(str(file))) as other:
        other.execute("BEGIN IMMEDIATE" if statement == "BEGIN" else "BEGIN")
        other.execute(SELECT).fetchall()
        recorder.costs.begin()
        at = sys._getframe().f_lineno + 1
        with pytest.raises(apsw.BusyError) as raised, connection:
            connection.execute(INSERT)
        recorder.note_raised(raised.value)
        recorder.note_raised(raised.value)
    connection.close()
    ((_, sql, count, _, traits),) = [r for r in recorder.records() if r[0] == FAILED_STATEMENT]
    assert sql.startswith(statement) and count == 1 and traits["timeout_ms"] == "0"
    assert statement != "BEGIN" or traits["at"] == f"{Path(__file__).name}:{at}"


def test_library_that_ran_the_failed_statement_is_recorded(file: Path, recorder: FailedStatements) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{file}", connect_args={"timeout": 0})
    with open_file(file) as other, engine.connect() as connection:
        other.execute("BEGIN IMMEDIATE")
        with suppress(sqlalchemy.exc.OperationalError):
            connection.exec_driver_sql(INSERT)
    engine.dispose()
    ((*_, traits),) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    assert traits["library"] == "sqlalchemy"


SEEDS = """
import sqlite3, time
from sqlstress import check, connect, setup, transaction

@setup
def create(database):
    sqlite3.connect(database).executescript("PRAGMA journal_mode=WAL; CREATE TABLE rate (name, n)")

@connect
def opened(database):
    db = sqlite3.connect(database, timeout=30)
    if not db.execute("SELECT count(*) FROM rate").fetchone()[0]:
        time.sleep(0.1)
        with db:
            db.execute("INSERT INTO rate VALUES ('food', 7)")
    return db

@transaction
def show(db):
    db.execute("SELECT n FROM rate").fetchall()

@check
def one_rate(query):
    assert len(query("SELECT * FROM rate")) == 1
"""


def test_race_of_connect_is_the_probable_cause(tmp_path: Path) -> None:
    report = measured(tmp_path, SEEDS)
    (finding,) = findings_of(report, "suspicion")
    first, then = (line_of(SEEDS, text) for text in ("    if not db.execute", "            db.execute"))
    assert finding.facts["transaction"] == "@connect"
    assert f"(own.py:{first})" in finding.text and f"(own.py:{then})" in finding.text


HOLDS = """
import sqlite3, time
from sqlstress import connect, setup, transaction

@setup
def create(database):
    sqlite3.connect(database).executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (n)")

@connect
def opened(database):
    return sqlite3.connect(database, timeout=0.1)

@transaction
def pay(db):
    db.execute("INSERT INTO t VALUES (1)")
    time.sleep(0.04)
    db.commit()
"""


@pytest.mark.parametrize("concurrency", [1, 6])
@pytest.mark.thorough
def test_short_hold_is_only_named_if_another_process_waited_in_vain(concurrency: int, tmp_path: Path) -> None:
    report = measured(tmp_path, HOLDS, concurrency=concurrency, ops=60, max_failed=1)
    found = findings_of(report, "long-hold")
    if concurrency > 1:
        assert found
    # A slow machine can make a hold long.
    assert concurrency > 1 or all(float(finding.facts["seconds"]) >= LONG_HOLD_S for finding in found)


TAGS = """
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlstress import connect, setup, transaction

class Base(DeclarativeBase): pass

class Tag(Base):
    __tablename__ = "tag"
    name: Mapped[str] = mapped_column(primary_key=True)

@setup
def create(database):
    Base.metadata.create_all(create_engine(f"sqlite:///{database}"))

@connect
def opened(database):
    session = Session(create_engine(f"sqlite:///{database}"))
    session.execute(text("INSERT OR IGNORE INTO tag VALUES ('new')"))
    session.commit()
    return session

@transaction
def publish(session):
    session.add(Tag(name="new"))
    try:
        session.flush()
    except IntegrityError:
        session.execute(text("SELECT * FROM tag")).all()
"""


@pytest.mark.thorough
def test_session_that_goes_on_after_an_error_is_named(tmp_path: Path) -> None:
    report = measured(tmp_path, TAGS, concurrency=1, ops=5, max_failed=1)
    (finding,) = findings_of(report, "raised")
    assert finding.facts["what"] == "sqlalchemy.exc.PendingRollbackError"
    assert "session.begin_nested()" in finding.text
