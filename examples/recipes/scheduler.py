"""A scheduler: a process runs a task only if its UPDATE still finds the time that it has read.

sqlstress app examples/recipes/scheduler.py -c 4
"""

from __future__ import annotations

import sqlite3

from sqlstress import Notes, check, connect, exactly_once, note, setup, transaction

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE task (id INTEGER PRIMARY KEY, due INTEGER NOT NULL);
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
        note("ran", (task, due))


@check
def nothing_runs_twice(notes: Notes) -> None:
    exactly_once(set(notes.of("ran")), notes.of("ran"))
