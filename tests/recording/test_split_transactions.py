"""Transactions that executescript or an inner block commits before their end, in real programs."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

import sqlstress
from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.recording import SPLIT
from sqlstress.recording.failed_statements import FailedStatements
from tests.own_app import findings_of, line_of, measured
from tests.rows import thorough

PROGRAM = """
import sqlite3
from sqlstress import setup, connect, transaction

@setup
def make(database):
    with sqlite3.connect(database) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (n)")

@connect
def opened(database):
    db = sqlite3.connect(database, timeout=60{options})
    db.execute("INSERT INTO t VALUES (0)")
    db.executescript("CREATE TABLE IF NOT EXISTS log (n)")
    return db

@transaction
def work(db):
    {first}
    db.executescript("INSERT INTO t VALUES (2);")
    db.execute("INSERT INTO t VALUES (3)")
    db.commit()
"""
BEGINS = {
    "explicit": 'db.execute("BEGIN IMMEDIATE")',
    "savepoint": 'db.execute("SAVEPOINT s")',
    "implicit": 'db.execute("INSERT INTO t VALUES (1)")',
}


def splits(tmp_path: Path, first: str, options: str = "") -> list[sqlstress.Finding]:
    report = measured(
        tmp_path, PROGRAM.format(first=first, options=options), "program.py", concurrency=2, ops=8
    )
    return findings_of(report, "split-transaction")


@pytest.mark.parametrize("begin", BEGINS)
def test_script_in_an_open_transaction_is_named_with_its_line(begin: str, tmp_path: Path) -> None:
    (found,) = splits(tmp_path, BEGINS[begin])
    assert (found.facts["at"], found.facts["began_at"]) == ("program.py:21", "program.py:20")
    assert "executescript (program.py:21) committed the transaction begun at program.py:20" in found.text


def test_script_outside_of_a_transaction_is_not_named(tmp_path: Path) -> None:
    assert splits(tmp_path, 'db.execute("SELECT * FROM t").fetchall()') == []


BLOCKS = """
import sqlite3
from sqlstress import setup, connect, transaction

@setup
def make(database):
    sqlite3.connect(database).executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (n)")

@connect
def opened(database):
    return sqlite3.connect(database, timeout=60)

def log(db):
    with db:
        db.execute("INSERT INTO t VALUES (2)")

@transaction
def work(db):
    try:
        with db:
            {body}
    except ValueError:
        pass
"""
ADD, LOG, FAIL = 'db.execute("INSERT INTO t VALUES (1)")', "log(db)", 'raise ValueError("no stock")'


@pytest.mark.parametrize(
    ("steps", "is_split"),
    [
        thorough([ADD, LOG, ADD], True),
        ([ADD, LOG, FAIL], True),
        ([ADD, LOG], False),
        thorough([LOG, ADD], False),
        thorough([ADD, FAIL], False),
    ],
)
def test_inner_block_that_commits_the_outer_one_is_named(
    steps: list[str], tmp_path: Path, *, is_split: bool
) -> None:
    text = BLOCKS.format(body="\n            ".join(steps))
    report = measured(tmp_path, text, "program.py", concurrency=2, ops=8)
    found = findings_of(report, "split-transaction")
    assert bool(found) == is_split
    if is_split:
        begun = f"the transaction begun at program.py:{line_of(text, ADD)}"
        inner = f"`with connection` at program.py:{line_of(text, 'with db:')}"
        assert f"{inner} committed {begun}" in found[0].text


SAVEPOINTS = """
import sqlite3
from sqlstress import setup, connect, transaction

@setup
def make(database):
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE t (n)")

@connect
def opened(database):
    return sqlite3.connect(database, timeout=60)

@transaction
def work(db):
    {begin}
    db.execute("SAVEPOINT part")
    db.execute("{change}")
    db.execute("RELEASE part")
    db.execute("SELECT count(*) FROM t").fetchone()
    db.{end}()
"""


@pytest.mark.parametrize(
    ("begin", "change", "end", "is_split"),
    [
        ("pass", "INSERT INTO t VALUES (1)", "rollback", True),
        ("pass", "INSERT INTO t VALUES (1)", "commit", False),
        thorough('db.execute("BEGIN")', "INSERT INTO t VALUES (1)", "rollback", False),
        thorough("pass", "SELECT 1", "rollback", False),
    ],
)
def test_release_that_commits_before_a_rollback_is_named(
    begin: str, change: str, end: str, tmp_path: Path, *, is_split: bool
) -> None:
    text = SAVEPOINTS.format(begin=begin, change=change, end=end)
    report = measured(tmp_path, text, "program.py", concurrency=2, ops=8)
    found = findings_of(report, "split-transaction")
    assert bool(found) == is_split
    if is_split:
        line = f"program.py:{line_of(text, 'db.rollback')}"
        assert f"no BEGIN came before: the ROLLBACK at {line} did not undo it" in found[0].text


NESTED = """
import sqlalchemy
from sqlalchemy import text
from sqlstress import setup, connect, transaction

@setup
def make(database):
    with sqlalchemy.create_engine(f"sqlite:///{{database}}").begin() as db:
        db.execute(text("CREATE TABLE t (n UNIQUE)"))

@connect
def opened(database):
    engine = sqlalchemy.create_engine(f"sqlite:///{{database}}", connect_args={{"timeout": 60}})
    {options}
    return engine

@transaction
def work(engine):
    try:
        with engine.begin() as db:
            with db.begin_nested():
                db.execute(text("INSERT INTO t VALUES (abs(random()))"))
            with db.begin_nested():
                db.execute(text("INSERT INTO t VALUES (abs(random()))"))
                raise KeyError
    except KeyError:
        pass
"""
BEGINS_FIRST = """
    @sqlalchemy.event.listens_for(engine, "connect")
    def connected(connection, _):
        connection.isolation_level = None
    @sqlalchemy.event.listens_for(engine, "begin")
    def begun(connection):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
"""


@pytest.mark.parametrize("between", ["", "COMMIT", "BEGIN"])
def test_savepoint_before_another_transaction_is_no_part_of_it(
    between: str, file: Path, recorder: FailedStatements
) -> None:
    recorder.failures.window = Window(0, 0, FOREVER_NS)
    with closing(sqlite3.connect(file)) as db:
        db.execute("SAVEPOINT part")
        db.execute("INSERT INTO t VALUES (1)")
        db.execute("RELEASE part")
        if between == "COMMIT":
            db.commit()
        if between == "BEGIN":
            db.execute("BEGIN")
        db.execute("INSERT INTO t VALUES (2)")
        try:
            raise KeyError
        except KeyError:
            db.rollback()
    found = [record for record in recorder.records() if record[0] == SPLIT]
    assert bool(found) == (between == "")


@pytest.mark.parametrize(("options", "is_split"), [("pass", True), thorough(BEGINS_FIRST, False)])
def test_earlier_release_that_committed_is_named_after_an_error(
    options: str, tmp_path: Path, *, is_split: bool
) -> None:
    report = measured(tmp_path, NESTED.format(options=options), "program.py", concurrency=2, ops=8)
    found = findings_of(report, "split-transaction")
    assert bool(found) == is_split
    assert all("RELEASE committed the SAVEPOINT" in finding.text for finding in found)


if sys.version_info >= (3, 12):  # The parameter autocommit is new.

    def test_script_that_does_not_commit_first_is_not_named(tmp_path: Path) -> None:
        assert splits(tmp_path, BEGINS["implicit"], ", autocommit=False") == []
