"""Calls that lock two files by different connections, in the same order or in opposite orders."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import OperationalError
from typing import Any

import pytest

from sqlstress.recording import LOCK_ORDER
from sqlstress.recording.failed_statements import FailedStatements
from sqlstress.report.results import Sighting
from tests.own_app import findings_of, line_of, measured
from tests.recording.failing_programs import INSERT, SELECT, open_file

BEGIN = "BEGIN IMMEDIATE"


def orders(recorder: FailedStatements) -> list[Sighting]:
    return [Sighting(*record) for record in recorder.records() if record[0] == LOCK_ORDER]


@contextmanager
def second_file(file: Path) -> Iterator[Any]:
    """Create another WAL database, whose write lock is taken by a connection."""
    with open_file(file.with_name("second.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.execute(BEGIN)
        yield connection


@pytest.mark.parametrize(
    ("first", "then", "is_named"),
    [
        ([BEGIN], BEGIN, True),
        (["BEGIN", INSERT], INSERT, True),
        (["BEGIN", SELECT], BEGIN, False),
        ([INSERT], BEGIN, False),
        ([BEGIN, "COMMIT"], BEGIN, False),
        ([BEGIN], SELECT, False),
    ],
    ids=["begin", "writes", "first_only_reads", "autocommit", "ended", "then_only_reads"],
)
def test_wait_with_the_lock_of_another_file_is_recorded(
    first: list[str], then: str, file: Path, recorder: FailedStatements, *, is_named: bool
) -> None:
    with second_file(file), open_file(file) as this, open_file(file.with_name("second.db")) as other:
        recorder.costs.begin()
        for sql in first:
            this.execute(sql).fetchall()
        with suppress(OperationalError):
            other.execute(then).fetchall()
        line = sys._getframe().f_lineno - 1
        if this.in_transaction:
            this.execute("ROLLBACK")
        recorder.check_left_open("order")
    found = orders(recorder)
    assert [order.what for order in found] == ["order"] * is_named
    for order in found:
        assert (order.traits["first"], order.traits["then"]) == ("app.db", "second.db")
        assert order.traits["then_at"] == order.traits["at"] == f"{Path(__file__).name}:{line}"


def test_wait_of_a_second_connection_to_one_file_is_no_order(file: Path, recorder: FailedStatements) -> None:
    with open_file(file) as this, open_file(f"{file.parent}/./{file.name}") as other:
        recorder.costs.begin()
        this.execute(BEGIN)
        with suppress(OperationalError):
            other.execute(BEGIN)
        this.execute("ROLLBACK")
        recorder.check_left_open("order")
    assert not orders(recorder)


TWO_FILES = """
import sqlite3, time
from contextlib import contextmanager, suppress
from sqlstress import connect, setup, transaction

@setup
def create(database):
    for file in (database, database + "-stock.db"):
        db = sqlite3.connect(file)
        db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (x)")
        db.close()

@connect
def opened(database):
    files = database, database + "-stock.db"
    return [sqlite3.connect(file, timeout=0.3, isolation_level=None) for file in files]

@contextmanager
def writing(db):
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db.execute("INSERT INTO t VALUES (1)")
    finally:
        db.execute("ROLLBACK")

@transaction
def order(files):
    with suppress(sqlite3.OperationalError), writing(files[0]):
        time.sleep(0.05)
        with writing(files[1]):
            pass

@transaction
def give_back(files):
    with suppress(sqlite3.OperationalError), writing(files[1]):
        time.sleep(0.05)
        with writing(files[0]):
            pass
"""


@pytest.mark.thorough
@pytest.mark.parametrize("is_opposite", [True, False])
def test_report_names_opposite_orders_with_the_lines_of_both(tmp_path: Path, *, is_opposite: bool) -> None:
    text = TWO_FILES
    if not is_opposite:
        head, function, rest = text.partition("def give_back")
        rest = rest.replace("files[1]", "files[2]").replace("files[0]", "files[1]").replace("[2]", "[0]")
        text = head + function + rest
    report = measured(tmp_path, text, concurrency=3, duration="3s", allow_other_files=True)
    found = " ".join(finding.text for finding in findings_of(report, "failed-statement"))
    assert ("each waits for the other" in found) == is_opposite
    if is_opposite:
        lines = (line_of(text, f"        with writing(files[{number}])") for number in (0, 1))
        assert f"give_back locks kv.db-stock.db, then kv.db (own.py:{next(lines)})" in found
        assert f"order locks kv.db, then kv.db-stock.db (own.py:{next(lines)})" in found
