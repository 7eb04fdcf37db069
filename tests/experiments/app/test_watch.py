"""Watching of connections, without changes of the code that opens them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sqlstress.experiments.app import SINGLE_STATEMENT
from sqlstress.experiments.app.watch import WriteTransactions
from tests.run_python import run_python

WATCH = """
import json, os, sqlite3, sys, threading
from sqlstress.experiments.app.watch import FileWatch
made = sqlite3.connect("app.db")
made.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (x REFERENCES t(x))")
made.close()
watch = FileWatch("app.db")
exec(sys.argv[1])
print(json.dumps(watch.sightings()))
"""


def watch_code(code: str, folder: Path) -> Any:
    """Run code in a process with watched connections; return the sightings. The hook cannot be removed."""
    return json.loads(run_python(folder, WATCH, code).splitlines()[-1])


def test_connection_has_the_traits_of_its_work(tmp_path: Path) -> None:
    code = """
def app():
    before = sys.getprofile()
    c = sqlite3.connect("app.db", timeout=5)
    c.row_factory = lambda cursor, row: "mine"
    c.execute("PRAGMA busy_timeout=0")
    c.execute("PRAGMA synchronous=OFF")
    assert c.execute("SELECT * FROM t").fetchall() == []
    c.execute("INSERT INTO t VALUES (NULL)")
    c.commit()
    c.close()
    assert sys.getprofile() is before
app()
"""
    ((topic, what, count, _, traits),) = watch_code(code, tmp_path)
    assert (topic, what, count) == ("connection", "sqlite3", 1)
    assert traits == {
        "database": "this",
        "journal_mode": "wal",
        "synchronous": "off",
        "busy_timeout": "0",
        "opened_with": "5000",
        "foreign_keys": "off",
        "wal_autocheckpoint": "1000",
        "python": "isolation_level=''",
        "writes_begin": "DEFERRED",
        "upgrades": "no",
        "committed": "yes",
        "watched": "all statements",
        "locks": "",
    }


def test_settings_after_the_first_query_count(tmp_path: Path) -> None:
    code = """
late = sqlite3.connect("app.db", isolation_level=None)
late.execute("SELECT * FROM t").fetchall()
late.execute("PRAGMA synchronous=NORMAL")
late.execute("INSERT INTO t VALUES (NULL)")
late.execute("PRAGMA busy_timeout=7")
with late:
    late.execute("BEGIN IMMEDIATE")
    late.execute("INSERT INTO t VALUES (NULL)")
"""
    ((_, _, _, _, traits),) = watch_code(code, tmp_path)
    assert (traits["synchronous"], traits["busy_timeout"]) == ("normal", "7")
    assert traits["writes_begin"] == "each statement alone, IMMEDIATE"


def test_rolled_back_transaction_is_no_commit(tmp_path: Path) -> None:
    code = """
own = sqlite3.connect("app.db")
own.execute("INSERT INTO t VALUES (NULL)")
own.rollback()
"""
    ((_, _, _, _, traits),) = watch_code(code, tmp_path)
    assert (traits["writes_begin"], traits["committed"]) == ("DEFERRED", "no")


def test_watch_includes_other_databases_threads_and_subclasses(tmp_path: Path) -> None:
    code = """
class Own(sqlite3.Connection):
    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.execute("PRAGMA foreign_keys=ON")
def apart():
    c = sqlite3.connect("../other.db", isolation_level=None)
    c.execute("BEGIN IMMEDIATE")
    c.execute("CREATE TABLE t (x)")
    c.execute("INSERT INTO t VALUES (1)")
    c.execute("COMMIT")
    c.close()
thread = threading.Thread(target=apart)
thread.start()
thread.join()
own = sqlite3.connect("app.db", factory=Own)
own.execute("SELECT 1").fetchall()
memory = sqlite3.connect(":memory:")
memory.execute("SELECT 1").fetchall()
beside = sqlite3.connect("beside.db")
beside.execute("SELECT 1").fetchall()
idle = sqlite3.connect("app.db")
"""
    found = watch_code(code, tmp_path)
    told = {sighting[4]["database"]: sighting[4] for sighting in found if sighting[0] == "connection"}
    assert set(told) == {"this", ":memory:", str(tmp_path.parent / "other.db"), "inside: beside.db"}
    assert told["this"]["foreign_keys"] == "on"
    assert told[str(tmp_path.parent / "other.db")]["writes_begin"] == "IMMEDIATE"
    assert [
        sighting[0] for sighting in found if sighting[0] != "connection"
    ] == []  # an idle connection has no settings


def test_connection_without_a_write_shows_its_locks_and_its_limit(tmp_path: Path) -> None:
    code = """
locks = sqlite3.connect("app.db", isolation_level=None)
locks.execute("BEGIN IMMEDIATE")
locks.execute("SELECT * FROM t").fetchall()
locks.execute("COMMIT")
locks.close()
long = sqlite3.connect("app.db", isolation_level=None)
for _ in range(300):
    long.execute("SELECT * FROM t").fetchall()
"""
    traits = [sighting[4] for sighting in watch_code(code, tmp_path)]
    assert [(sighting["locks"], sighting["watched"]) for sighting in traits] == [
        ("IMMEDIATE", "all statements"),
        ("", "the first statements"),
    ]


def test_connection_without_references_counts_as_unread(tmp_path: Path) -> None:
    code = """
def spin():
    while True:
        sum(range(1000))

threading.Thread(target=spin, daemon=True).start()
shared = sqlite3.connect("app.db", check_same_thread=False)
shared.execute("SELECT * FROM t").fetchall()
shared.close()
"""
    assert [tuple(sighting[:3]) for sighting in watch_code(code, tmp_path)] == [
        ("connections that could not be read", "sqlite3", 1)
    ]


def test_connections_beyond_the_limit_are_only_counted(tmp_path: Path) -> None:
    code = """
for _ in range(60):
    c = sqlite3.connect("app.db")
    for _ in range(300):
        c.execute("SELECT * FROM t").fetchall()
    c.close()
"""
    found = watch_code(code, tmp_path)
    assert [(sighting[0], sighting[2]) for sighting in found] == [
        ("connection", 50),
        ("connections not looked at", 10),
    ]


@pytest.mark.thorough
def test_first_statement_waits_for_a_lock_as_if_unwatched(tmp_path: Path) -> None:
    code = """
def app(first):
    own = sqlite3.connect("app.db", timeout=30, isolation_level=None)
    other = sqlite3.connect("app.db", timeout=30, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO t VALUES (NULL)")
    timer = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    timer.start()
    first(own)
    timer.join()
    own.close()
    other.close()
app(lambda own: own.execute("INSERT INTO t VALUES (NULL)"))
app(lambda own: own.cursor().executemany("INSERT INTO t VALUES (?)", [(None,)]))
def looped(own):
    for value in (None, None):
        own.execute("INSERT INTO t VALUES (?)", (value,))
app(looped)
def with_a_function(own):
    own.create_function("twice", 1, lambda value: value)
    own.execute("INSERT INTO t VALUES (twice(NULL))")
app(with_a_function)
"""
    found = watch_code(code, tmp_path)
    assert sum(count for _, _, count, _, _ in found) == 8


# The way transactions begin, from traced statements: of SQLite itself, and made-up ones.


def begins_of(*statements: str) -> tuple[list[str], int]:
    begins = WriteTransactions()
    for statement in statements:
        begins.add(statement)
    return list(begins.ways), begins.upgrades


@pytest.mark.parametrize(
    ("statements", "ways", "upgrades"),
    [
        (["BEGIN ", "insert into t values (1)", "COMMIT"], ["DEFERRED"], 0),
        (["begin immediate", "SELECT 1", "UPDATE t SET x = 1", "end"], ["IMMEDIATE"], 0),
        (["BEGIN", "SELECT 1", "UPDATE t SET x = 1", "DELETE FROM t", "COMMIT"], ["DEFERRED"], 1),
        (["BEGIN", "UPDATE t SET x = 1", "SELECT 1", "DELETE FROM t", "COMMIT"], ["DEFERRED"], 0),
        (["BEGIN", "SELECT 1", "ROLLBACK TO a", "UPDATE t SET x = 1"], ["DEFERRED"], 1),
        (["SAVEPOINT a", "SELECT 1", "UPDATE t SET x = 1", "RELEASE a"], ["DEFERRED"], 1),
        (
            ["SAVEPOINT a", "SAVEPOINT b", "SELECT 1", "RELEASE b", "RELEASE SAVEPOINT a;", "DELETE FROM t"],
            [SINGLE_STATEMENT],
            0,
        ),
        (["SAVEPOINT a", "SELECT 1", "SAVEPOINT b", "RELEASE b", "DELETE FROM t"], ["DEFERRED"], 1),
        (["/* django */ BEGIN EXCLUSIVE", "REPLACE INTO t VALUES (1)"], ["EXCLUSIVE"], 0),
        (["-- why\n\n-- and how\nINSERT INTO t VALUES (1)", "-- DELETE FROM t"], [SINGLE_STATEMENT], 0),
        (
            ["BEGIN", "WITH a AS (SELECT 1) SELECT * FROM a", "WITH a AS (SELECT 1) DELETE FROM t"],
            ["DEFERRED"],
            1,
        ),
        (["-- PRAGMA busy_timeout", "PRAGMA busy_timeout", "SELECT 1"], [], 0),
    ],
)
def test_transaction_is_classified_by_its_begin(
    statements: list[str], ways: list[str], upgrades: int
) -> None:
    assert begins_of(*statements) == (ways, upgrades)


@pytest.mark.parametrize(
    ("options", "ways"), [({}, ["DEFERRED"]), ({"isolation_level": None}, [SINGLE_STATEMENT])]
)
def test_implicit_transaction_of_python_is_seen(options: dict[str, Any], ways: list[str]) -> None:
    begins = WriteTransactions()
    with closing(sqlite3.connect(":memory:", **options)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.set_trace_callback(begins.add)
        connection.execute("SELECT * FROM t").fetchall()
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
    # Reads before Python's implicit BEGIN are outside of the transaction: that is how an update is lost.
    assert (list(begins.ways), begins.upgrades) == (ways, 0)
