"""A queue: each job is taken by one consumer.

sqlstress app examples/recipes/job_queue.py -c 4
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from sqlstress import check, connect, setup, transaction

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE job (id INTEGER PRIMARY KEY AUTOINCREMENT, task TEXT NOT NULL);
CREATE TABLE done (id INTEGER NOT NULL);
"""


@setup
def create(database: str) -> None:
    connection = sqlite3.connect(database)
    connection.executescript(SCHEMA)
    connection.close()


@connect
def open_it(database: str) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=30, isolation_level=None)


@transaction
def put(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO job (task) VALUES ('send the mail')")


@transaction
def take(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        first = "DELETE FROM job WHERE id = (SELECT min(id) FROM job) RETURNING id"
        connection.executemany("INSERT INTO done VALUES (?)", connection.execute(first).fetchall())


@check
def no_job_is_done_twice(query: Callable[..., Any]) -> None:
    assert not query("SELECT id FROM done GROUP BY id HAVING count(*) > 1")


@check
def no_job_is_lost(query: Callable[..., Any]) -> None:
    assert not query(
        "SELECT seq FROM sqlite_sequence WHERE seq > (SELECT count(*) FROM job) + (SELECT count(*) FROM done)"
    )
