"""A scheduler: a process runs a task only if its UPDATE still finds the time that it has read.

sqlstress app examples/recipes/scheduler.py -c 4
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from sqlstress import check, connect, setup, transaction

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE task (id INTEGER PRIMARY KEY, due INTEGER NOT NULL);
CREATE TABLE run (task INTEGER NOT NULL, due INTEGER NOT NULL);
INSERT INTO task VALUES (1, 0), (2, 0), (3, 0);
"""
NEXT = "SELECT id, due FROM task ORDER BY due LIMIT 1"


@setup
def create(database: str) -> None:
    connection = sqlite3.connect(database)
    connection.executescript(SCHEMA)
    connection.close()


@connect
def open_it(database: str) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=30, isolation_level=None)


@transaction
def run_the_next(connection: sqlite3.Connection) -> None:
    task, due = connection.execute(NEXT).fetchone()
    claim = "UPDATE task SET due = due + 60 WHERE id = ? AND due = ?"
    if connection.execute(claim, (task, due)).rowcount == 1:
        connection.execute("INSERT INTO run VALUES (?, ?)", (task, due))


@check
def nothing_runs_twice(query: Callable[..., Any]) -> None:
    twice = query("SELECT task, due FROM run GROUP BY task, due HAVING count(*) > 1")
    assert not twice, f"ran twice: {twice[:3]}"
