"""Rows that a reader passes over are named only if the reader had certainly used a larger value before."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import sqlstress
from sqlstress.recording import PASSED_OVER
from sqlstress.recording.failed_statements import FailedStatements
from sqlstress.recording.passed_rows import bounds_words
from sqlstress.system.sharing import shared_array
from tests.own_app import findings_of
from tests.rows import thorough

READ = "SELECT * FROM event WHERE created > ? ORDER BY created"
INSERT = "INSERT INTO event (created) VALUES (?)"


@pytest.fixture
def connection(file: Path, recorder: FailedStatements) -> Iterator[sqlite3.Connection]:
    """Return a recorded connection to a database with three events."""
    recorder.passed_rows.share(shared_array("q", bounds_words(2)), 2)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, created)")
        connection.execute("INSERT INTO event (created) VALUES (1.5), (2.5), (3.5)")
        yield connection


def passed(
    connection: Any,
    recorder: FailedStatements,
    bounds: Sequence[object],
    values: Sequence[object],
    read: str = READ,
    insert: str = INSERT,
) -> list[tuple[int, str]]:
    """Read with each bound, then insert each value. Return the number of rows passed over, and the column."""
    for bound in bounds:
        connection.execute(read, (bound,)).fetchall()
    for value in values:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(insert, {"created": value} if ":" in insert else (value,))
        connection.execute("COMMIT")
    return [
        (count, traits["column"]) for topic, _, count, _, traits in recorder.records() if topic == PASSED_OVER
    ]


@pytest.mark.parametrize(
    ("read", "insert"),
    [
        (READ, INSERT),
        (READ, "INSERT INTO event VALUES (NULL, :created)"),
        ('SELECT e.id FROM "event" AS e WHERE (e."created" >= ?) LIMIT 5', INSERT),
    ],
)
def test_row_below_a_bound_that_a_reader_used_is_passed_over(
    read: str, insert: str, connection: sqlite3.Connection, recorder: FailedStatements
) -> None:
    passed_over = passed(connection, recorder, [0, 1.5, 2.5, 3.5], [3.25, 3.4, 3.6], read, insert)
    assert passed_over == [(2, "created")]


def test_rows_of_apsw_are_compared_too(file: Path, recorder: FailedStatements) -> None:
    recorder.passed_rows.share(shared_array("q", bounds_words(1)), 1)
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, created)")
        connection.execute("INSERT INTO event (created) VALUES (1.5), (2.5), (3.5)")
        assert passed(connection, recorder, [0, 1.5, 2.5, 3.5], [3.4, 3.6]) == [(1, "created")]


def test_texts_are_compared_as_texts(connection: sqlite3.Connection, recorder: FailedStatements) -> None:
    connection.execute("INSERT INTO event (created) VALUES ('2026-03')")
    bounds = ["", "2026-01", "2026-02", "2026-03"]
    assert passed(connection, recorder, bounds, ["2026-02-09"]) == [(1, "created")]


@pytest.mark.parametrize(
    ("bounds", "values", "read"),
    [
        ([0, 1.5, 2.5, 3.5], [3.6, 3.7], READ),
        ([0, 1.0, 2.0, 3.0], [2.9], READ),
        ([0, 1.5, 2.5, 3.5, 0], [3.4], READ),
        ([0, 1.5, 2.5, 3.5], [9.0, 3.4, 9.5], READ),
        ([3.5, 3.5, 3.5, 3.5], [3.4], READ),
        ([0, 1.5, 2.5, 3.5], [3.4], "SELECT * FROM event WHERE created > ? AND id % 2"),
        ([0, 1.5, 2.5, 3.5], [3.4], "SELECT * FROM event WHERE created > ? - 5"),
    ],
    ids=["above", "margin", "from the start", "unordered", "constant", "more conditions", "margin in SQL"],
)
def test_row_that_a_reader_may_return_is_not_passed_over(
    bounds: Sequence[object],
    values: Sequence[object],
    read: str,
    connection: sqlite3.Connection,
    recorder: FailedStatements,
) -> None:
    assert passed(connection, recorder, bounds, values, read) == []


def test_row_in_autocommit_mode_is_not_passed_over(
    connection: sqlite3.Connection, recorder: FailedStatements
) -> None:
    assert passed(connection, recorder, [0, 1.5, 2.5, 3.5], []) == []
    connection.execute(INSERT, (3.4,))  # The reader may have run after the commit.
    assert passed(connection, recorder, [], []) == []


PROGRAM = """
import random, sqlite3, time
from sqlstress import setup, connect, transaction

@setup
def make(database):
    with sqlite3.connect(database) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE event (id INTEGER PRIMARY KEY AUTOINCREMENT, created REAL)")
        db.execute("CREATE TABLE reader (last REAL)")
        db.execute("INSERT INTO reader VALUES (0)")

@connect
def start(database):
    return sqlite3.connect(database, timeout=60, isolation_level=None)

@transaction
def put(db):
    now = time.time()
    time.sleep(random.uniform(0, 0.005))
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO event (created) VALUES (?)", (TAKEN,))
    db.execute("COMMIT")

@transaction
def take(db):
    db.execute("BEGIN IMMEDIATE")
    (last,) = db.execute("SELECT last FROM reader").fetchone()
    for number, created in db.execute("SELECT id, created FROM event WHERE COLUMN > ?", (last,)).fetchall():
        last = max(last, COLUMN)
    db.execute("UPDATE reader SET last = ?", (last,))
    db.execute("COMMIT")
"""


@pytest.mark.parametrize(
    ("value", "column", "count"),
    [("now", "created", 1), thorough("time.time()", "created", 0), thorough("now", "id", 0)],
)
def test_time_from_before_the_lock_is_named_if_a_reader_follows_it(
    value: str, column: str, count: int, tmp_path: Path
) -> None:
    file = tmp_path / "program.py"
    text = PROGRAM.replace("TAKEN", value).replace("max(last, COLUMN", f"max(last, {column}")
    file.write_text(text.replace("COLUMN", column).replace("max(last, id", "max(last, number"), "utf-8")
    report = sqlstress.measure("app", file=str(file), concurrency=4, ops=200, repeat=1, directory=tmp_path)
    found = [f for f in findings_of(report, "suspicion") if f.facts["kind"] == "passed-over"]
    assert len(found) == count
    assert all("AUTOINCREMENT" in finding.text and "program.py:" in finding.text for finding in found)
