"""A row of ours in each transaction that commits stands for what was acknowledged, and for nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sqlstress
from sqlstress.errors import UsageError
from sqlstress.experiments.app.ledger import CREATE, Ledger, acknowledged
from sqlstress.experiments.app.work import LEDGER
from sqlstress.experiments.hunt.study import study_of
from sqlstress.report import Check
from sqlstress.user_work import notes
from tests.experiments.app.test_app import SHORT, WRITES, measured
from tests.pages import ROOT

ADD = "INSERT INTO t VALUES (1)"


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A ledger, and what connects to a database with its table; the connections are closed at the end."""
    notes.begin(tmp_path)
    ledger, opened = Ledger(tmp_path, 3), []

    def connect(**how: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.connect(tmp_path / "app.db", timeout=0, **how)
        opened.append(connection)
        connection.set_trace_callback(ledger.follow(connection))
        return connection

    with closing(sqlite3.connect(tmp_path / "app.db")) as made:
        made.executescript(f"CREATE TABLE t (x); {CREATE}")
    yield SimpleNamespace(
        connect=connect, ledger=ledger, told=lambda: [*acknowledged(tmp_path, 3)], rows=lambda: rows(tmp_path)
    )
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
    # As Python does with autocommit=False, within one call.
    c.executescript(f"BEGIN; {ADD}; COMMIT; BEGIN")


def and_closes(c: sqlite3.Connection) -> None:
    by_commit(c)
    c.close()


@pytest.mark.parametrize("commit", [by_commit, by_with, by_statements, by_script, and_begins, and_closes])
def test_a_commit_that_returned_is_told_and_its_row_is_there(
    ours: SimpleNamespace, commit: Callable[[sqlite3.Connection], None]
) -> None:
    for _ in range(2):
        commit(ours.connect())
        ours.ledger.keep()
    assert ours.told() == [1, 2] and ours.rows() == [(3, 1), (3, 2)]
    assert ours.ledger.unproved == 0


def test_what_was_undone_only_read_or_stood_alone_gets_no_row(ours: SimpleNamespace) -> None:
    connection = ours.connect()
    connection.execute(ADD)
    connection.rollback()
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM t").fetchall()
    connection.commit()
    alone = ours.connect(isolation_level=None)
    alone.execute(ADD)
    alone.execute("SELECT 1").fetchall()
    ours.ledger.keep()
    assert (ours.told(), ours.rows(), ours.ledger.unproved) == ([], [], 1)


def test_a_commit_that_fails_is_not_told_until_it_succeeds(ours: SimpleNamespace) -> None:
    reader, writer = ours.connect(isolation_level=None), ours.connect()
    reader.executescript("BEGIN; SELECT * FROM t")
    cursor = reader.execute("SELECT count(*) FROM t")
    writer.execute(ADD)
    with suppress(sqlite3.OperationalError):
        writer.commit()
    ours.ledger.keep()
    assert writer.in_transaction and ours.told() == []
    cursor.fetchall()
    reader.execute("COMMIT")
    again(writer)
    ours.ledger.keep()
    assert ours.told() == [1] and ours.rows() == [(3, 1)]


def test_of_a_call_that_raised_the_last_commit_is_not_known(ours: SimpleNamespace) -> None:
    connection = ours.connect()
    by_commit(connection)
    by_commit(connection)
    ours.ledger.leave()
    assert ours.told() == [1] and len(ours.rows()) == 2


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
        c.execute("{}")
"""


def ledger_of(folder: Path, text: str) -> Check:
    (run,) = measured(folder, text, ledger=True).runs
    (check,) = (one for one in run.verdict.checks if one.name == LEDGER)
    return check


def test_a_commit_that_is_lost_is_wrong_data(tmp_path: Path) -> None:
    text = FORGETS.format("DELETE FROM sqlstress_ledger WHERE worker = 1 AND number = 2")
    check = ledger_of(tmp_path, text)
    assert (check.status, check.problems, check.checked) == ("failed", 1, 2 * SHORT["ops"])
    assert check.counterexamples == ("1 acknowledged commits of worker 1 are lost",)


@pytest.mark.parametrize("text", [WRITES, FORGETS.format("DROP TABLE IF EXISTS sqlstress_ledger")])
def test_where_nothing_can_be_proved_that_is_the_verdict(tmp_path: Path, text: str) -> None:
    check = ledger_of(tmp_path, text)
    assert check.status == "unknown" and check.note, check


def test_a_hunt_in_an_application_has_a_ledger() -> None:
    bank = str(ROOT / "examples" / "app" / "bank.py")
    hunt = study_of({"load": ("app", bank)}, lambda words, *_: {"file": words[0]})
    assert [case.spec.ledger for case in hunt.cases] == [True]


def test_a_server_has_no_ledger_of_an_application() -> None:
    bank = str(ROOT / "examples" / "app" / "bank.py")
    with pytest.raises(UsageError, match="--ledger needs SQLite"):
        sqlstress.measure("app", file=bank, target="postgres", dsn="postgresql://127.0.0.1/x", ledger=True)
