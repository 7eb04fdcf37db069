"""A row of ours in each committed transaction proves the acknowledged ones, and only those."""

from __future__ import annotations

import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sqlstress
from sqlstress.errors import UsageError
from sqlstress.experiments.app.ledger import SETUP_SQL, Ledger, acknowledged
from sqlstress.experiments.app.work import LEDGER
from sqlstress.experiments.hunt.study import study_of
from sqlstress.report import Check
from sqlstress.user_work import notes
from tests.own_app import HEAD, OPERATIONS, WRITES, measured
from tests.pages import ROOT
from tests.rows import thorough

ADD = "INSERT INTO t VALUES (1)"


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A ledger, and a function that connects to a database with its table; all is closed at the end."""
    notes.begin(tmp_path)
    ledger, opened = Ledger(tmp_path, 3), []

    def connect(**how: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.connect(tmp_path / "app.db", timeout=0, **how)
        opened.append(connection)
        connection.set_trace_callback(ledger.follow(connection).begins)
        return connection

    with closing(sqlite3.connect(tmp_path / "app.db")) as made:
        made.executescript(";".join(("CREATE TABLE t (x)", *SETUP_SQL)))
    yield SimpleNamespace(
        connect=connect, ledger=ledger, told=lambda: [*acknowledged(tmp_path, 3)], rows=lambda: rows(tmp_path)
    )
    sys.setprofile(None)
    for connection in opened:
        connection.close()
    notes.end(tmp_path)


def rows(folder: Path) -> list[tuple[int, int]]:
    with closing(sqlite3.connect(folder / "app.db")) as connection:
        return connection.execute("SELECT worker, number FROM sqlstress_ledger").fetchall()


def by_commit(c: sqlite3.Connection) -> None:
    c.execute(ADD)
    c.commit()


def by_with(c: sqlite3.Connection) -> None:
    with c:
        c.execute(ADD)


def by_statements(c: sqlite3.Connection) -> None:
    for sql in ("BEGIN IMMEDIATE", "SAVEPOINT s", ADD, "RELEASE s", " /* done */ commit"):
        c.execute(sql)


def by_script(c: sqlite3.Connection) -> None:
    c.executescript(f"BEGIN; {ADD}; END TRANSACTION")


def again(c: sqlite3.Connection) -> None:
    c.commit()


def and_begins(c: sqlite3.Connection) -> None:
    # Within one call, as with autocommit=False: a script commits first.
    c.execute(ADD)
    c.executescript("BEGIN")


def and_closes(c: sqlite3.Connection) -> None:
    by_commit(c)
    c.close()


@pytest.mark.parametrize("commit", [by_commit, by_with, by_statements, by_script, and_begins, and_closes])
def test_returned_commit_is_acknowledged_and_has_a_row(
    ours: SimpleNamespace, commit: Callable[[sqlite3.Connection], None]
) -> None:
    for _ in range(2):
        commit(ours.connect())
    assert ours.told() == [1, 2] and ours.rows() == [(3, 1), (3, 2)]
    assert ours.ledger.unproved == 0


def test_rollback_read_and_single_statement_have_no_row(ours: SimpleNamespace) -> None:
    connection = ours.connect()
    connection.execute(ADD)
    connection.rollback()
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM t").fetchall()
    connection.commit()
    alone = ours.connect(isolation_level=None)
    alone.execute(ADD)
    alone.execute("SELECT 1").fetchall()
    assert (ours.told(), ours.rows(), ours.ledger.unproved) == ([], [], 1)


def test_failed_commit_is_not_acknowledged_until_it_succeeds(ours: SimpleNamespace) -> None:
    reader, writer = ours.connect(isolation_level=None), ours.connect()
    reader.executescript("BEGIN; SELECT * FROM t")
    cursor = reader.execute("SELECT count(*) FROM t")
    writer.execute(ADD)
    with suppress(sqlite3.OperationalError):
        writer.commit()
    assert writer.in_transaction and ours.told() == []
    cursor.fetchall()
    reader.execute("COMMIT")
    again(writer)
    assert ours.told() == [1] and ours.rows() == [(3, 1)]


def test_row_undone_by_a_savepoint_does_not_count(ours: SimpleNamespace) -> None:
    connection = ours.connect(isolation_level=None)
    connection.executescript("CREATE TABLE p (id INTEGER PRIMARY KEY); PRAGMA foreign_keys=ON")
    connection.execute("CREATE TABLE k (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
    for sql in ("BEGIN", "INSERT INTO p DEFAULT VALUES", "SAVEPOINT s", "INSERT INTO k VALUES (-1)"):
        connection.execute(sql)
    with suppress(sqlite3.IntegrityError):
        connection.execute("COMMIT")
    connection.execute("ROLLBACK TO s")
    connection.execute("COMMIT")
    assert ours.told() == [2] and ours.rows() == [(3, 2)]


def test_transaction_rolled_back_by_a_failed_commit_is_not_acknowledged(
    ours: SimpleNamespace,
) -> None:
    reader, writer = ours.connect(isolation_level=None), ours.connect(isolation_level=None)
    writer.execute("CREATE UNIQUE INDEX u ON t (x)")
    writer.execute(ADD)
    cursor = reader.execute("SELECT x FROM t")
    for sql in ("BEGIN", "INSERT INTO t VALUES (2)", "COMMIT", "INSERT OR ROLLBACK INTO t VALUES (1)"):
        with suppress(sqlite3.Error):
            writer.execute(sql)
    cursor.fetchall()
    writer.execute("SELECT 1").fetchall()
    assert (ours.told(), ours.rows()) == ([], [])


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file there")
def test_commit_on_a_full_disk_is_not_acknowledged(ours: SimpleNamespace) -> None:
    if sys.platform == "win32":  # for mypy
        return
    import resource

    connection = ours.connect()
    connection.execute("PRAGMA journal_mode=WAL")
    by_commit(connection)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    blocked = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
    try:
        for _ in range(3):
            with suppress(sqlite3.Error), connection:
                connection.executemany("INSERT INTO t VALUES (zeroblob(?))", [(3000,)] * 15)
            connection.execute("SELECT 1").fetchall()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, blocked)
    assert ours.told() == [1]


def test_use_of_temporary_tables_has_no_row_and_no_lock_of_main(ours: SimpleNamespace) -> None:
    connection, reader = ours.connect(isolation_level=None), ours.connect(isolation_level=None)
    cursor = reader.execute("SELECT 1 FROM sqlite_schema")
    for sql in ("CREATE TEMP TABLE own (x)", "BEGIN", "INSERT INTO own VALUES (1)", "COMMIT", "SELECT 1"):
        connection.execute(sql)
    cursor.fetchall()
    assert (ours.told(), ours.rows(), ours.ledger.unproved) == ([], [], 1)


def test_library_that_calls_from_c_is_recorded_too(ours: SimpleNamespace) -> None:
    connection = ours.connect()

    def partly() -> None:
        connection.execute(ADD)
        partial(connection.commit)()

    partly()
    assert ours.told() == [1] and ours.rows() == [(3, 1)]


def test_transaction_under_a_users_profiler_has_no_row(ours: SimpleNamespace) -> None:
    connection = ours.connect()
    sys.setprofile(lambda *_: None)
    by_commit(connection)
    sys.setprofile(None)
    connection.execute("SELECT 1").fetchall()
    assert (ours.told(), ours.rows(), ours.ledger.unproved) == ([], [], 1)


def test_rows_stay_when_all_tables_are_emptied(ours: SimpleNamespace) -> None:
    connection = ours.connect()
    by_commit(connection)
    connection.execute("DELETE FROM sqlstress_ledger")
    connection.commit()
    assert ours.told() == [1] and ours.rows() == [(3, 1)]


FORGETS = """
from contextlib import suppress
from sqlstress import finish
@transaction
def add(c):
    c.execute("BEGIN IMMEDIATE")
    c.execute("UPDATE t SET x = x + 1")
    c.execute("COMMIT")
@finish
def forget(c):
    with suppress(sqlite3.Error):  # it is called without a ledger, too
        c.executescript("DROP TRIGGER IF EXISTS sqlstress_ledger_stays; {}")
"""


def ledger_of(folder: Path, text: str) -> Check:
    (run,) = measured(folder, HEAD + text, ledger=True).runs
    (check,) = (result for result in run.verdict.checks if result.name == LEDGER)
    return check


def test_lost_commit_is_wrong_data(tmp_path: Path) -> None:
    text = FORGETS.format("DELETE FROM sqlstress_ledger WHERE worker = 1 AND number = 2")
    check = ledger_of(tmp_path, text)
    assert (check.status, check.problems, check.checked) == ("failed", 1, 2 * OPERATIONS)
    assert check.counterexamples == ("1 acknowledged commit of worker 1 is lost",)


@pytest.mark.parametrize("text", [WRITES, thorough(FORGETS.format("DROP TABLE IF EXISTS sqlstress_ledger"))])
def test_ledger_without_a_proof_is_unknown(tmp_path: Path, text: str) -> None:
    check = ledger_of(tmp_path, text)
    assert check.status == "unknown" and check.note, check


def test_hunt_in_an_application_has_a_ledger() -> None:
    bank = str(ROOT / "examples" / "app" / "bank.py")
    hunt = study_of({"load": ("app", bank)}, lambda words, *_: {"file": words[0]})
    assert [case.spec.ledger for case in hunt.cases] == [True]


def test_server_has_no_ledger_of_an_application() -> None:
    bank = str(ROOT / "examples" / "app" / "bank.py")
    with pytest.raises(UsageError, match="ledger needs SQLite"):
        sqlstress.measure("app", file=bank, target="postgres", dsn="postgresql://127.0.0.1/x", ledger=True)
