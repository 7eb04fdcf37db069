"""How transactions begin, read from what was traced: against SQLite itself, and on statements by hand."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from sqlstress.experiments.app.watch import ALONE, Begins


def seen(*statements: str) -> tuple[list[str], int]:
    begins = Begins()
    for one in statements:
        begins.add(one)
    return list(begins.ways), begins.upgrades


@pytest.mark.parametrize(
    ("statements", "ways", "upgrades"),
    [
        (["INSERT INTO t VALUES (1)"], [ALONE], 0),
        (["BEGIN ", "insert into t values (1)", "COMMIT"], ["DEFERRED"], 0),
        (["begin immediate", "SELECT 1", "UPDATE t SET x = 1", "end"], ["IMMEDIATE"], 0),
        (["BEGIN", "SELECT 1", "UPDATE t SET x = 1", "DELETE FROM t", "COMMIT"], ["DEFERRED"], 1),
        (["BEGIN", "UPDATE t SET x = 1", "SELECT 1", "DELETE FROM t", "COMMIT"], ["DEFERRED"], 0),
        (["BEGIN", "SELECT 1", "ROLLBACK", "UPDATE t SET x = 1"], [ALONE], 0),
        (["BEGIN", "SELECT 1", "ROLLBACK TO a", "UPDATE t SET x = 1"], ["DEFERRED"], 1),
        (["SAVEPOINT a", "SELECT 1", "UPDATE t SET x = 1", "RELEASE a"], ["DEFERRED"], 1),
        (["/* django */ BEGIN EXCLUSIVE", "REPLACE INTO t VALUES (1)"], ["EXCLUSIVE"], 0),
        (
            ["BEGIN", "WITH a AS (SELECT 1) SELECT * FROM a", "WITH a AS (SELECT 1) DELETE FROM t"],
            ["DEFERRED"],
            1,
        ),
        (["-- PRAGMA busy_timeout", "PRAGMA busy_timeout", "SELECT 1"], [], 0),
    ],
)
def test_a_transaction_is_told_by_how_it_begins(
    statements: list[str], ways: list[str], upgrades: int
) -> None:
    assert seen(*statements) == (ways, upgrades)


@pytest.mark.parametrize(("options", "ways"), [({}, ["DEFERRED"]), ({"isolation_level": None}, [ALONE])])
def test_what_python_begins_by_itself_is_seen(options: dict[str, Any], ways: list[str]) -> None:
    begins = Begins()
    with closing(sqlite3.connect(":memory:", **options)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.set_trace_callback(begins.add)
        connection.execute("SELECT * FROM t").fetchall()
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
    # What is read before Python begins a transaction is not in it: that is how an update is lost.
    assert (list(begins.ways), begins.upgrades) == (ways, 0)
