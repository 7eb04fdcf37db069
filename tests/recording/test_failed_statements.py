"""Facts of failed statements, also of caught exceptions, and the conclusions from them."""

from __future__ import annotations

import gc
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event, Thread
from typing import Any

import apsw
import pytest
import sqlalchemy

import sqlstress
from sqlstress.analysis import sentences
from sqlstress.analysis.causes import diagnose
from sqlstress.experiments.app import EXCEPTION
from sqlstress.recording import (
    FAILED_STATEMENT,
    LEFT_OPEN,
    LONG_HOLD,
    NO_EFFECT,
    NOT_COMMITTED,
    OPEN_STATEMENT,
    REPEATED,
    SCHEMA_CHANGE,
    UNCLOSED,
    failed_statements,
)
from sqlstress.recording.after_calls import LONG_OPEN_S, MIN_NEVER
from sqlstress.recording.failed_statements import MIN_UNCLOSED, FailedStatements
from sqlstress.recording.failure_facts import HANDLER_MS, facts_of
from sqlstress.recording.failures import MAX_HISTORY, FailureFacts, statement_kind, transaction_of
from sqlstress.report.results import Sighting
from sqlstress.show.text import BRIEF
from sqlstress.sqlite_codes import BUSY, BUSY_SNAPSHOT
from sqlstress.user_work import HALF, interleavings
from sqlstress.user_work.failure_records import Failure, failure_of, merged, with_opposite
from tests.own_app import HEAD, OPERATIONS, findings_of, line_of, measured
from tests.recording.failing_programs import INSERT, TIMEOUT_S, open_file
from tests.rows import thorough

# Each way to run a statement.


class UsersCursor(sqlite3.Cursor):
    """Cursor of a library."""


class UsersConnection(sqlite3.Connection):
    """Connection of a library."""


def by_connection(file: Path) -> None:
    with open_file(file) as connection:
        connection.execute(INSERT)


def by_cursor(file: Path) -> None:
    with open_file(file) as connection:
        connection.cursor(UsersCursor).execute(INSERT)


def by_executemany(file: Path) -> None:
    with open_file(file) as connection:
        connection.cursor().executemany("INSERT INTO t VALUES (?)", [(1,)])


def by_script(file: Path) -> None:
    with open_file(file) as connection:
        connection.executescript(INSERT)


def by_factory(file: Path) -> None:
    with open_file(file, factory=UsersConnection) as connection:
        assert isinstance(connection, UsersConnection)
        connection.execute(INSERT)


def by_position(file: Path) -> None:
    with closing(sqlite3.connect(file, TIMEOUT_S, 0, None, True, UsersConnection)) as connection:
        assert isinstance(connection, UsersConnection)
        connection.execute(INSERT)


def by_sqlalchemy(file: Path) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{file}", connect_args={"timeout": TIMEOUT_S})
    try:
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text(INSERT))
    finally:
        engine.dispose()


def by_apsw(file: Path) -> None:
    with closing(apsw.Connection(str(file))) as connection:
        connection.set_busy_timeout(round(TIMEOUT_S * 1000))
        connection.execute(INSERT)


@pytest.mark.parametrize(
    "write",
    [by_connection, by_cursor, by_executemany, by_script, by_factory, by_position, by_sqlalchemy, by_apsw],
)
def test_failure_is_recorded_for_every_way_to_run_a_statement(
    write: Callable[[Path], None], file: Path, recorder: FailedStatements
) -> None:
    # By the same library: another library in this process would not see its lock.
    connect: Any = apsw.Connection if write is by_apsw else sqlite3.connect
    with closing(connect(str(file))) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(Exception, match="locked"):
            write(file)
    failures = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    ((_, sql, count, _, traits),) = failures
    assert (count, traits["code"]) == (1, "5")
    assert sql.startswith("INSERT INTO t VALUES") and traits["transaction"] in ("none", "written")
    assert float(traits["waited_ms"]) >= 1000 * TIMEOUT_S == float(traits["timeout_ms"])


def test_results_are_those_of_the_library(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        connection.row_factory = sqlite3.Row
        assert connection.execute("SELECT max(x) AS largest FROM t").fetchone()["largest"] == 8
        with connection:
            connection.execute("BEGIN")
            connection.execute(INSERT)
        assert not connection.in_transaction
        with pytest.raises(ZeroDivisionError), connection:
            connection.execute("BEGIN")
            raise ZeroDivisionError
        assert not connection.in_transaction
        assert repr(connection).startswith("<sqlite3.Connection")
    # A slow disk may hold the lock for long.
    assert {record[0] for record in recorder.records()} <= {LONG_HOLD}


@pytest.mark.parametrize("library", ["sqlite3", "apsw"])
def test_file_is_used_once_a_statement_has_run(library: str, file: Path, recorder: FailedStatements) -> None:
    connect: Any = sqlite3.connect if library == "sqlite3" else apsw.Connection
    with closing(connect(str(file))) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        assert recorder.used_files == set()
        connection.execute("SELECT * FROM t")
        assert {Path(name).name for name in recorder.used_files} == {"app.db"}


def test_failures_beyond_the_limit_are_still_counted(file: Path, recorder: FailedStatements) -> None:
    number = 300
    with open_file(file, timeout=0) as this, open_file(file) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(number):
            with suppress(sqlite3.OperationalError):
                this.execute(INSERT)
    ((_, _, count, _, _),) = recorder.records()
    assert count == number


WAITS_LONG = """
import sqlite3
from sqlstress import transaction, setup

@setup
def make(database):
    sqlite3.connect(database).execute("CREATE TABLE t (n)")

@transaction
def work(database):
    connection = sqlite3.connect(database, timeout=1.5)
    holder = sqlite3.connect(database)
    holder.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO t VALUES (1)")
"""


@pytest.mark.thorough
def test_failure_that_outlasts_the_window_is_counted(tmp_path: Path) -> None:
    report = measured(tmp_path, WAITS_LONG, concurrency=1, duration=0.5, max_failed=1.0)
    assert any("waited for itself" in finding.text for finding in report.findings)


FAILS = """
import sqlite3
from sqlstress import transaction

@transaction
def work(database):
    connection = sqlite3.connect(database)
    try:
        connection.execute("SELECT * FROM missing")
    finally:
        connection.close()
"""


def test_failures_count_in_the_window_as_operations_do(tmp_path: Path) -> None:
    report = measured(tmp_path, FAILS, concurrency=1, warmup=0.5, duration=0.5, max_failed=1.0)
    ((trial,),) = [run.trials for run in report.runs]
    counts = [
        sum(sighting.count for sighting in trial.sightings if sighting.topic == topic)
        for topic in (FAILED_STATEMENT, EXCEPTION)
    ]
    failed = sum(worker.failed for worker in trial.workers)
    assert failed > 10
    # An operation that the window's begin or end cuts counts in one of the two, because it ends later.
    assert all(abs(count - failed) <= 2 for count in counts)


APSW = """
import apsw
from sqlstress import transaction

@transaction
def work(database):
    with apsw.Connection(database) as connection:
        connection.execute("SELECT 1").fetchall()
    connection.close()
"""


def test_heading_has_the_sqlite_of_apsw_if_only_apsw_was_used(tmp_path: Path) -> None:
    path = tmp_path / "app.py"
    path.write_text(APSW, encoding="utf-8")
    own = f"library apsw, SQLite {apsw.sqlite_lib_version()}"
    for text, is_own in ((APSW, True), (APSW.replace("import apsw", IMPORTS_BOTH), False)):
        path.write_text(text, encoding="utf-8")
        report = sqlstress.measure("app", file=str(path), concurrency=1, ops=5, repeat=1, directory=tmp_path)
        shown = " ".join(report.text().split())
        assert (own in shown) == is_own
        assert (f"SQLite {sqlite3.sqlite_version}" in shown) == (not is_own)


KEEPS_APSW_OPEN = """
import apsw
from sqlstress import connect, setup, transaction

@setup
def create(database):
    apsw.Connection(database).execute("PRAGMA journal_mode = wal; CREATE TABLE t (x)")

@connect
def opened(database):
    connection = apsw.Connection(database)
    connection.execute("PRAGMA synchronous = normal; PRAGMA busy_timeout = 1234")
    return connection

@transaction
def add(connection):
    connection.execute("INSERT INTO t VALUES (1)")
"""


def test_durability_is_read_from_open_connections_of_apsw(tmp_path: Path) -> None:
    path = tmp_path / "app.py"
    path.write_text(KEEPS_APSW_OPEN, encoding="utf-8")
    report = sqlstress.measure("app", file=str(path), concurrency=1, ops=5, repeat=1, directory=tmp_path)
    (trial,) = report.runs[0].trials
    expected = {"journal_mode": "wal", "synchronous": "normal", "busy_timeout": "1234"}
    assert expected.items() <= trial.effective.items()
    assert "Durability unknown" not in report.text()


IMPORTS_BOTH = "import apsw, sqlite3; sqlite3.connect(':memory:').close()"


# Transactions that remain open.


def left_open(recorder: FailedStatements) -> list[tuple[str, int, dict[str, str]]]:
    return [
        (call, count, traits) for topic, call, count, _, traits in recorder.records() if topic == LEFT_OPEN
    ]


def test_call_that_leaves_a_transaction_open_is_recorded(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        connection.execute("BEGIN")
        line = sys._getframe().f_lineno - 1
        connection.execute(INSERT)
        recorder.check_left_open("transfer")
        recorder.check_left_open("report")
        connection.execute("COMMIT")
        recorder.check_left_open("transfer")
    traits = {
        "state": "written",
        "began": "BEGIN",
        "at": f"{Path(__file__).name}:{line}",
        "failed_commit": "",
        "tasks": "",
        "closed": "",
    }
    assert left_open(recorder) == [("transfer", 2, traits)]


def test_savepoint_that_stays_open_is_recorded_with_its_line(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        connection.execute("SAVEPOINT work")
        line = sys._getframe().f_lineno - 1
        for _ in range(MAX_HISTORY):  # The beginning leaves the history.
            connection.execute(INSERT)
            connection.execute("ROLLBACK TO work")
            recorder.check_left_open("transfer")
        connection.execute("RELEASE work")
        recorder.check_left_open("transfer")
        records = recorder.records()
    ((_, count, traits),) = left_open(recorder)
    assert (count, traits["began"]) == (MAX_HISTORY, "SAVEPOINT")
    assert traits["at"] == f"{Path(__file__).name}:{line}"
    assert [record[2] for record in records if record[0] == NOT_COMMITTED] == [MAX_HISTORY]


def test_release_of_the_first_savepoint_commits(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        connection.execute("SAVEPOINT work")
        connection.execute(INSERT)
        recorder.check_left_open("transfer")
        connection.execute("RELEASE work")
        recorder.check_left_open("transfer")
    assert not [record for record in recorder.records() if record[0] == NOT_COMMITTED]


def test_block_of_an_apsw_connection_is_a_transaction(file: Path, recorder: FailedStatements) -> None:
    this, other = (apsw.Connection(str(file)) for _ in range(2))
    with closing(this), closing(other):
        this.set_busy_timeout(1000)
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):  # Statements of the first block must not count in the second.
            with suppress(apsw.BusyError), this:
                this.execute("SELECT max(x) FROM t").fetchall()
                this.execute(INSERT)
    (record,) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    traits = record[4]
    assert (record[2], traits["transaction"]) == (2, "read")
    assert traits["began"] in ("BEGIN DEFERRED", "SAVEPOINT")  # by version of apsw
    assert cause_of(recorder) == "read-before-write"


def test_failed_commit_is_named_as_the_reason(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection, open_file(file) as other:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN")
        connection.execute(INSERT)
        cursor = other.execute("SELECT * FROM t")
        cursor.fetchone()
        with suppress(sqlite3.OperationalError):
            connection.execute("COMMIT")
        recorder.check_left_open("transfer")
    ((_, _, traits),) = left_open(recorder)
    assert traits["failed_commit"] == "5"


def test_transaction_of_another_thread_is_not_left_open(file: Path, recorder: FailedStatements) -> None:
    with open_file(file, check_same_thread=False) as connection:
        thread = Thread(target=connection.execute, args=("BEGIN",))
        thread.start()
        thread.join()
        recorder.check_left_open("transfer")
    assert left_open(recorder) == []


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        (" begin immediate", "begin"),
        ("SAVEPOINT a", "begin"),
        ("/* x */ END", "commit"),
        ("pragma wal_checkpoint(TRUNCATE)", "checkpoint"),
        ("PRAGMA main.journal_mode=wal", "journal_mode"),
        ("PRAGMA user_version", ""),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "read"),
        ("replace into t values (1)", "write"),
        ("", ""),
    ],
)
def test_kind_of_a_statement(sql: str, kind: str) -> None:
    assert statement_kind(sql) == kind


def test_state_of_a_transaction() -> None:
    before = [("BEGIN", False, None), ("INSERT", True, None), ("COMMIT", True, None)]
    assert transaction_of([*before, ("BEGIN", False, ("a.py", 3)), ("SELECT 1", True, None)]) == (
        "read",
        "BEGIN",
        ("a.py", 3),
    )
    assert transaction_of([*before, ("UPDATE t", False, None)])[:2] == ("written", "implicit BEGIN")
    assert transaction_of([("SELECT 1", True, None)])[:2] == ("read", "")


# Statements that remain open.


def look_until_recorded(recorder: FailedStatements) -> list[tuple[str, dict[str, str]]]:
    """Let time pass between two calls, and return the records of open statements."""
    recorder.check_left_open("report")
    time.sleep(LONG_OPEN_S * 1.5)
    recorder.check_left_open("report")
    return [(sql, traits) for topic, sql, _, _, traits in recorder.records() if topic == OPEN_STATEMENT]


@pytest.mark.parametrize("library", ["sqlite3", "apsw"])
def test_query_that_stays_open_is_recorded(library: str, file: Path, recorder: FailedStatements) -> None:
    connection: Any = sqlite3.connect(file) if library == "sqlite3" else apsw.Connection(str(file))
    with closing(connection):
        cursor = connection.execute("SELECT * FROM t")
        line = sys._getframe().f_lineno - 1
        assert cursor.fetchone()
        ((sql, traits),) = look_until_recorded(recorder)
        cursor.close()
    assert (sql, traits["at"]) == ("SELECT * FROM t", f"{Path(__file__).name}:{line}")
    assert float(traits["seconds"]) >= LONG_OPEN_S


def test_query_that_is_read_to_its_end_is_not_recorded(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        cursor = connection.execute("SELECT * FROM t")
        cursor.fetchall()
        assert look_until_recorded(recorder) == []


# Classes of the user's code keep their behaviour.


class OwnMethods(sqlite3.Connection):
    """Connection that runs statements while it connects, and has methods with other signatures."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        super().execute("PRAGMA foreign_keys = ON")
        self.executescript("PRAGMA foreign_keys = ON")

    def cursor(self) -> Any:  # type: ignore[override]
        return super().cursor(OwnCursor)

    def execute(self, query: str, values: tuple[Any, ...] = ()) -> Any:  # type: ignore[override]
        return super().execute(query.replace("TABLE_NAME", "t"), values)


class OwnCursor(sqlite3.Cursor):
    """Cursor with a keyword argument."""

    def execute(self, query: str, values: tuple[Any, ...] = ()) -> Any:  # type: ignore[override]
        return super().execute(query, values)


def test_overridden_methods_of_a_connection_are_called(file: Path, recorder: FailedStatements) -> None:
    with open_file(file, factory=OwnMethods) as connection:
        assert connection.execute(query="SELECT count(*) FROM TABLE_NAME").fetchone() == (9,)
        assert type(connection.cursor()) is OwnCursor


def test_overridden_methods_of_a_cursor_are_called(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        cursor = connection.cursor(OwnCursor)
        assert cursor.execute(query="SELECT max(x) FROM t", values=()).fetchone() == (8,)


def test_connection_of_several_threads_is_not_probed(file: Path, recorder: FailedStatements) -> None:
    with open_file(file, check_same_thread=False) as this, open_file(file) as other:
        thread = Thread(target=this.execute, args=("SELECT 1",))
        thread.start()
        thread.join()
        other.execute("BEGIN IMMEDIATE")
        with suppress(sqlite3.OperationalError):
            this.execute(INSERT)
    ((*_, traits),) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    assert traits["open_cursor"] == ""


def test_open_query_is_searched_once(
    file: Path, recorder: FailedStatements, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches, find = count(), gc.get_objects

    def search() -> list[Any]:
        next(searches)
        return find()

    monkeypatch.setattr(gc, "get_objects", search)
    with open_file(file) as connection:
        cursor = connection.execute("SELECT * FROM t")
        cursor.fetchone()
        for _ in range(3):
            assert look_until_recorded(recorder)
    assert next(searches) == 1


# Connections of this process that hold the lock.


def cause_of(recorder: FailedStatements) -> str | None:
    """Return the name of the cause of the only failure."""
    ((*_, traits),) = [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
    facts = facts_of(traits, float(traits["waited_ms"]), int(traits["timeout_ms"]))
    cause = diagnose(int(traits["code"]), facts).cause
    return cause and cause.name


def test_holder_is_idle_while_its_thread_waits_in_another_connection(
    file: Path, recorder: FailedStatements
) -> None:
    """A thread pool with fewer threads than open transactions: the thread that could commit waits, too."""
    with (
        open_file(file, check_same_thread=False) as holder,
        open_file(file, timeout=60, check_same_thread=False) as waiting,
        open_file(file) as this,
    ):
        begun = Event()

        def work() -> None:
            holder.execute("BEGIN IMMEDIATE")
            begun.set()
            waiting.execute(INSERT)

        thread = Thread(target=work)
        thread.start()
        begun.wait()
        with suppress(sqlite3.OperationalError):
            this.execute(INSERT)
        holder.rollback()
        thread.join()
    assert cause_of(recorder) == "waits-for-itself"


@pytest.mark.parametrize(
    ("tries", "cause"), [(round(HANDLER_MS / 10) + 1, "waits-for-itself"), (0, "no-timeout")]
)
def test_busy_handler_of_the_program_is_a_wait(
    tries: int, cause: str, file: Path, recorder: FailedStatements
) -> None:
    def handle(count: int) -> bool:
        time.sleep(0.01)
        return count < tries

    holder, this = (apsw.Connection(str(file)) for _ in range(2))
    with closing(holder), closing(this):
        if tries:
            this.set_busy_handler(handle)
        else:
            this.set_busy_timeout(0)
        holder.execute("BEGIN IMMEDIATE")
        with suppress(apsw.BusyError):
            this.execute(INSERT)
    assert cause_of(recorder) == cause


# A statement that is repeated in a transaction with a stale snapshot.


@pytest.mark.parametrize("library", ["sqlite3", "apsw"])
def test_statement_that_failed_before_in_its_transaction_is_repeated(
    library: str, file: Path, recorder: FailedStatements
) -> None:
    def opened() -> Any:
        if library == "apsw":
            connection = apsw.Connection(str(file))
            connection.set_busy_timeout(round(1000 * TIMEOUT_S))
            return connection
        return sqlite3.connect(file, timeout=TIMEOUT_S, isolation_level=None)

    with closing(opened()) as this, closing(opened()) as other:
        this.execute("BEGIN")
        [*this.execute("SELECT * FROM t")]
        other.execute(INSERT)
        for _ in range(2):  # The second time, the other connection holds the lock.
            with suppress(sqlite3.OperationalError, apsw.BusyError):
                this.execute(INSERT)
            other.execute("BEGIN IMMEDIATE") if not other.in_transaction else None
        failed = [record[4] for record in recorder.records() if record[0] == FAILED_STATEMENT]
    causes = [
        diagnose(int(traits["code"]), facts_of(traits, float(traits["waited_ms"]), 200)).cause
        for traits in failed
    ]
    assert [traits["code"] for traits in failed] == [str(BUSY_SNAPSHOT), str(BUSY)]
    assert [cause and cause.name for cause in causes] == ["stale-snapshot", "repeated-statement"]


REPEATS_STATEMENT = f"""{HEAD}
def repeated(connection, sql):
    for attempt in range(5):
        try:
            return connection.execute(sql)
        except sqlite3.OperationalError:
            time.sleep(0.05)

@transaction
def add(connection):
    connection.execute("BEGIN")
    connection.execute("SELECT x FROM t").fetchone()
    time.sleep(0.01)
    repeated(connection, "UPDATE t SET x = x + 1")
    connection.execute("COMMIT")
"""


def test_report_names_the_repeated_line_and_no_long_hold(tmp_path: Path) -> None:
    report = measured(tmp_path, REPEATS_STATEMENT, concurrency=3, duration=1)
    assert not findings_of(report, "long-hold")
    found = findings_of(report, "failed-statement")
    assert found[0].facts["at"] == f"own.py:{line_of(REPEATS_STATEMENT, 'return connection.execute')}"
    assert "repeated only the statement" in str(found[0].facts["explanation"])
    assert all(finding.facts["explanation"] for finding in found)


RAISES = """
@transaction
def first(connection):
    raise KeyError

@transaction
def second(connection):
    raise IndexError

@transaction
def third(connection):
    raise ValueError
"""


@pytest.mark.thorough
def test_first_findings_have_a_cause_after_many_exceptions(tmp_path: Path) -> None:
    report = measured(tmp_path, REPEATS_STATEMENT + RAISES, concurrency=3, duration=1)
    brief = " ".join(BRIEF.report(report.document).split())
    assert "raised KeyError" in brief and "repeated only the statement" in brief
    assert "Starvation" not in brief.partition("repeated only the statement")[0]


# Attached files that two transactions lock in opposite order.


def failures_in_opposite_order(file: Path, recorder: FailedStatements, begin: str) -> list[Failure]:
    """Let two transactions write two files in opposite order; return what failed, after 0 or 1 timeouts."""
    second = file.with_name("second.db")
    with open_file(second) as connection:
        connection.execute("CREATE TABLE u (x)")
    both_wrote = Barrier(2)

    def write(first: str, then: str) -> None:
        with open_file(file) as connection, suppress(sqlite3.OperationalError, BrokenBarrierError):
            connection.execute("ATTACH ? AS other", (str(second),))
            connection.execute(begin)
            connection.execute(f"INSERT INTO {first} VALUES (1)")
            if begin == "BEGIN":
                both_wrote.wait(60)
            connection.execute(f"INSERT INTO {then} VALUES (1)")
            connection.execute("COMMIT")

    threads = [Thread(target=write, args=pair) for pair in (("t", "other.u"), ("other.u", "main.t"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = [Sighting(*record) for record in recorder.records() if record[0] == FAILED_STATEMENT]
    failures = [failure_of(record) for record in records]
    return [with_opposite(failure, failures) for failure in failures]


def test_opposite_order_of_attached_files_is_named(file: Path, recorder: FailedStatements) -> None:
    failures = failures_in_opposite_order(file, recorder, "BEGIN")
    assert failures
    for failure in failures:
        cause = diagnose(failure.code, failure.facts).cause
        assert cause and cause.name == "lock-order"
        assert {*failure.lock_order} == {"app.db", "second.db"}
    assert all(failure.opposite for failure in failures) == (len(failures) == 2)


def test_begin_immediate_locks_attached_files_in_one_order(file: Path, recorder: FailedStatements) -> None:
    assert failures_in_opposite_order(file, recorder, "BEGIN IMMEDIATE") == []


# A connection that waits for another connection of its own thread.


@pytest.mark.parametrize(
    ("work", "is_named"),
    [(["BEGIN", INSERT], True), (["BEGIN", "CREATE TEMP TABLE u (x)"], False), ([], False)],
    ids=["waits", "temporary_table", "never"],
)
def test_single_wait_for_itself_is_named_among_other_waits(
    work: list[str], file: Path, recorder: FailedStatements, *, is_named: bool
) -> None:
    def log(holder: Any, *statements: str) -> None:
        for sql in statements:
            holder.execute(sql)
        with suppress(sqlite3.OperationalError):
            this.execute(INSERT)
        if holder.in_transaction:
            holder.execute("ROLLBACK")

    unrecorded = sqlite3.Connection(file, isolation_level=None)
    with closing(unrecorded), open_file(file) as this, open_file(file) as second:
        for _ in range(3):
            log(unrecorded, "BEGIN IMMEDIATE")
        unrecorded.execute("BEGIN" if is_named else "BEGIN IMMEDIATE")
        log(second, *work)
    (record,) = [Sighting(*record) for record in recorder.records() if record[0] == FAILED_STATEMENT]
    assert record.count == 4
    cause = diagnose(failure_of(record).code, failure_of(record).facts).cause
    assert cause and cause.name == ("waits-for-itself" if is_named else "held-longer")


@pytest.mark.parametrize(("holder", "is_named"), [("this thread", True), ("this process", False)])
def test_wait_of_one_worker_for_itself_is_named_among_all(holder: str, *, is_named: bool) -> None:
    traits = dict.fromkeys(FailureFacts._fields, "") | {"code": "5", "at": "a.py:1", "timeout_ms": "200"}
    traits |= {"waited_ms": "200", "longest_ms": "200"}
    own = {**traits, "holder": holder, "held_since": "BEGIN (a.py:9)"}
    seen = [Sighting(FAILED_STATEMENT, INSERT, count, "", given) for count, given in ((9, traits), (1, own))]
    failure = merged([failure_of(sighting) for sighting in seen])
    assert (failure.times, failure.held_since) == (10, "BEGIN (a.py:9)" * is_named)
    assert failure.facts.holder == ("this process" if is_named else "another process")


# PRAGMAs that have no effect in a transaction.


@pytest.mark.parametrize("library", ["sqlite3", "apsw"])
@pytest.mark.parametrize(
    ("value", "changes"),
    [("foreign_keys = ON", True), ("foreign_keys(yes)", True), ("foreign_keys = 0", False)],
)
def test_pragma_without_effect_in_a_transaction_is_recorded(
    value: str, library: str, file: Path, recorder: FailedStatements, *, changes: bool
) -> None:
    connects: Any = apsw.Connection if library == "apsw" else sqlite3.connect
    with closing(connects(str(file))) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("BEGIN")
        line = sys._getframe().f_lineno - 1
        connection.execute(f"PRAGMA {value}")
        records = [record for record in recorder.records() if record[0] == NO_EFFECT]
    assert [record[2] for record in records] == [1] * changes
    for _, _, _, _, traits in records:
        assert (traits["began"], traits["began_at"]) == ("BEGIN", f"{Path(__file__).name}:{line}")


def test_pragma_before_a_transaction_is_not_recorded(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("BEGIN")
        connection.execute("PRAGMA foreign_keys = ON")  # They are already on.
    assert not [record for record in recorder.records() if record[0] == NO_EFFECT]


# Changes of the schema.


def test_schema_change_outside_of_a_transaction_is_recorded(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        connection.execute("CREATE TABLE before_the_call (x)")
        recorder.costs.begin()
        connection.execute("DROP TABLE t")
        line = sys._getframe().f_lineno - 1
        connection.execute("CREATE TEMP TABLE u (x)")
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE t (x)")
        connection.execute("COMMIT")
    (record,) = [record for record in recorder.records() if record[0] == SCHEMA_CHANGE]
    assert record[1:] == ("DROP TABLE t", 1, "", {"at": f"{Path(__file__).name}:{line}"})


REBUILDS = """
import sqlite3
from sqlstress import connect, setup, transaction

@setup
def make(database):
    sqlite3.connect(database, isolation_level=None).execute("CREATE TABLE top AS SELECT 1")

@connect
def opened(database):
    return [sqlite3.connect(database, isolation_level=None) for _ in range(2)]

@transaction
def rebuild(connections):
    first, second = connections
    first.execute("{begin}")
    first.execute("DROP TABLE top")
    try:
        second.execute("SELECT * FROM {table}").fetchall()
    except sqlite3.OperationalError:
        pass
    first.execute("CREATE TABLE top AS SELECT 1")
    first.execute("{end}")
"""


@pytest.mark.parametrize(
    ("begin", "end", "table", "is_named"),
    [("", "", "top", True), ("", "", "sqlite_master", False), ("BEGIN", "COMMIT", "missing", False)],
)
def test_schema_change_that_breaks_other_statements_is_named(
    tmp_path: Path, begin: str, end: str, table: str, *, is_named: bool
) -> None:
    text = REBUILDS.format(begin=begin, end=end, table=table)
    report = measured(tmp_path, text, concurrency=1, ops=3)
    found = [finding.text for finding in findings_of(report, "schema-change")]
    assert [text[:28] for text in found] == ["DROP TABLE top (own.py:17) c"] * is_named


# COMMIT and ROLLBACK in autocommit mode.


def add_two(connection: Any, end: str) -> None:
    connection.execute("INSERT INTO t VALUES (1)")
    connection.execute("SELECT x FROM t").fetchall()
    connection.execute("INSERT INTO t VALUES (2)")
    getattr(connection, end)()


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("mode", [None, "", "IMMEDIATE"])
def test_end_without_a_transaction_is_recorded(
    file: Path, recorder: FailedStatements, end: str, mode: Any
) -> None:
    with closing(sqlite3.connect(file, isolation_level=mode)) as connection:
        add_two(connection, end)
        getattr(connection, end)()
    records = [record for record in recorder.records() if record[0] == NO_EFFECT]
    assert [record[1] for record in records] == [end.upper()] * (mode is None)
    for _, _, _, _, traits in records:
        first = add_two.__code__.co_firstlineno + 1
        assert traits["at"] == f"{Path(__file__).name}:{first + 3}"
        assert traits["write"] == f"INSERT INTO t VALUES (N) ({Path(__file__).name}:{first})"


@pytest.mark.parametrize("is_error", [True, False])
@pytest.mark.parametrize("mode", ["AUTOCOMMIT", "SERIALIZABLE"])
def test_rollback_of_a_library_after_an_error_is_recorded(
    file: Path, recorder: FailedStatements, mode: Any, *, is_error: bool
) -> None:
    """Without an error, the library rolls back only to reuse the connection."""
    engine = sqlalchemy.create_engine(f"sqlite:///{file}", isolation_level=mode)
    with suppress(ZeroDivisionError), engine.begin() as connection:
        connection.execute(sqlalchemy.text("INSERT INTO t VALUES (1)"))
        if is_error:
            raise ZeroDivisionError
    engine.dispose()
    records = [record[1:3] for record in recorder.records() if record[0] == NO_EFFECT]
    assert records == ([("ROLLBACK", 1)] if is_error and mode == "AUTOCOMMIT" else [])


def test_rollback_after_executescript_means_no_autocommit_mode(
    file: Path, recorder: FailedStatements
) -> None:
    """The script committed the write: another finding names the script."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(INSERT)
        connection.executescript(INSERT)
        connection.rollback()
    assert not [record for record in recorder.records() if record[0] == NO_EFFECT]


def test_rollback_on_a_shared_connection_is_not_recorded(file: Path, recorder: FailedStatements) -> None:
    """Another thread may have ended the transaction of the write."""
    with open_file(file, check_same_thread=False) as connection:
        thread = Thread(target=connection.execute, args=("SELECT 1",))
        thread.start()
        thread.join()
        connection.execute("INSERT INTO t VALUES (1)")
        connection.rollback()
    assert not [record for record in recorder.records() if record[0] == NO_EFFECT]


def test_end_of_a_single_write_or_in_a_block_is_recorded(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        with connection:
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("INSERT INTO t VALUES (2)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("INSERT INTO t VALUES (2)")
        connection.execute("COMMIT")
        connection.commit()
    (record,) = [record for record in recorder.records() if record[0] == NO_EFFECT]
    assert record[1:3] == ("COMMIT", 1)


# A write of a temporary table takes no lock of the file.


@pytest.mark.parametrize(
    ("fill", "state"),
    [
        ("INSERT INTO batch SELECT x FROM t", "read"),
        ("INSERT INTO temp.batch SELECT x FROM t", "read"),
        ("INSERT INTO batch VALUES (1)", "none"),
        ("CREATE TEMP TABLE copies AS SELECT x FROM t", "read"),
    ],
)
def test_write_of_a_temporary_table_is_no_write_of_the_file(
    fill: str, state: str, file: Path, recorder: FailedStatements
) -> None:
    with open_file(file) as this, open_file(file) as other:
        this.execute("CREATE TEMP TABLE batch (x)")
        this.execute("BEGIN")
        this.execute(fill)
        other.execute("BEGIN IMMEDIATE")
        with suppress(sqlite3.OperationalError):
            this.execute(INSERT)
    (traits,) = [record[4] for record in recorder.records() if record[0] == FAILED_STATEMENT]
    assert traits["transaction"] == state


# Sentences on statements with several result codes.


def test_sentence_has_all_codes_of_a_statement() -> None:
    facts: dict[str, Any] = {"statement": "UPDATE t", "at": "a.py:1", "count": 5, "explanation": "Cause."}
    text = sentences.failed_statement(**facts, error="SQLITE_BUSY", more_errors=["SQLITE_BUSY_SNAPSHOT"])
    assert text == "UPDATE t (a.py:1) failed 5 times with SQLITE_BUSY or SQLITE_BUSY_SNAPSHOT. Cause."
    text = sentences.failed_statement(**facts, error="SQLITE_BUSY", others=1)
    assert text == "UPDATE t (a.py:1) and 1 more statement failed 5 times with SQLITE_BUSY. Cause."


OPEN_CURSOR = """
import sqlite3
from sqlstress import connect, setup, transaction

@setup
def create(database):
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.executemany("INSERT INTO t VALUES (?)", [(0,)] * 20)
    connection.commit()

@connect
def opened(database):
    return sqlite3.connect(database, timeout=0.5, isolation_level=None)

@transaction
def change(connection):
    try:
        for (number,) in connection.execute("SELECT rowid FROM t"):
            connection.execute("UPDATE t SET x = x + 1 WHERE rowid = ?", (number,))
    except sqlite3.OperationalError:
        pass
"""


def test_codes_of_the_same_statement_are_a_single_finding(tmp_path: Path) -> None:
    path = tmp_path / "app.py"
    path.write_text(OPEN_CURSOR, encoding="utf-8")
    report = sqlstress.measure("app", file=str(path), concurrency=3, ops=40, repeat=1, directory=tmp_path)
    text = " ".join(report.text().split())
    assert "more statement" not in text
    assert "Fetch all rows or close the cursor before writing" in text
    assert "The cause is unknown" not in text


# Calls whose transaction never commits, and calls that repeat a refused transaction.


@pytest.mark.parametrize("commits", [False, True])
def test_calls_in_a_transaction_that_never_commits_are_lost(
    file: Path, recorder: FailedStatements, *, commits: bool
) -> None:
    with open_file(file) as connection:
        for number in range(MIN_NEVER + 2):
            if not connection.in_transaction:
                connection.execute("BEGIN")
            connection.execute(INSERT)
            if commits and number == 1:
                connection.execute("COMMIT")
            recorder.check_left_open("register", returned=number > 1)
        records = [record for record in recorder.records() if record[0] == NOT_COMMITTED]
    assert [(record[1], record[2]) for record in records] == ([] if commits else [("register", MIN_NEVER)])


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
def test_call_that_repeats_a_refused_transaction_is_recorded(
    ends: str, file: Path, recorder: FailedStatements
) -> None:
    with open_file(file) as this, open_file(file) as other:
        for attempt in range(3):
            this.execute("BEGIN")
            this.execute("SELECT * FROM t").fetchall()
            if attempt < 2:
                other.execute(INSERT)
            with suppress(sqlite3.OperationalError):
                this.execute(INSERT)
            this.execute("ROLLBACK" if attempt < 2 else ends)
        recorder.check_left_open("send")
        records = [record for record in recorder.records() if record[0] == REPEATED]
    assert [(record[1], record[2], record[4]["most"]) for record in records] == [("send", 1, "2")] * (
        ends == "COMMIT"
    )


@pytest.mark.parametrize("in_transaction", [False, True])
def test_write_committed_before_a_refused_write_of_the_call_is_recorded(
    file: Path, recorder: FailedStatements, *, in_transaction: bool
) -> None:
    with open_file(file, timeout=0) as this, open_file(file) as other:
        recorder.costs.begin()
        if in_transaction:
            this.execute("BEGIN")
        this.execute(INSERT)
        if in_transaction:
            this.execute("ROLLBACK")
        other.execute("BEGIN IMMEDIATE")
        with suppress(sqlite3.OperationalError):
            this.execute("UPDATE t SET x = 0")
        recorder.check_left_open("post", returned=False)
        records = [record for record in recorder.records() if record[0] == REPEATED]
    assert [(record[1], record[4]["committed"].partition(":")[0]) for record in records] == (
        [] if in_transaction else [("post", Path(__file__).name)]
    )


def test_write_of_an_earlier_call_is_no_part_of_a_refused_call(
    file: Path, recorder: FailedStatements
) -> None:
    with open_file(file, timeout=0) as this, open_file(file) as other:
        this.execute(INSERT)
        recorder.costs.begin()
        other.execute("BEGIN IMMEDIATE")
        with suppress(sqlite3.OperationalError):
            this.execute("UPDATE t SET x = 0")
        recorder.check_left_open("post", returned=True)
        assert not [record for record in recorder.records() if record[0] == REPEATED]


@pytest.mark.parametrize("in_transaction", [False, True])
def test_write_committed_before_a_violated_constraint_is_recorded(
    file: Path, recorder: FailedStatements, *, in_transaction: bool
) -> None:
    with open_file(file) as this:
        this.execute("CREATE TABLE one (id INTEGER PRIMARY KEY)")
        this.execute("INSERT INTO one VALUES (1)")
        recorder.costs.begin()
        with suppress(sqlite3.IntegrityError):
            if in_transaction:
                this.execute("BEGIN")
            this.execute(INSERT)
            this.execute("INSERT INTO one VALUES (1)")
        recorder.check_left_open("post", returned=True)
        records = [record for record in recorder.records() if record[0] == REPEATED]
        assert [record[1] for record in records] == ["post"] * (not in_transaction)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_commit_after_a_refused_write_of_the_transaction_is_recorded(
    end: str, file: Path, recorder: FailedStatements
) -> None:
    with open_file(file) as this:
        this.execute("CREATE TABLE one (id INTEGER PRIMARY KEY)")
        this.execute("INSERT INTO one VALUES (1)")
        recorder.costs.begin()
        this.execute("BEGIN")
        this.execute(INSERT)
        with suppress(sqlite3.IntegrityError):
            this.execute("INSERT INTO one VALUES (1)")
        this.execute(end)
        this.execute("BEGIN")
        this.execute(INSERT)
        this.execute("COMMIT")
        recorder.check_left_open("post", returned=True)
        records = [record for record in recorder.records() if record[0] == REPEATED]
        assert [record[1] for record in records] == ["post"] * (end == "COMMIT")


def record_of(recorder: FailedStatements) -> dict[str, str]:
    """Return the traits of the only kind of failed statement."""
    (record,) = (record for record in recorder.records() if record[0] == FAILED_STATEMENT)
    return record[4]


@pytest.mark.parametrize(("index", "scan"), [("", "SCAN t, "), ("CREATE INDEX i ON t (x)", "")])
def test_refused_write_that_reads_a_whole_table_has_its_plan(
    file: Path, recorder: FailedStatements, monkeypatch: pytest.MonkeyPatch, index: str, scan: str
) -> None:
    monkeypatch.setattr(failed_statements, "SLOW_SCAN_S", 0.0)
    update = "UPDATE t SET x = x WHERE x = ?"
    with open_file(file, timeout=0) as this, open_file(file) as other:
        this.execute(index)
        this.execute(update, (1,))
        other.execute("BEGIN IMMEDIATE")
        with suppress(sqlite3.OperationalError):
            this.execute(update, (1,))
        other.execute("ROLLBACK")
    text = record_of(recorder)["scan"]
    assert text.startswith(scan) if scan else not text


@pytest.mark.parametrize("is_read", [False, True])
def test_commit_behind_a_query_of_the_same_process_names_it(
    file: Path, recorder: FailedStatements, *, is_read: bool
) -> None:
    with open_file(file, timeout=0) as this, open_file(file) as other:
        this.execute("PRAGMA journal_mode = DELETE")
        this.executemany(INSERT.replace("1", "?"), [(1,), (2,)])
        cursor = other.execute("SELECT x FROM t")
        if is_read:
            cursor.fetchall()
        else:
            cursor.fetchone()
        this.execute("BEGIN IMMEDIATE")
        this.execute(INSERT)
        with suppress(sqlite3.OperationalError):
            this.execute("COMMIT")
        if is_read:
            assert not [record for record in recorder.records() if record[0] == FAILED_STATEMENT]
        else:
            assert record_of(recorder)["reader"].startswith(f"SELECT x FROM t ({Path(__file__).name}:")
        cursor.close()


def test_transaction_of_connect_is_attributed_to_it(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT x FROM t").fetchall()
        recorder.costs.begin()
        recorder.check_left_open("store")
        ((call, _, traits),) = left_open(recorder)
    assert (call, traits["state"]) == ("@connect", "read")


def closed_in_transaction(recorder: FailedStatements, *, returned: bool = True) -> list[int]:
    """Return the number of connections that a call closed in a transaction, as a list."""
    recorder.check_left_open("log", returned=returned)
    return [record[2] for record in recorder.records() if record[0] == LEFT_OPEN and record[4]["closed"]]


@pytest.mark.parametrize(
    ("statement", "end", "is_lost"),
    [(INSERT, "", True), (INSERT, "COMMIT", False), (INSERT, "ROLLBACK", False), ("SELECT 1", "", False)],
)
def test_connection_closed_in_a_transaction_that_wrote_is_recorded(
    file: Path, recorder: FailedStatements, statement: str, end: str, *, is_lost: bool
) -> None:
    recorder.costs.begin()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        if end:
            connection.execute(end)
    assert closed_in_transaction(recorder) == [1] * is_lost


@pytest.mark.parametrize(("end", "is_lost"), [("", True), ("commit", False), ("rollback", False)])
def test_connection_of_sqlalchemy_closed_without_commit_is_recorded(
    file: Path, recorder: FailedStatements, end: str, *, is_lost: bool
) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{file}")
    recorder.costs.begin()
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(INSERT))
        if end:
            getattr(connection, end)()
    assert closed_in_transaction(recorder) == [1] * is_lost
    engine.dispose()


@pytest.mark.parametrize("is_raised", [False, True])
def test_close_after_an_error_is_a_rollback(
    file: Path, recorder: FailedStatements, *, is_raised: bool
) -> None:
    recorder.costs.begin()
    with suppress(KeyError), closing(sqlite3.connect(file)) as connection:
        connection.execute(INSERT)
        if is_raised:
            raise KeyError
        with suppress(sqlite3.OperationalError):
            connection.execute("INSERT INTO missing VALUES (1)")
    assert closed_in_transaction(recorder, returned=False) == []


NEVER_COMMITS = """
@transaction
def log(c):
    other = opened(os.environ["SQLSTRESS_DATABASE"])
    other.execute("BEGIN")
    other.execute("UPDATE t SET x = x + 1")
    other.close()
"""


def test_report_names_the_transaction_in_which_a_call_closes(tmp_path: Path) -> None:
    report = measured(tmp_path, HEAD + NEVER_COMMITS, concurrency=1)
    (finding,) = findings_of(report, "left-open")
    line = line_of(HEAD + NEVER_COMMITS, 'other.execute("BEGIN")')
    assert "log closed its connection" in finding.text and f"begun by BEGIN at own.py:{line}" in finding.text
    assert "COMMIT before close" in finding.text


POSTS = """
import functools, random, sqlite3, time
from sqlstress import check, connect, setup, transaction

@setup
def create(database):
    db = sqlite3.connect(database)
    db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE entry (n); CREATE TABLE account (n)")
    db.execute("INSERT INTO account VALUES (0)")
    db.commit()
    db.close()

@connect
def opened(database):
    return sqlite3.connect(database, timeout=0, isolation_level=None)

@transaction
def post(db):
    while True:
        try:
            db.execute("INSERT INTO entry VALUES (1)")
            db.execute("UPDATE account SET n = n + 1")
            return
        except sqlite3.OperationalError:
            pass

@check
def entries_explain_the_account(query):
    ((entries,),) = query("SELECT count(*) FROM entry")
    assert query("SELECT n FROM account") == [(entries,)]
"""


def test_report_names_the_write_that_a_repeated_call_does_twice(tmp_path: Path) -> None:
    report = measured(tmp_path, POSTS, concurrency=4, ops=400)
    (finding,) = findings_of(report, "repeated-transaction")
    line = line_of(POSTS, 'db.execute("INSERT INTO entry')
    assert finding.facts["committed"] == f"own.py:{line}"
    assert "The first write stays, and is done twice" in finding.text


# Refused writes of threads, whose calls go on.


REPEATS = """
import asyncio, sqlite3, time
from sqlstress import connect, setup, transaction

@setup
def create(database):
    db = sqlite3.connect(database)
    db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE item (n)")
    db.close()

@connect
def opened(database):
    return sqlite3.connect(database, timeout=0, isolation_level=None, check_same_thread=False)

def count(db):
    db.execute("BEGIN")
    try:
        ((n,),) = db.execute("SELECT count(*) FROM item").fetchall()
        time.sleep(0.002)
        db.execute("INSERT INTO item VALUES (?)", (n,))
        db.execute("COMMIT")
    except sqlite3.OperationalError:
        db.execute("ROLLBACK")
        return False
    return True

async def count_once(db):
    while not await asyncio.to_thread(count, db):
        await asyncio.sleep(0.001)

@transaction
def work(db):
    asyncio.run(count_once(db))
"""


TRIES = 10


@pytest.mark.parametrize("gives_up", [False, True])
def test_advice_on_refused_writes_says_whether_calls_went_on(tmp_path: Path, *, gives_up: bool) -> None:
    text = REPEATS.replace("return False", "raise") if gives_up else REPEATS
    for _ in range(TRIES):  # By chance, no transaction may get into the way of another.
        report = measured(tmp_path, text, concurrency=3, ops=30, max_failed=1.0)
        (finding,) = findings_of(report, "deferred-upgrade")
        if "repeated" in finding.facts:
            break
    assert finding.facts["repeated"] != gives_up
    assert ("only saves time" in finding.text) != gives_up


# Calls that commit several times, so that a check under load sees their work half done.


PAIRS = """
import sqlite3, time
from sqlstress import check, connect, setup, transaction

@setup
def create(database):
    db = sqlite3.connect(database)
    db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE credit (debit)")
    db.execute("CREATE TABLE debit (id INTEGER PRIMARY KEY, n)")
    db.close()

@connect
def opened(database):
    return sqlite3.connect(database, timeout=30, isolation_level=None)

@transaction
def pay(db):
    db.execute(BEGIN)
    new = db.execute("INSERT INTO debit (n) VALUES (1)").lastrowid
    time.sleep(0.05)
    db.execute("INSERT INTO credit (debit) VALUES (?)", (new,))
    db.execute(END)

@check
def books_balance(query):
    assert query("SELECT count(*) FROM debit") == query("SELECT count(*) FROM credit")
"""


@pytest.mark.parametrize("is_whole", [False, True])
def test_work_that_a_check_sees_half_done_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_whole: bool
) -> None:
    monkeypatch.setattr(interleavings, "PAUSES_S", 60.0)
    begin, end = ("BEGIN IMMEDIATE", "COMMIT") if is_whole else ("SELECT 1", "SELECT 2")
    text = PAIRS.replace("BEGIN", repr(begin)).replace("END", repr(end))
    report = measured(tmp_path, text, concurrency=2, duration=1, warmup=0)
    kinds = [finding.facts["kind"] for finding in findings_of(report, "breaking-step")]
    assert kinds == [HALF] * (not is_whole)


# Connections that calls do not close.


@pytest.mark.parametrize("library", ["sqlite3", "apsw"])
def test_connections_that_stay_open_are_counted_by_line(
    library: str, file: Path, recorder: FailedStatements
) -> None:
    kept = []
    for number in range(2 * MIN_UNCLOSED):
        recorder.costs.begin()
        connection: Any = sqlite3.connect(file) if library == "sqlite3" else apsw.Connection(str(file))
        connection.execute("SELECT 1").fetchall()
        kept.append(connection)
        if number % 2:
            connection.close()
    records = [record for record in recorder.records() if record[0] == UNCLOSED]
    assert [record[4]["open"] for record in records] == [str(MIN_UNCLOSED)]
    assert records[0][1].startswith(f"{Path(__file__).name}:")
    for connection in kept:
        connection.close()


def test_pool_that_a_call_fills_is_not_unclosed(file: Path, recorder: FailedStatements) -> None:
    recorder.costs.begin()
    pool = [sqlite3.connect(file) for _ in range(2 * MIN_UNCLOSED)]
    assert not [record for record in recorder.records() if record[0] == UNCLOSED]
    for connection in pool:
        connection.close()


def test_connection_for_each_thread_is_not_unclosed(file: Path, recorder: FailedStatements) -> None:
    kept: list[sqlite3.Connection] = []
    ready = Barrier(MIN_UNCLOSED)

    def use() -> None:
        kept.append(sqlite3.connect(file, check_same_thread=False))
        kept[-1].execute("SELECT 1").fetchall()
        ready.wait()

    threads = [Thread(target=use) for _ in range(MIN_UNCLOSED)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not [record for record in recorder.records() if record[0] == UNCLOSED]
    for connection in kept:
        connection.close()


LEAKS = """
import sqlite3
{limit}
from sqlstress import connect, setup, transaction

@setup
def create(database):
    sqlite3.connect(database).executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (x)")

@connect
def opened(database):
    return database, []

@transaction
def follow(pool):
    path, used = pool
    used.append(sqlite3.connect(path, timeout=30))
    used[-1].execute("SELECT * FROM t").fetchall()
"""


def test_report_names_the_line_whose_connections_stay_open(tmp_path: Path) -> None:
    text = LEAKS.format(limit="")
    report = measured(tmp_path, text)
    (finding,) = findings_of(report, "unclosed")
    line = line_of(text, "used.append(")
    assert (finding.facts["at"], finding.facts["count"]) == (f"own.py:{line}", OPERATIONS)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_lack_of_descriptors_follows_from_connections_that_stay_open(tmp_path: Path) -> None:
    text = LEAKS.format(limit="import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120))")
    report = measured(tmp_path, text, ops=200, max_failed=1.0)
    assert findings_of(report, "unclosed")
    assert report.runs[0].trials[0].failed
    assert not findings_of(report, "failed-statement")


# Violations of constraints that the code catches.


TAGS = """
import random, sqlite3
from sqlstress import check, connect, setup, transaction

@setup
def create(database):
    sqlite3.connect(database).executescript("PRAGMA journal_mode=WAL; CREATE TABLE tag (name UNIQUE)")

@connect
def opened(database):
    return sqlite3.connect(database, timeout=30, isolation_level=None)

@transaction
def tag(db):
    try:
        db.execute("INSERT INTO tag VALUES (?)", (random.randrange(3),))
    except sqlite3.IntegrityError:
        {handled}

@check
def no_tag_is_lost(query):
    assert {right} or not query("SELECT * FROM tag")
"""


@pytest.mark.parametrize(
    ("handled", "right", "is_named"),
    [("pass", True, False), thorough("raise", True, True), ("pass", False, True)],
)
def test_handled_violation_of_a_constraint_is_no_finding(
    handled: str, right: bool, is_named: bool, tmp_path: Path
) -> None:
    report = measured(tmp_path, TAGS.format(handled=handled, right=right), max_failed=1.0)
    assert bool(findings_of(report, "failed-statement")) == is_named
    assert "CONSTRAINT_UNIQUE" in report.text()
